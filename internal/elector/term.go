package elector

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"baton/internal/heartbeat"
)

// Term is one unbroken leadership of one node, handed to the LeadFunc.
type Term struct {
	lock   Lock
	owner  string
	nodeID string
	epoch  atomic.Int64
	window *heartbeat.Window

	freeSince heartbeat.Instant // no leader gave a sign of life from then until this term; 0: not known

	closed  chan struct{}
	settled atomic.Bool
}

// Owner is the term's UUID, the value of the lock key.
func (t *Term) Owner() string { return t.owner }

// NodeID names the node that leads.
func (t *Term) NodeID() string { return t.nodeID }

// Epoch is the fencing token. It can rise during a term ([Term.Raise]), never fall.
func (t *Term) Epoch() int64 { return t.epoch.Load() }

// FreeFor is how long ago the last leader released the lock, or last renewed a lease that ran out; zero: unknown, or this term
// has followed another at once.
func (t *Term) FreeFor() time.Duration {
	if t.freeSince == 0 {
		return 0
	}
	return t.window.Now().Sub(t.freeSince)
}

// Trusted reports whether the work may still start anything.
func (t *Term) Trusted() bool { return t.window.Trusted() }

// Overdue reports whether the renewal of the lease has waited too long for its answer: work that can wait should leave the processors to
// it.
func (t *Term) Overdue() bool { return t.window.Overdue() }

// Closed is closed when the work may start nothing any more: the soft stop has passed, or the lease is lost. Work that was cancelled
// earlier, for another reason, learns it from this.
func (t *Term) Closed() <-chan struct{} { return t.closed }

// UntilHardStop is the time left until running work must have ended; zero or less when it has passed.
func (t *Term) UntilHardStop() time.Duration { return t.window.UntilHard() }

// Settle marks the term's work as harmless: nothing that it started can change anything any more, and the rest of it only records how it
// ended. From then on the process does not end at the hard stop because of work that has not returned.
func (t *Term) Settle() { t.settled.Store(true) }

// Raise lifts the epoch above floor, because a database has already recorded
// floor: Redis was rewound or lost its data. The store verifies that the lock is
// still ours; ErrLost if not.
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
