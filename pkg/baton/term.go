package baton

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/elector"
)

// Term is one leadership of one process, from the moment when the process takes the lock until it stops leading.
type Term struct {
	term *elector.Term
	lock elector.Lock
}

// Epoch returns the fencing token. It is higher than the epochs of all earlier terms of this lock, in any process. Store it together with
// the leader's data, and make the store reject a lower epoch:
//
//	UPDATE report SET body = $1, epoch = $2 WHERE id = $3 AND epoch <= $2
//
// A process may be stopped in the middle of its term, and continue after another term has begun. With this condition the process can do no
// harm. During a term the epoch can rise ([Term.Raise]), but never fall.
func (t Term) Epoch() int64 { return t.term.Epoch() }

// Owner returns the term's UUID, which is the value of the lock key. It can only be compared for equality.
func (t Term) Owner() string { return t.term.Owner() }

// Node returns the name of this process.
func (t Term) Node() string { return t.term.NodeID() }

// Trusted reports whether this process certainly leads, and may begin an action. It sends no request. It decides by the lease that Redis
// has granted, and by a clock that does not stop during suspend. The context of the leader's function ends at the same moment. Call Trusted
// in the line before an action that cannot be undone.
func (t Term) Trusted() bool { return t.term.Trusted() }

// Remaining returns the time that is left until all work must have ended, unless the lease is renewed. It is never above the TTL, and it is
// 0 or negative after that time. Use it as the time limit of requests to other servers.
func (t Term) Remaining() time.Duration { return t.term.UntilHardStop() }

// Confirm asks Redis whether this term still holds the lock. It returns nil if the term still holds the lock. Use it before rare or
// expensive steps, because it needs a round trip to Redis. [ErrLost] means that the lock is lost, and any other error means that the answer
// is unknown.
func (t Term) Confirm(ctx context.Context) error {
	_, err := t.lock.Raise(ctx, t.Owner(), t.Epoch()-1)
	switch {
	case errors.Is(err, elector.ErrLost):
		return fmt.Errorf("baton: %w", ErrLost)
	case err != nil:
		return fmt.Errorf("baton: it is not known whether this process leads: %w", err)
	case !t.Trusted():
		return fmt.Errorf("baton: %w", ErrExpired)
	}
	return nil
}

// Raise raises the epoch above an epoch that a database has already recorded, for example after Redis has lost its data. It returns the new
// epoch. [ErrLost] means that this term no longer holds the lock.
func (t Term) Raise(ctx context.Context, above int64) (int64, error) {
	epoch, err := t.term.Raise(ctx, above)
	if errors.Is(err, elector.ErrLost) {
		return 0, fmt.Errorf("baton: %w", ErrLost)
	}
	if err != nil {
		return 0, fmt.Errorf("baton: %w", err)
	}
	return epoch, nil
}
