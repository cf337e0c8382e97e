package baton

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/elector"
)

// Term is one leadership of one process, from the win to the end.
type Term struct {
	term *elector.Term
	lock elector.Lock
}

// Epoch is the fencing token: it is higher than that of every earlier term of this lock, by whatever
// process. Store it with the leader's data, and let the store refuse a lower one:
//
//	UPDATE report SET body = $1, epoch = $2 WHERE id = $3 AND epoch <= $2
//
// A process that was stopped in the middle of its term, and goes on after another one has begun,
// can then do no harm. Within a term it can rise ([Term.Raise]), and never falls.
func (t Term) Epoch() int64 { return t.term.Epoch() }

// Owner is the term's UUID: the value of the lock key, and a token that can only be compared for equality.
func (t Term) Owner() string { return t.term.Owner() }

// Node is the name of this process.
func (t Term) Node() string { return t.term.NodeID() }

// Trusted reports whether this process leads for certain, and may begin something. It sends no request:
// it goes by the lease that Redis has granted, and by a clock that does not stop in suspend. The context of
// the function ends at that moment, too; this is for the line before something that cannot be
// taken back.
func (t Term) Trusted() bool { return t.term.Trusted() }

// Remaining is the time left until everything must have ended, unless the lease is renewed before. It
// is never above the TTL, and 0 or less when it is over. It is a bound for requests to others.
func (t Term) Remaining() time.Duration { return t.term.UntilHardStop() }

// Confirm asks Redis whether the lock is still this term's: nil if it is. Use it before rare or costly
// steps, where a round trip does not matter. [ErrLost] says that the lock is lost; any other error
// leaves it open.
func (t Term) Confirm(ctx context.Context) error {
	_, err := t.lock.Raise(ctx, t.Owner(), t.Epoch()-1)
	switch {
	case errors.Is(err, elector.ErrLost):
		return fmt.Errorf("baton: %w", ErrLost)
	case err != nil:
		return fmt.Errorf("baton: whether this process leads is not known: %w", err)
	case !t.Trusted():
		return fmt.Errorf("baton: %w", ErrExpired)
	}
	return nil
}

// Raise lifts the epoch above one that a database has recorded already, as after Redis has lost its
// data. It returns the new one. [ErrLost] says that the lock is not this term's any more.
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
