package chaos

import (
	"fmt"
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
	up     []time.Time
	down   []time.Time // as many as up while it does not run, else one less
}

// supervise looks after the nodes once: it tells how they ended, and starts them again.
func (l *lab) supervise() {
	for _, u := range l.units {
		now := time.Now()
		switch {
		case u.node.Running():
			if !u.termed.IsZero() && !u.frozen && now.Sub(u.termed) > termWithin && now.Sub(u.thawed) > termWithin {
				l.wrong("%s has not ended %v after SIGTERM", u.node.ID, termWithin)
				l.kill(u)
			}
		case len(u.down) < len(u.up):
			l.ended(u)
			u.down = append(u.down, now)
		case now.Sub(u.down[len(u.down)-1]) >= restartAfter:
			l.launch(u)
		}
	}
}

func (l *lab) launch(u *unit) {
	u.node.Start()
	u.frozen, u.killed, u.termed, u.thawed = false, false, time.Time{}, time.Time{}
	u.up = append(u.up, time.Now())
	l.probes.at(u.node.ID, u.node.URL())
	l.log.add("%s runs again", u.node.ID)
}

// ended tells how a node's process ended, and whether it may have.
func (l *lab) ended(u *unit) {
	l.probes.at(u.node.ID, "")
	code, _ := u.node.Exited()
	how := fmt.Sprintf("%s ended with code %d", u.node.ID, code)
	switch {
	case u.killed && code == -int(syscall.SIGKILL):
	case !u.termed.IsZero() && code == 0:
	case code == exitCannot && time.Since(u.thawed) < exitAfterThaw:
		l.cannotStop++
		how += ": it woke up beyond its lease and could not stop"
	default:
		l.wrong("%s, and nobody had asked it to; its log ends with:\n%s", how, tail(u.node.Log(), 2000))
	}
	l.log.add("%s", how)
}

func (l *lab) kill(u *unit) {
	u.killed = true
	l.probes.at(u.node.ID, "")
	u.node.Kill()
}

// wrong notes what must not be. The test goes on: the rest may tell why.
func (l *lab) wrong(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.log.add("WRONG: %s", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongs = append(l.wrongs, text)
}

func tail(text string, most int) string {
	if len(text) > most {
		return "..." + text[len(text)-most:]
	}
	return text
}
