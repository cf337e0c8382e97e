package elector

import (
	"time"

	"baton/internal/heartbeat"
)

// lastLease is the longest lease that a leader may still trust, by what this node knows.
// Where a store has lost its data, no node may win before that is over.
//
// An earlier, longer lease counts for its own length from the last time that this node has seen it, and no longer: one of an hour, seen
// once, must not slow every failover. It lapses only at an answer of the store: a node that was cut off does not know which leader has
// renewed meanwhile.
type lastLease struct {
	length time.Duration
	until  heartbeat.Instant // when it may lapse; 0: this process has not seen it yet
}

// heard notes the lease of the present term.
func (l *lastLease) heard(length time.Duration, now heartbeat.Instant) {
	switch {
	case length <= 0:
	case length >= l.length, l.until != 0 && now >= l.until:
		*l = lastLease{length, now.Add(length)}
	case l.until == 0:
		l.until = now.Add(l.length)
	}
}
