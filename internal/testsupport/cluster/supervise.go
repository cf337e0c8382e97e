package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// TermWithin is the time in which a node must end after SIGTERM.
	TermWithin = 10 * time.Second
	// ExitCannotStop is the exit code of a leader that cannot stop its work and so must end.
	ExitCannotStop = 4

	restartAfter = time.Second // the same pause as with systemd
	// stall is the time between two calls of Tick that proves that the machine has paused. In the time starved after such a pause, a leader
	// may find that it cannot stop its work.
	stall   = 100 * time.Millisecond
	starved = 20 * time.Second
	// exitAfterThaw is the time after SIGCONT in which a leader may still find that it cannot stop.
	exitAfterThaw = 1500 * time.Millisecond
)

// Record records the events of a test, and separately the events that must not happen.
type Record interface {
	Add(format string, args ...any)
	Wrong(format string, args ...any)
}

// Supervisor restarts nodes that have ended, and reports how the nodes ended. Only the test's goroutine may use the Supervisor and its
// units.
type Supervisor struct {
	Units []*Unit
	// CannotStop counts the exits with the code ExitCannotStop soon after SIGSTOP, or soon after the machine has paused.
	CannotStop int
	// Moved is called with the new URL of a node, or with "" if the node has no URL.
	Moved func(id, url string)

	record  Record
	ticked  time.Time // time of the last Tick
	stalled time.Time // when the machine last paused, as the time between two ticks shows
}

// Unit is a node with the facts that its supervisor knows about it.
type Unit struct {
	*Node
	// Up and Down contain the times when the node's processes have started and ended. Up has one entry more while a process runs.
	Up, Down []time.Time

	s      *Supervisor
	frozen bool
	thawed time.Time
	killed bool
	termed time.Time // when the node was asked to end; zero if it was not
}

// Supervise supervises the nodes of a cluster from now on. A node may also end by itself, see Options.MayExit.
func Supervise(c *Cluster, r Record) *Supervisor {
	s := &Supervisor{record: r, Moved: func(string, string) {}}
	for _, n := range c.Nodes {
		s.Units = append(s.Units, &Unit{Node: n, s: s, Up: []time.Time{time.Now()}})
	}
	return s
}

// Tick checks all nodes once: it reports how nodes have ended, and restarts the ended nodes after a short pause.
func (s *Supervisor) Tick() {
	began := time.Now()
	if !s.ticked.IsZero() && began.Sub(s.ticked) > stall {
		s.stalled = began
	}
	defer func() { s.ticked = time.Now() }() // set last, because a start takes time
	for _, u := range s.Units {
		now := time.Now()
		switch {
		case u.Running():
			if !u.termed.IsZero() && !u.frozen && now.Sub(u.termed) > TermWithin && now.Sub(u.thawed) > TermWithin {
				s.record.Wrong("%s has not ended %v after SIGTERM", u.ID, TermWithin)
				u.Kill()
			}
		case len(u.Down) < len(u.Up):
			s.ended(u)
			u.Down = append(u.Down, now)
		case now.Sub(u.Down[len(u.Down)-1]) >= restartAfter:
			u.Start()
			u.frozen, u.killed, u.termed, u.thawed = false, false, time.Time{}, time.Time{}
			u.Up = append(u.Up, time.Now())
			s.Moved(u.ID, u.URL())
			s.record.Add("%s runs again", u.ID)
		}
	}
}

// ended records how a node's process has ended. An end that was not allowed is recorded as an event that must not happen.
func (s *Supervisor) ended(u *Unit) {
	s.Moved(u.ID, "")
	code, _ := u.Exited()
	how := fmt.Sprintf("%s ended with code %d", u.ID, code)
	switch {
	case u.killed && code == -int(syscall.SIGKILL):
	case !u.termed.IsZero() && code == 0:
	case code == ExitCannotStop && time.Since(u.thawed) < exitAfterThaw:
		s.CannotStop++
		how += ": it woke up beyond its lease and could not stop"
	case code == ExitCannotStop && time.Since(s.stalled) < starved:
		s.CannotStop++
		how += ": it could not stop in time on a machine that had stood still"
	default:
		s.record.Wrong("%s, and nobody had asked it to; its log ends with:\n%s", how, tail(u.Log(), 2000))
	}
	s.record.Add("%s", how)
}

// Standing returns the unit i if its node runs, otherwise the next unit whose node runs. A test cannot break a node that is down already.
// The result place is the index of the returned unit.
func (s *Supervisor) Standing(i int) (unit *Unit, place int) {
	for range s.Units {
		if !s.Units[i].Running() {
			i = (i + 1) % len(s.Units)
		}
	}
	return s.Units[i], i
}

// Kill ends the node with SIGKILL, like a crash.
func (u *Unit) Kill() {
	u.killed = true
	u.s.Moved(u.ID, "")
	u.Node.Kill()
}

// Term asks the node to end in order. It asks only once, because a second SIGTERM would kill the node.
func (u *Unit) Term() {
	if u.Running() && !u.frozen && u.termed.IsZero() {
		u.termed = time.Now()
		u.Signal(syscall.SIGTERM)
	}
}

// Freeze stops the node's process with SIGSTOP.
func (u *Unit) Freeze() {
	u.frozen = true
	u.Node.Freeze()
}

// Thaw lets a frozen node continue.
func (u *Unit) Thaw() {
	u.Node.Thaw()
	if u.frozen { // false if the node was killed and restarted
		u.frozen, u.thawed = false, time.Now()
	}
}

// StepDown runs the command `baton stepdown` with this node's configuration, so that the leader steps down. It returns the command's
// output. The node's connection to Redis may be broken at that moment. Any goroutine may call StepDown.
func (n *Node) StepDown(ctx context.Context, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	args = append([]string{"stepdown", "--wait", "3s", "--config", n.config}, args...)
	out, err := exec.CommandContext(ctx, n.program, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		text += " (" + err.Error() + ")"
	}
	return text
}
