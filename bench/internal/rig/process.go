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

// Process is a program that was started and dies with this one.
type Process struct {
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when it has ended
	err  error         // how it ended
}

// Launch starts a program. What it writes is kept for errors.
func Launch(argv []string, env ...string) (*Process, error) { return LaunchHeard(argv, nil, env...) }

// LaunchHeard starts a program to whose standard output hear listens until it ends.
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
	out.Close() // which does nothing to a file that is nil
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

// Pid is its number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when it has ended, and all it said was heard.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how it ended, with the end of what it wrote; nil if it ended in order. Ask when
// Done is closed.
func (p *Process) Err() error { return p.failed(p.err) }

// Log is the end of what it wrote so far.
func (p *Process) Log() string { return p.log.String() }

// Signal sends a signal; that it has ended already is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", sig, p.cmd.Path, err)
	}
	return nil
}

// Kill ends it at once, frozen or not.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	<-p.done
	return err
}

// Stop ends it in order. One that takes too long is killed, and that is an error.
func (p *Process) Stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return p.failed(err)
	}
	return p.Wait()
}

// Wait waits for a process that was told to end. One that does not is killed, and that is
// an error.
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

// tail keeps the end of what is written to it.
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
