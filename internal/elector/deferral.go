package elector

import (
	"time"

	"baton/internal/heartbeat"
)

const (
	// longestDeferral bounds what [Config]'s Deferral says: the others may be dead.
	longestDeferral = 500 * time.Millisecond
	// anotherVacancy is the age from which a vacancy is over, although this node has not
	// seen who ended it: it would have asked for the lock meanwhile.
	anotherVacancy = 3 * longestDeferral / 2
)

// vacancy is that the lock is free for all: since when nothing but deferral keeps this
// node from asking for it. Hints that come meanwhile do not begin it anew.
type vacancy struct {
	free bool
	at   heartbeat.Instant
}

// learn takes note of an answer other than Won.
func (v *vacancy) learn(a Answer, now heartbeat.Instant) {
	switch {
	case a.Outcome != Wait || a.Code != CodeLeft:
		*v = vacancy{} // held; or nobody may have it yet, for a reason that lies elsewhere
	case !v.lasts(now):
		*v = vacancy{free: true, at: now}
	}
}

// lasts reports whether it is the same vacancy still.
func (v *vacancy) lasts(now heartbeat.Instant) bool { return v.free && now.Sub(v.at) < anotherVacancy }

// courtesyLeft is how long the lock is left to others yet if it is free. It is counted
// from when the lock was found so, whatever came since, but by what Deferral says now:
// this node may have won another lock meanwhile.
func (e *Elector) courtesyLeft() time.Duration {
	if e.cfg.Deferral == nil {
		return 0
	}
	d := min(e.cfg.Deferral(), longestDeferral)
	if d <= 0 {
		return 0
	}
	if now := e.cfg.Clock(); e.since.lasts(now) {
		d -= now.Sub(e.since.at)
	}
	return max(d, 0)
}
