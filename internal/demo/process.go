package demo

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// launcher starts child processes on one thread that exists until the launcher is closed. This is needed because the kernel kills a child
// when the thread that started the child ends, and Go may end any other thread.
type launcher struct {
	work chan func()
	done chan struct{}
}

func newLauncher() *launcher {
	l := &launcher{work: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread() // never unlocked, because the thread must end with the goroutine
		for f := range l.work {
			f()
		}
	}()
	return l
}

// close ends the thread, and therefore also the remaining children.
func (l *launcher) close() {
	close(l.work)
	<-l.done
}

// start starts a program with its output appended to a file.
func (l *launcher) start(argv, environ []string, logFile string) (*exec.Cmd, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, out, out
	// The child is in a new process group, because Ctrl-C must reach only the demo, which stops the nodes last.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	bind(cmd.SysProcAttr)
	started := make(chan error)
	l.work <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	return cmd, nil
}

// stopped reports whether a process is stopped (SIGSTOP).
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the name, which is in parentheses and may itself contain parentheses.
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return strings.HasPrefix(rest, "T")
}

// nodeEnviron returns environ without the variables that configure baton, and without the variables that systemd sets for a service.
func nodeEnviron(environ []string) []string {
	var kept []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "RUNTIME_DIRECTORY", "SERVICE_RESULT", "LISTEN_FDS", "LISTEN_PID":
			continue
		}
		if !strings.HasPrefix(name, "BATON_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// tail returns the end of a log.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return strings.TrimSpace(string(text))
}

// lastLine returns the last line of a program's output.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
