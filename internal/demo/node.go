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
	// restartAfter is the minimum time before a dead node restarts, like systemd's RestartSec=.
	restartAfter = time.Second
	// stopTimeout is the time that a node has to end after SIGTERM.
	stopTimeout = 10 * time.Second
)

// nodeState is the state of a node's process, as the demo sees it from outside.
type nodeState string

const (
	nodeDown    nodeState = "down"
	nodeRunning nodeState = "running"
	nodeFrozen  nodeState = "frozen"
)

// node is one process of the command `baton run`. It is restarted whenever it ends.
type node struct {
	id      string
	config  config.Config
	dir     string
	program string
	environ []string
	events  nodeEvents

	mu    sync.Mutex
	cmd   *exec.Cmd // nil while the node is down
	state nodeState
	exits int // number of ends that no signal caused
	began int // number of starts
}

// nodeEvents receives the events of nodes.
type nodeEvents interface {
	// down reports that a node stopped working at the time in the argument at, because it ended or was frozen. The argument how is the
	// signal that killed or froze it. It is 0 if the node ended without a signal.
	down(id string, at time.Time, how syscall.Signal)
	// up reports that a frozen node continues.
	up(id string)
	// succeeded reports whether another node has led since that node went down. It returns true if that node did not lead.
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

// freeAddress returns the address in the argument wanted if a node can listen there. Otherwise it returns another address.
func freeAddress(wanted string) (string, error) {
	if wanted != "" {
		if ln, err := net.Listen("tcp", wanted); err == nil {
			return wanted, ln.Close()
		}
	}
	// The port is below the ports that Linux gives to clients (32768 and up). Otherwise another program could get the port before the node
	// listens on it, or while the node restarts.
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

// supervise keeps the node running until ctx ends. Then it shuts the node down normally.
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

// stayDown waits until the node may restart. A leader that died waits until another node leads, so that the user can see the change of
// leaders. If no other node takes over, the leader restarts nevertheless.
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

// wait waits until the process has ended.
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

// ended records the end of a process that the demo did not stop.
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

// signal sends a signal and returns the PID of the process that got the signal, or 0 if there is no process.
func (n *node) signal(sig syscall.Signal) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil || n.cmd.Process.Signal(sig) != nil {
		return 0
	}
	return n.cmd.Process.Pid
}

// poll notices when a node was frozen, and when a frozen node continues.
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

// view returns the facts about a node that the screen shows.
func (n *node) view() (pid int, state nodeState, url string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		pid = n.cmd.Process.Pid
	}
	return pid, n.state, n.url()
}

// incarnation returns how many times the node was started.
func (n *node) incarnation() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.began
}

// working reports whether the process runs and is not frozen.
func (n *node) working() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state == nodeRunning
}
