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
	// TermWithin is how long a node may take to obey SIGTERM.
	TermWithin = 10 * time.Second
	// ExitCannotStop is the code of a leader that cannot stop, and so must die.
	ExitCannotStop = 4

	restartAfter = time.Second // as systemd would
	// stall is how much later than usual a Tick comes on a machine that stands still, and starved
	// for how long afterwards a leader may find that it cannot stop.
	stall   = 100 * time.Millisecond
	starved = 20 * time.Second
	// exitAfterThaw is how long after SIGCONT a leader may still find that it cannot stop.
	exitAfterThaw = 1500 * time.Millisecond
)

// Record takes down what happens, and what of it must not.
type Record interface {
	Add(format string, args ...any)
	Wrong(format string, args ...any)
}

// Supervisor starts nodes again that have ended, and tells how they did. It belongs to the
// test's goroutine, and its units do.
type Supervisor struct {
	Units []*Unit
	// CannotStop counts the exits with that code soon after SIGSTOP, or after the machine stood still.
	CannotStop int
	// Moved is told where a node is found from now on, "" for nowhere.
	Moved func(id, url string)

	record  Record
	ticked  time.Time // last
	stalled time.Time // when the machine last stood still, by the time between two ticks
}

// Unit is a node and what its supervisor knows of it.
type Unit struct {
	*Node
	// Up and Down are when its processes began and ended: as many of both while none
	// runs, else one more of Up.
	Up, Down []time.Time

	s      *Supervisor
	frozen bool
	thawed time.Time
	killed bool
	termed time.Time // zero: not asked to end
}

// Supervise looks after the nodes of a cluster, which may exit, from now on.
func Supervise(c *Cluster, r Record) *Supervisor {
	s := &Supervisor{record: r, Moved: func(string, string) {}}
	for _, n := range c.Nodes {
		s.Units = append(s.Units, &Unit{Node: n, s: s, Up: []time.Time{time.Now()}})
	}
	return s
}

// Tick looks after the nodes once: it tells how they ended, and starts them again.
func (s *Supervisor) Tick() {
	began := time.Now()
	if !s.ticked.IsZero() && began.Sub(s.ticked) > stall {
		s.stalled = began
	}
	defer func() { s.ticked = time.Now() }() // a start takes its time
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

// ended tells how a node's process ended, and whether it may have.
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

// Standing is a unit, or the next one that runs: whoever is down already cannot be broken
// any more.
func (s *Supervisor) Standing(i int) (unit *Unit, place int) {
	for range s.Units {
		if !s.Units[i].Running() {
			i = (i + 1) % len(s.Units)
		}
	}
	return s.Units[i], i
}

// Kill crashes the node.
func (u *Unit) Kill() {
	u.killed = true
	u.s.Moved(u.ID, "")
	u.Node.Kill()
}

// Term tells the node to end in order, once: asked twice it would be killed, as programs
// are.
func (u *Unit) Term() {
	if u.Running() && !u.frozen && u.termed.IsZero() {
		u.termed = time.Now()
		u.Signal(syscall.SIGTERM)
	}
}

// Freeze stops the node where it is.
func (u *Unit) Freeze() {
	u.frozen = true
	u.Node.Freeze()
}

// Thaw lets it go on.
func (u *Unit) Thaw() {
	u.Node.Thaw()
	if u.frozen { // not, if it was killed and started again
		u.frozen, u.thawed = false, time.Now()
	}
}

// StepDown has the leader step down, by a command on this node, whose way to Redis may be
// broken just now, and returns what that said. Any goroutine may call it.
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
