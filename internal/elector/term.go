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
}

// Owner is the term's UUID, the value of the lock key.
func (t *Term) Owner() string { return t.owner }

// NodeID names the node that leads.
func (t *Term) NodeID() string { return t.nodeID }

// Epoch is the fencing token. It can rise during a term ([Term.Raise]), never fall.
func (t *Term) Epoch() int64 { return t.epoch.Load() }

// Trusted reports whether something may still be started.
func (t *Term) Trusted() bool { return t.window.Trusted() }

// UntilHardStop is the time left in which what runs must have ended; zero or less
// when it has passed.
func (t *Term) UntilHardStop() time.Duration { return t.window.UntilHard() }

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
