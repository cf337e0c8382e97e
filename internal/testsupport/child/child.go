// Package child starts processes that end when this process ends, even if this process is killed.
package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Process is a child process, running or ended. Several goroutines may use it at the same time.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed after the wait for the child has returned
	err  error         // the error of the wait for the child; set before done is closed
}

// Start starts a command in a new process group.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, not when the process ends. So the thread that starts the child must
		// exist until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// StartLogged starts a command whose output is appended to a file.
func StartLogged(cmd *exec.Cmd, path string) (*Process, error) {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return Start(cmd)
}

// Pid returns the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child has ended and the wait for it has returned.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited reports whether the child has ended.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits for the child's end, and reports whether the child has ended before the timeout.
func (p *Process) Wait(timeout time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

// Code waits for the child's end. It returns the exit code, or minus the number of the signal that ended the child.
func (p *Process) Code() int {
	<-p.done
	if w, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return -int(w.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Err waits for the child's end, and returns its error.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends a signal to the child. It returns nil if the child has ended already.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to process %d: %w", sig, p.Pid(), err)
	}
	return nil
}

// Kill ends the child with SIGKILL, even if it is frozen, and waits for its end.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	if err == nil {
		<-p.done
	}
	return err
}

// Freeze stops the child with SIGSTOP, and waits until it has stopped.
func (p *Process) Freeze() error {
	err := p.Signal(syscall.SIGSTOP)
	if err == nil {
		AwaitStopped(p.Pid())
	}
	return err
}

// AwaitStopped waits up to five seconds until a process that got SIGSTOP has stopped. The signal does not reach all threads of the process
// at the same time.
func AwaitStopped(pid int) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !stopped(pid); {
		time.Sleep(time.Millisecond)
	}
}

func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // empty if the process has ended
	return !slices.ContainsFunc(threads, func(name string) bool {
		stat, _ := os.ReadFile(name) // the thread may have ended
		// In /proc/PID/stat the state follows the program's name. The name is in parentheses and may itself contain a parenthesis. A
		// process that has ended (Z, X) counts as stopped.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		return len(fields) > 0 && !slices.Contains([]string{"T", "t", "Z", "X"}, string(fields[0]))
	})
}
