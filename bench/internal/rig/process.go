package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"baton/internal/testsupport/child"
)

// Process is a program that this process has started, and that dies with this process.
type Process struct {
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when the program has ended
	err  error         // how it ended
}

// Launch starts a program. It keeps the program's output for errors.
func Launch(argv []string, env ...string) (*Process, error) { return LaunchHeard(argv, nil, env...) }

// LaunchHeard starts a program. hear reads the program's standard output until the program ends.
func LaunchHeard(argv []string, hear func(io.Reader) error, env ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.Env = append(os.Environ(), env...)
	var in, out *os.File
	if hear != nil {
		var err error
		if in, out, err = os.Pipe(); err != nil {
			return nil, err
		}
		p.cmd.Stdout = out
	}
	started, err := child.Start(p.cmd)
	out.Close() // a nil file only returns an error
	if err != nil {
		in.Close()
		return nil, err
	}
	go func() {
		defer close(p.done)
		defer in.Close()
		if hear != nil {
			err = hear(in)
		}
		<-started.Done()
		p.err = errors.Join(err, started.Err())
	}()
	return p, nil
}

// Pid returns the process ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the program has ended and its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended, with the end of its output. It returns nil if the program ended in order. Call Err only after Done
// is closed.
func (p *Process) Err() error { return p.failed(p.err) }

// Log returns the end of the program's output so far.
func (p *Process) Log() string { return p.log.String() }

// Signal sends a signal. If the process has already ended, Signal returns no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", sig, p.cmd.Path, err)
	}
	return nil
}

// Kill ends the process immediately, even if the process is stopped.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.done
	return err
}

// Stop ends the process by SIGTERM. If the process takes too long, Stop kills it and returns an error.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return p.failed(err)
	}
	return p.Wait()
}

// Wait waits for the end of the process after SIGTERM. If the process does not end, Wait kills it and returns an error.
func (p *Process) Wait() error {
	select {
	case <-p.done:
		return p.Err()
	case <-time.After(20 * time.Second):
		return p.failed(errors.Join(errors.New("does not end after SIGTERM"), p.Kill()))
	}
}

func (p *Process) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w; it wrote:\n%s", p.cmd.Path, err, p.log.String())
}

// tail keeps the end of the written text.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 6000
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(b)
	if over := t.text.Len() - most; over > 0 {
		t.text.Next(over)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
