package elector

import (
	"time"

	"baton/internal/heartbeat"
)

const (
	// longestAcquireDelay bounds what [Config]'s AcquireDelay says: the others may be dead.
	longestAcquireDelay = 500 * time.Millisecond
	// freeAnewAfter is the age from which the lock must have been held in between, although this node has not seen that: it would have
	// asked for the lock meanwhile.
	freeAnewAfter = 3 * longestAcquireDelay / 2
)

// freeSince is since when the lock is free for all, if it is: since when nothing but its delay keeps this node from asking for it. Further
// hints do not restart it.
type freeSince struct {
	free bool
	at   heartbeat.Instant
}

// learn takes note of an answer other than Won.
func (v *freeSince) learn(a Answer, now heartbeat.Instant) {
	switch {
	case a.Outcome != Wait || a.Code != CodeLeft:
		*v = freeSince{} // held; or no node may have it yet, for a reason other than the delay
	case !v.lasts(now):
		*v = freeSince{free: true, at: now}
	}
}

// lasts reports whether the lock has been free since then.
func (v *freeSince) lasts(now heartbeat.Instant) bool { return v.free && now.Sub(v.at) < freeAnewAfter }

// acquireDelayLeft is how much longer a free lock is left to others. It counts from the moment when the lock was found free, whatever came
// since, but with the present value of AcquireDelay: this node may have won another lock meanwhile.
func (e *Elector) acquireDelayLeft() time.Duration {
	if e.cfg.AcquireDelay == nil {
		return 0
	}
	d := min(e.cfg.AcquireDelay(), longestAcquireDelay)
	if d <= 0 {
		return 0
	}
	if now := e.cfg.Clock(); e.since.lasts(now) {
		d -= now.Sub(e.since.at)
	}
	return max(d, 0)
}
