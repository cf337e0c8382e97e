package elector

import (
	"time"

	"baton/internal/heartbeat"
)

// lastLease is the longest lease that a leader may still trust, by what this node knows.
// Where a store has lost its data, no node may win before that is over.
//
// A lease that was longer than the one heard of now counts for as long as it may last from
// the last time that it was heard of, and no longer: one of an hour, seen once, must not
// slow every failover. It lapses only when the store is heard: a node that was cut off
// does not know who has renewed meanwhile.
type lastLease struct {
	length time.Duration
	until  heartbeat.Instant // when it may lapse; 0: nothing was heard of it in this process
}

// heard notes the lease of the term that goes on now.
func (l *lastLease) heard(length time.Duration, now heartbeat.Instant) {
	switch {
	case length <= 0:
	case length >= l.length, l.until != 0 && now >= l.until:
		*l = lastLease{length, now.Add(length)}
	case l.until == 0:
		l.until = now.Add(l.length)
	}
}
