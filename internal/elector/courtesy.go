package elector

import (
	"time"

	"baton/internal/heartbeat"
)

// longestCourtesy bounds what [Config]'s Courtesy says: the others may be dead.
const longestCourtesy = 500 * time.Millisecond

// vacancy is that the lock is free for all: since when nothing but courtesy keeps this
// node from asking for it. Hints that come meanwhile do not begin it anew.
type vacancy struct {
	free bool
	at   heartbeat.Instant
}

// learn takes note of an answer other than Won.
func (v *vacancy) learn(a Answer, now heartbeat.Instant) {
	switch {
	case a.Outcome != Wait || a.Reason != LeftToOthers:
		*v = vacancy{} // held; or nobody may have it yet, for a reason that lies elsewhere
	case !v.free:
		*v = vacancy{free: true, at: now}
	}
}

// courtesyLeft is how long the lock is left to others yet if it is free. It is counted
// from when the lock was found so, whatever came since, but by what Courtesy says now:
// this node may have won another lock meanwhile.
func (e *Elector) courtesyLeft() time.Duration {
	if e.cfg.Courtesy == nil {
		return 0
	}
	d := min(e.cfg.Courtesy(), longestCourtesy)
	if d <= 0 {
		return 0
	}
	if e.since.free {
		d -= e.cfg.Clock().Sub(e.since.at)
	}
	return max(d, 0)
}
