package warden

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// guard is the work of the process between baton and the warden: it outlives both. If the
// warden is killed, the kernel gives the command's orphans to the guard, the next reaper
// above them, and the guard kills them. It returns when nothing is left, so that its end
// means the end of all processes of the command.
func guard() int {
	rename(Name)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, append(passedOn(), syscall.SIGCONT)...) // who wakes us up wakes the warden
	keepDescriptors()
	if err := becomeReaper(); err != nil {
		_, _ = os.Stderr.WriteString("baton: become the reaper of the command's orphans: " + err.Error() + "\n")
		return 1
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{wardenName, watchArgument}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2, socket},
		Sys: &syscall.SysProcAttr{Setpgid: true}, // who kills the group of one of us does not kill the other
	})
	if err != nil {
		_ = Report{Errno: int(errnoOf(err))}.write(os.NewFile(socket, "baton")) // a peer that is gone need not know
		return 1
	}
	_ = syscall.Close(socket) // else the end of the warden goes unnoticed
	go func() {
		for s := range signals {
			if number, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(pid, number) // it passes them on
			}
		}
	}()
	if finished(pid) {
		return 0 // its other processes were to be left
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

// killRest kills all that is below us until nothing is left.
func killRest() {
	const longest = time.Second // between two sweeps: a process that the kernel holds may take long
	none, s := reap(0), sweeper{}
	known := map[int]bool{}
	for pause := killAgain; ; pause = min(2*pause, longest) {
		killed := s.sweep()
		for _, pid := range killed {
			if !known[pid] {
				pause = killAgain // it forks
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
