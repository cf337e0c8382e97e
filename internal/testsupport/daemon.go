package testsupport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"baton/internal/testsupport/child"
	"baton/internal/testsupport/ground"
)

const (
	readyWithin = 2 * time.Minute // a long time, because two cores may run all tests at once, and one of them may copy a Galera member
	pollReady   = 10 * time.Millisecond
	portTries   = 5
)

// errExited means that the server ended before it was ready.
var errExited = errors.New("server ended before it was ready")

// Daemon is one server on loopback with its own port and directory. Several goroutines may call its methods at once, because a mutex guards
// them.
type Daemon struct {
	name string
	port int
	dir  *ground.Dir
	cred *syscall.Credential
	argv func(port int) []string
	// before, if set, writes the files that the server reads at its start.
	before func(port int) error
	// ready returns nil if the server answers and is our server, because another process may have taken the port.
	ready func(ctx context.Context, d *Daemon) error
	// stop is the signal that ends the server quickly but in order.
	stop syscall.Signal

	mu   sync.Mutex
	proc *child.Process
	// touched is true if a test has killed, frozen or restarted the server.
	touched bool
}

// start tries to start the server on one free port after the other until the server runs. It gives up after portTries ports.
func (d *Daemon) start() error {
	var err error
	for range portTries {
		if d.port, err = freePort(); err != nil {
			return err
		}
		if err = d.launch(); !errors.Is(err, errExited) {
			return err
		}
	}
	return err
}

// launch runs the server on its port and waits until it answers.
func (d *Daemon) launch() error {
	if d.before != nil {
		if err := d.before(d.port); err != nil {
			return err
		}
	}
	proc, err := startProcess(d.argv(d.port), d.dir.Path, d.logFile(), d.cred)
	if err != nil {
		return err
	}
	d.proc = proc
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for {
		err = d.ready(ctx, d)
		switch {
		case proc.Exited():
			return fmt.Errorf("%s on port %d: %w; its log ends with:\n%s", d.name, d.port, errExited, d.logTail())
		case err == nil:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s on port %d does not answer within %s: %w; its log ends with:\n%s",
				d.name, d.port, readyWithin, errors.Join(err, killTree(proc)), d.logTail())
		case <-proc.Done():
		case <-time.After(pollReady):
		}
	}
}

// Addr returns the server's host:port.
func (d *Daemon) Addr() string { return loopback(d.port) }

// Pid returns the process id of the server that runs now or ran last.
func (d *Daemon) Pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proc.Pid()
}

// Kill ends the server and its children with SIGKILL, like a crash.
func (d *Daemon) Kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.touched = true
	return killTree(d.proc)
}

// Restart starts the server again on the same port and directory. It first kills a server that still runs.
func (d *Daemon) Restart() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.touched = true
	if err := killTree(d.proc); err != nil {
		return err
	}
	// The port, or the shared memory of a dying PostgreSQL backend, may become free only after a moment, so there are several attempts.
	var err error
	for range portTries {
		if err = d.launch(); !errors.Is(err, errExited) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// Freeze stops the server's processes with SIGSTOP: connections stay open and get no answers.
func (d *Daemon) Freeze() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.touched = true
	return signalTree(d.proc, syscall.SIGSTOP)
}

// Thaw lets a frozen server continue.
func (d *Daemon) Thaw() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return signalTree(d.proc, syscall.SIGCONT)
}

// disturbed reports whether the server was killed, frozen or restarted, or has ended.
func (d *Daemon) disturbed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.touched || d.proc.Exited()
}

// Stop ends the server for good and removes its directory.
func (d *Daemon) Stop() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.dir.Remove()
	if d.proc == nil {
		return nil
	}
	if err := errors.Join(signalTree(d.proc, syscall.SIGCONT), d.proc.Signal(d.stop)); err != nil {
		return err
	}
	select {
	case <-d.proc.Done():
		return nil
	case <-time.After(5 * time.Second):
		return killTree(d.proc)
	}
}

func (d *Daemon) logFile() string { return filepath.Join(d.dir.Path, "server.log") }

func (d *Daemon) logTail() string {
	b, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	return tail(b)
}
