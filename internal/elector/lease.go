package elector

import (
	"time"

	"baton/internal/heartbeat"
)

// lastLease is the longest lease that a leader may still trust, as far as this node knows. If a store has lost its data, no node may
// win before that lease is over.
//
// A longer lease that this node saw earlier counts only as long as it lasts, beginning when this node last saw it. Otherwise a lease of an
// hour that was seen once would delay every later failover. Such a lease lapses only when the store answers. The reason is that a node that
// was cut off does not know which leader has renewed in the meantime.
type lastLease struct {
	length time.Duration
	until  heartbeat.Instant // when the lease may lapse; 0: this process has not seen the lease yet
}

// heard records the length of the present term's lease.
func (l *lastLease) heard(length time.Duration, now heartbeat.Instant) {
	switch {
	case length <= 0:
	case length >= l.length, l.until != 0 && now >= l.until:
		*l = lastLease{length, now.Add(length)}
	case l.until == 0:
		l.until = now.Add(l.length)
	}
}
