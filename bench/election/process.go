package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is one node: a contender's process, or baton's.
type process struct {
	node string
	cmd  *exec.Cmd
	log  tail
	done chan struct{} // closed when it has ended and all it said was heard
	err  error         // how it ended
}

// launch starts a program that dies with this one. hear reads what it writes.
func launch(node string, argv []string, hear func(io.Reader) error) (*process, error) {
	p := &process{node: node, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan struct{})}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = out, &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := p.cmd.Start()
		out.Close()
		started <- err
		if err == nil {
			p.err = errors.Join(hear(in), p.cmd.Wait())
		}
		in.Close()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", sig, p.node, err)
	}
	return nil
}

// wait waits for a process that was told to end. One that does not is killed, and
// that is an error.
func (p *process) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("%s: %w; it wrote:\n%s", p.node, p.err, p.log.String())
		}
		return nil
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s does not end after SIGTERM; it wrote:\n%s", p.node, p.log.String()), p.kill())
	}
}

// kill ends it at once, frozen or not.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.done
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 4000
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
