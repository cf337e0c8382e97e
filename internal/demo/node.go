package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"baton/internal/config"
)

const (
	// restartAfter is the least time that a dead node stays dead, as with systemd's RestartSec=.
	restartAfter = time.Second
	// stopTimeout is how long a node may take to end after SIGTERM.
	stopTimeout = 10 * time.Second
)

// nodeState is the state of a node's process, as seen from outside.
type nodeState string

const (
	nodeDown    nodeState = "down"
	nodeRunning nodeState = "running"
	nodeFrozen  nodeState = "frozen"
)

// node is one baton run, started again whenever it ends.
type node struct {
	id      string
	config  config.Config
	dir     string
	program string
	environ []string
	events  nodeEvents

	mu    sync.Mutex
	cmd   *exec.Cmd // nil while it is down
	state nodeState
	exits int // that no signal caused
	began int // how often it was started
}

// nodeEvents receives the events of nodes.
type nodeEvents interface {
	// down: a node has stopped working at that time, killed or frozen by that signal; 0: it ended without a signal.
	down(id string, at time.Time, how syscall.Signal)
	// up: a frozen node goes on.
	up(id string)
	// succeeded: another node leads since that one went down, or it did not lead.
	succeeded(id string) bool
	note(format string, args ...any)
}

func (n *node) configFile() string { return filepath.Join(n.dir, n.id+".yaml") }
func (n *node) logFile() string    { return filepath.Join(n.dir, n.id+".log") }
func (n *node) url() string        { return "http://" + n.config.HTTP.Listen + "/" }

// writeConfig chooses the node's port and writes its configuration.
func (n *node) writeConfig() error {
	listen, err := freeAddress(n.config.HTTP.Listen)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.config.HTTP.Listen = listen
	n.mu.Unlock()
	return os.WriteFile(n.configFile(), config.Encode(n.config), 0o600)
}

// freeAddress is the wanted address if a node can listen there, otherwise another one.
func freeAddress(wanted string) (string, error) {
	if wanted != "" {
		if ln, err := net.Listen("tcp", wanted); err == nil {
			return wanted, ln.Close()
		}
	}
	// It is below Linux' ports for clients (32768 and up): the node listens only in a moment, and again after each of its ends, and no
	// other program should take the port meanwhile.
	const low, high, tries = 15000, 32000, 100
	var err error
	for range tries {
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", low+rand.IntN(high-low))); err == nil {
			return ln.Addr().String(), ln.Close()
		}
	}
	return "", fmt.Errorf("find a port for a status page: %w", err)
}

// supervise keeps the node running until ctx ends, then stops it in order.
func (n *node) supervise(ctx context.Context, l *launcher) {
	for ctx.Err() == nil {
		cmd, err := n.start(l)
		if err != nil {
			n.events.note("%s cannot be started: %v", n.id, err)
		} else {
			n.wait(ctx, cmd)
		}
		n.stayDown(ctx)
	}
}

// stayDown returns when the node may start again: a dead leader waits for another one to lead, so that the change of leaders can be seen.
// If no other node takes over, it starts nevertheless.
func (n *node) stayDown(ctx context.Context) {
	for began := time.Now(); pause(ctx, restartAfter); {
		if n.events.succeeded(n.id) || time.Since(began) > 3*ttl {
			return
		}
	}
}

func (n *node) start(l *launcher) (*exec.Cmd, error) {
	if err := n.writeConfig(); err != nil {
		return nil, err
	}
	cmd, err := l.start([]string{n.program, "run", "--config", n.configFile()}, n.environ, n.logFile())
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cmd, n.state = cmd, nodeRunning
	n.began++
	n.events.note("%s started, pid %d: %s", n.id, cmd.Process.Pid, n.url())
	return cmd, nil
}

// wait returns when the process has ended.
func (n *node) wait(ctx context.Context, cmd *exec.Cmd) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		n.ended(err, time.Now())
		return
	case <-ctx.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	_ = cmd.Process.Signal(syscall.SIGCONT)
	select {
	case err := <-ended:
		if err != nil {
			n.events.note("%s ended with %v", n.id, err)
		}
	case <-time.After(stopTimeout):
		_ = cmd.Process.Kill()
		n.events.note("%s did not end within %v of SIGTERM (%v): see %s", n.id, stopTimeout, <-ended, n.logFile())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cmd, n.state = nil, nodeDown
}

// ended notes the end of a process that the demo did not stop.
func (n *node) ended(err error, at time.Time) {
	how := "it has stopped"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		how = exit.String()
	}
	n.mu.Lock()
	pid := n.cmd.Process.Pid
	n.cmd, n.state = nil, nodeDown
	signal := syscall.SIGKILL
	if exit == nil || exit.Exited() {
		n.exits++
		signal = 0
	}
	n.mu.Unlock()
	n.events.down(n.id, at, signal)
	n.events.note("%s (pid %d) is gone: %s", n.id, pid, how)
}

// signal sends a signal and returns the PID of the process that got it; 0 without a process.
func (n *node) signal(sig syscall.Signal) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil || n.cmd.Process.Signal(sig) != nil {
		return 0
	}
	return n.cmd.Process.Pid
}

// poll notices a node that was frozen, or woken up.
func (n *node) poll() {
	n.mu.Lock()
	if n.cmd == nil {
		n.mu.Unlock()
		return
	}
	pid, before := n.cmd.Process.Pid, n.state
	n.state = nodeRunning
	if stopped(pid) {
		n.state = nodeFrozen
	}
	after := n.state
	n.mu.Unlock()
	switch {
	case before == after:
	case after == nodeFrozen:
		n.events.down(n.id, time.Now(), syscall.SIGSTOP)
		n.events.note("%s (pid %d) is frozen", n.id, pid)
	default:
		n.events.up(n.id)
		n.events.note("%s (pid %d) goes on", n.id, pid)
	}
}

// view is the part of a node for the screen.
func (n *node) view() (pid int, state nodeState, url string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		pid = n.cmd.Process.Pid
	}
	return pid, n.state, n.url()
}

// incarnation is how often the node was started.
func (n *node) incarnation() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.began
}

// working says whether the process runs and is not frozen.
func (n *node) working() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state == nodeRunning
}
