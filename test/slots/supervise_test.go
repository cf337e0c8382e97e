package slots

import (
	"syscall"
	"time"

	"baton/internal/testsupport/cluster"
)

const (
	restartAfter = time.Second      // as systemd would
	termWithin   = 10 * time.Second // for a SIGTERM to be obeyed
	// exitAfterThaw is how long after SIGCONT a leader may still find that it cannot stop.
	exitAfterThaw = 1500 * time.Millisecond
	exitCannot    = 4 // "a leader that cannot stop must die"
)

// unit is a node and what its supervisor knows of it.
type unit struct {
	node   *cluster.Node
	frozen bool
	thawed time.Time
	killed bool
	termed time.Time // zero: not asked to end
	down   time.Time // zero: it runs, as far as is known
}

// supervise looks after the nodes once: it tells how they ended, and starts them again.
func (l *lab) supervise() {
	for _, u := range l.units {
		now := time.Now()
		switch {
		case u.node.Running():
			since := now.Sub(u.termed)
			if !u.termed.IsZero() && !u.frozen && since > termWithin && now.Sub(u.thawed) > termWithin {
				l.wrong("%s has not ended %v after SIGTERM", u.node.ID, termWithin)
				u.kill()
			}
		case u.down.IsZero():
			u.down = now
			l.ended(u)
		case now.Sub(u.down) >= restartAfter:
			u.node.Start()
			*u = unit{node: u.node}
			l.log.Add("%s runs again", u.node.ID)
		}
	}
}

// ended tells how a node's process ended, and whether it may have.
func (l *lab) ended(u *unit) {
	code, _ := u.node.Exited()
	l.log.Add("%s ended with code %d", u.node.ID, code)
	switch {
	case u.killed && code == -int(syscall.SIGKILL):
	case !u.termed.IsZero() && code == 0:
	case code == exitCannot && time.Since(u.thawed) < exitAfterThaw:
		l.cannotStop++
	default:
		log := u.node.Log()
		l.wrong("%s ended with code %d, and nobody had asked it to; its log ends with:\n%s", u.node.ID, code, log[max(0, len(log)-2000):])
	}
}

func (u *unit) kill() {
	u.killed = true
	u.node.Kill()
}

func (u *unit) thaw() {
	u.node.Thaw()
	if u.frozen { // not, if it was killed and started again
		u.frozen, u.thawed = false, time.Now()
	}
}
