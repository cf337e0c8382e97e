package quorum

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/elector"
)

// Renew implements elector.Lock. It returns as soon as a majority of the masters has renewed the lock, or can no longer do so. It
// does not wait for the slowest master.
func (l *Lock) Renew(ctx context.Context, owner string, epoch int64) (elector.Order, error) {
	l.term(owner, epoch)
	replies := ask(ctx, l, l.lanes, func(ctx context.Context, lock elector.Lock) (elector.Order, error) {
		return lock.Renew(ctx, owner, epoch)
	})
	var lost []*masterQueue
	var failed []failure
	renewed := 0
	silent := collect(ctx, len(l.lanes), l.opts.Timeout, replies, func(r reply[elector.Order]) bool {
		switch {
		case r.err == nil:
			renewed++
			l.ordered(owner, r.value)
		case errors.Is(r.err, elector.ErrLost):
			lost = append(lost, r.lane)
			fallthrough
		default:
			failed = append(failed, failure{r.lane.name, r.err})
		}
		return renewed >= l.majority || len(lost) > len(l.lanes)-l.majority
	})
	if len(lost) > len(l.lanes)-l.majority {
		// The elector does not release a lost lock, but the grants that remain at some masters would block other candidates.
		l.withdraw(ctx, owner, &ballot{doubtful: l.lanes})
		return elector.Order{}, l.tooFew("renew", renewed, 0, failed)
	}
	for _, ln := range lost {
		l.heal(ctx, ln, owner, epoch)
	}
	if silent > 0 {
		l.under.Go(func() {
			for range silent {
				switch r := <-replies; {
				case r.err == nil:
					l.ordered(owner, r.value)
				case errors.Is(r.err, elector.ErrLost):
					l.heal(ctx, r.lane, owner, epoch)
				}
			}
		})
	}
	if renewed < l.majority {
		return elector.Order{}, l.tooFew("renew", renewed, silent, failed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order, nil
}

// ordered records an order to step down from the reply of any master. Later renewals return the order, because the reply of that
// master may always arrive too late for its own renewal.
func (l *Lock) ordered(owner string, o elector.Order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leads == owner && o.StepDown && (!l.order.StepDown || l.order.To == "") {
		l.order = o
	}
}

// heal takes the lock again at one master that did not answer when the term began, or that has lost the lock since then. This
// master's lock counts from the next renewal on. After the end of the trust window the lock would count for no term, and it would keep the
// master from the next leader.
func (l *Lock) heal(ctx context.Context, ln *masterQueue, owner string, epoch int64) {
	ask(ctx, l, []*masterQueue{ln}, func(ctx context.Context, lock elector.Lock) (elector.Answer, error) {
		if !l.isTerm(owner) {
			return elector.Answer{}, nil // the lock has been released in the meantime
		}
		if err := elector.Expired(ctx); err != nil {
			return elector.Answer{}, err
		}
		return lock.Acquire(ctx, elector.Candidate{Owner: owner, Floor: max(epoch-1, 1)})
	})
}

// Release implements elector.Lock. It asks all masters and succeeds if a majority has confirmed the release.
func (l *Lock) Release(ctx context.Context, owner string, h elector.Handover) error {
	owner = l.alias(owner)
	first := l.spend(owner)
	good, failed, silent := every(ctx, l, l.lanes, func(ctx context.Context, lock elector.Lock) (struct{}, error) {
		return struct{}{}, lock.Release(ctx, owner, h)
	})
	if first && len(good) == len(l.lanes) {
		l.confirmed(owner)
	}
	if len(good) < l.majority {
		return l.tooFew("release", len(good), silent, failed)
	}
	return nil
}

// Raise implements elector.Lock.
func (l *Lock) Raise(ctx context.Context, owner string, floor int64) (int64, error) {
	good, failed, silent := every(ctx, l, l.lanes, func(ctx context.Context, lock elector.Lock) (elector.Answer, error) {
		epoch, err := lock.Raise(ctx, owner, floor)
		return elector.Answer{Epoch: epoch}, err
	})
	if len(good) < l.majority {
		return 0, l.tooFew(fmt.Sprintf("raise the epoch above %d", floor), len(good), silent, failed)
	}
	raised, err := l.record(ctx, owner, good)
	if err == nil && l.isTerm(owner) {
		l.term(owner, raised)
	}
	return raised, err
}
