package elector

import (
	"time"

	"baton/internal/heartbeat"
)

const (
	// longestAcquireDelay limits the AcquireDelay of [Config], because the other nodes may be dead.
	longestAcquireDelay = 500 * time.Millisecond
	// freeAnewAfter limits the age of freeSince. If freeSince is older, this node concludes that another node held the lock in between and
	// that this node did not notice it. Otherwise this node would have asked for the lock.
	freeAnewAfter = 3 * longestAcquireDelay / 2
)

// freeSince is the time since which the lock has been free for all nodes, if it is free. Since this time only this node's own acquire delay
// keeps it from asking for the lock. Further hints do not restart the delay.
type freeSince struct {
	free bool
	at   heartbeat.Instant
}

// learn records an answer of the lock. It is called for all answers except Won.
func (v *freeSince) learn(a Answer, now heartbeat.Instant) {
	switch {
	case a.Outcome != Wait || a.Code != CodeLeft:
		*v = freeSince{} // the lock is held, or no node may have it yet for a reason other than the delay
	case !v.lasts(now):
		*v = freeSince{free: true, at: now}
	}
}

// lasts reports whether the lock has been free since the recorded time, without a time in between when it was held.
func (v *freeSince) lasts(now heartbeat.Instant) bool { return v.free && now.Sub(v.at) < freeAnewAfter }

// acquireDelayLeft returns how much longer this node leaves a free lock to other nodes. The delay counts from the moment when the lock was
// found free, whatever has happened since that moment. But the length of the delay is the present value of AcquireDelay, because this node
// may have won another lock in the meantime.
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
