package warden

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// guard does the work of the guard. The guard is the process between baton and the warden, and outlives both of them. If the warden is
// killed, the kernel gives the command's orphans to the guard, which is the next reaper above them, and the guard kills these orphans.
// guard returns when no process is left, so that its end means the end of all processes of the command.
func guard() int {
	rename(Name)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(passedOn(), syscall.SIGCONT)...) // a process that continues the guard also continues the warden
	keepDescriptors()
	if err := becomeReaper(); err != nil {
		_, _ = os.Stderr.WriteString("baton: become the reaper of the command's orphans: " + err.Error() + "\n")
		return 1
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{wardenName, watchArgument}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, socket},
		Sys: &syscall.SysProcAttr{Setpgid: true}, // a signal to the group of one of the two processes must not kill the other
	})
	if err != nil {
		_ = Report{Errno: int(errnoOf(err))}.write(os.NewFile(socket, "baton")) // a closed socket needs no report
		return 1
	}
	_ = syscall.Close(socket) // otherwise baton would not notice the end of the warden
	go func() {
		for s := range signals {
			if number, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(pid, number) // the warden passes the signals on
			}
		}
	}()
	if finished(pid) {
		return 0 // the command's other processes were left on purpose
	}
	killRest()
	return 1
}

// finished waits for the warden, and reports whether it has exited with code 0.
func finished(pid int) bool {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WALL, nil)
		if !errors.Is(err, syscall.EINTR) {
			return err == nil && status.Exited() && status.ExitStatus() == 0
		}
	}
}

// killRest kills all processes below this process until no process is left.
func killRest() {
	const longest = time.Second // between two sweeps, because a process may take long in the kernel
	none, s := reap(0), sweeper{}
	known := map[int]bool{}
	for pause := killAgain; ; pause = min(2*pause, longest) {
		killed := s.sweep()
		for _, pid := range killed {
			if !known[pid] {
				pause = killAgain // the process forks
			}
		}
		clear(known)
		for _, pid := range killed {
			known[pid] = true
		}
		select {
		case <-none:
			return
		case <-time.After(pause):
		}
	}
}
