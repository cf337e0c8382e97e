package elector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"baton/internal/heartbeat"
)

// Term is one period in which one node leads without interruption. The elector passes it to the LeadFunc.
type Term struct {
	lock   Lock
	owner  string
	nodeID string
	epoch  atomic.Int64
	window *heartbeat.Window

	freeSince heartbeat.Instant // from this time until this term began, no leader gave a sign of life; 0: not known

	closed  chan struct{}
	working working
}

// Owner returns the term's UUID, which is the value of the lock key.
func (t *Term) Owner() string { return t.owner }

// NodeID returns the name of the node that leads.
func (t *Term) NodeID() string { return t.nodeID }

// Epoch returns the epoch of the term, which is its fencing token. The epoch can rise during a term ([Term.Raise]), but never falls.
func (t *Term) Epoch() int64 { return t.epoch.Load() }

// FreeFor returns the time since the last leader released the lock. If the last leader's lease ran out, the time counts from its last
// renewal. If the lock was free in a quarantine, it counts from then on. It returns zero if this time is unknown, or if this term began
// directly after another term.
func (t *Term) FreeFor() time.Duration {
	if t.freeSince == 0 {
		return 0
	}
	return t.window.Now().Sub(t.freeSince)
}

// Trusted reports whether the lease is still trusted, so that the work may start something.
func (t *Term) Trusted() bool { return t.window.Trusted() }

// Overdue reports whether the renewal of the lease has waited too long for its answer. Work that can wait should then leave the
// processors to the renewal.
func (t *Term) Overdue() bool { return t.window.Overdue() }

// Closed returns a channel that is closed when the work must not start anything any more: the soft stop has passed, or the lease is lost.
// If the work was cancelled earlier for another reason, the channel also tells it when it must not start anything any more.
func (t *Term) Closed() <-chan struct{} { return t.closed }

// UntilHardStop returns how much time is left until the hard stop, when work that is in progress must have ended. It is zero or less after
// the hard stop.
func (t *Term) UntilHardStop() time.Duration { return t.window.UntilHard() }

// Begin begins a piece of work that can change something. It returns false if the work must not begin, because the term is over or is
// about to end. Otherwise the caller must call End when the work can no longer change anything. Only a LeadFunc that counts its work
// ([Config].Counts) needs Begin and End.
func (t *Term) Begin() bool { return t.Trusted() && t.working.begin() }

// End ends a piece of work.
func (t *Term) End() { t.working.end() }

// Raise lifts the term's epoch above the argument floor. It is called when a database has already recorded the epoch floor, because Redis
// was rewound or lost its data. The store verifies that this term still holds the lock. If the term does not hold the lock, Raise returns
// ErrLost.
func (t *Term) Raise(ctx context.Context, floor int64) (int64, error) {
	if e := t.epoch.Load(); e > floor {
		return e, nil
	}
	epoch, err := t.lock.Raise(ctx, t.owner, floor)
	if err != nil {
		return 0, fmt.Errorf("raise the epoch above %d: %w", floor, err)
	}
	for old := t.epoch.Load(); old < epoch; old = t.epoch.Load() {
		if t.epoch.CompareAndSwap(old, epoch) {
			break
		}
	}
	return t.epoch.Load(), nil
}
