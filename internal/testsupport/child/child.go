// Package child starts processes that end when this process ends, however that happens.
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

// Process is a child under way, or what is left of it. Many may use it at once.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once the child has been waited for
	err  error         // how it ended; set before done
}

// Start starts a command in a process group of its own.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, not the
		// process: keep that thread until the child is gone.
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

// Pid is the child's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited says whether the child is gone.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits for the child's end, and says whether it has come in time.
func (p *Process) Wait(timeout time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

// Code is the exit code, or minus the signal, of a child that has ended.
func (p *Process) Code() int {
	<-p.done
	if w, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return -int(w.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Err is how the child has ended; nil if that was in order.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends a signal. A child that has ended does not mind.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to process %d: %w", sig, p.Pid(), err)
	}
	return nil
}

// Kill ends the child with SIGKILL, frozen or not, and waits for it.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	if err == nil {
		<-p.done
	}
	return err
}

// Freeze stops the child where it is (SIGSTOP), and waits until it stands still.
func (p *Process) Freeze() error {
	err := p.Signal(syscall.SIGSTOP)
	if err == nil {
		AwaitStopped(p.Pid())
	}
	return err
}

// AwaitStopped waits until a process that got SIGSTOP stands still, for a while: the signal
// reaches each of its threads in its own time.
func AwaitStopped(pid int) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !stopped(pid); {
		time.Sleep(time.Millisecond)
	}
}

func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // none of one that has ended
	return !slices.ContainsFunc(threads, func(name string) bool {
		stat, _ := os.ReadFile(name) // it may have ended
		// The state follows the name, which stands in parentheses and may hold any. One
		// that has ended (Z, X) does nothing either.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		return len(fields) > 0 && !slices.Contains([]string{"T", "t", "Z", "X"}, string(fields[0]))
	})
}
