package baton

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrHeld is the error of [Lock.TryLock] if the lock is not free: another process holds it, or the
// election is paused. It gives the reason.
var ErrHeld = errors.New("baton: the lock is not free")

// Held is a lock that this process holds, from [Lock.Lock] or [Lock.TryLock] to [Held.Unlock]. It is
// renewed meanwhile. Its methods may be called from several goroutines.
type Held struct {
	Term

	lock    Lock
	context context.Context //nolint:containedctx // of the term, which outlives the call that began it
	stop    context.CancelCauseFunc
	unlock  func()
	taken   chan struct{} // closed when the lock is held
	over    chan struct{} // closed when Lead has returned
	err     error         // of Lead; read after over
	ended   Event         // of the term; read after over
}

// Lock waits until this process holds the lock. ctx bounds the waiting alone: its end gives up,
// and the error is its cause. A Redis that is away is waited for.
//
// It is [Lead] without a function, and keeps the same promises. [Held.Context] ends when the lock is
// no longer certain. The holder must call [Held.Unlock] within [Lock].Drain then; otherwise
// [Lock].OnOverrun ends the process.
func (l Lock) Lock(ctx context.Context) (*Held, error) {
	return l.hold(ctx, func(Event) error { return nil })
}

// TryLock takes the lock if it is free. Otherwise the error matches [ErrHeld], or says that Redis
// does not answer.
func (l Lock) TryLock(ctx context.Context) (*Held, error) {
	return l.hold(ctx, func(e Event) error {
		switch e.Kind {
		case EventFollowing:
			return fmt.Errorf("%w: %s", ErrHeld, "held by "+orForeign(e.Node))
		case EventWaiting:
			return fmt.Errorf("%w: %s", ErrHeld, e.Reason)
		case EventUnavailable:
			return fmt.Errorf("baton: whether lock %q is free is not known: %w", l.Key, e.Err)
		}
		return nil
	})
}

func orForeign(node string) string {
	if node == "" {
		return "a client that is none of baton's"
	}
	return node
}

// hold has this process lead in the background. It gives up with what refuse makes of an event.
func (l Lock) hold(ctx context.Context, refuse func(Event) error) (*Held, error) {
	if l.Observer {
		return nil, fmt.Errorf("%w: an Observer never holds the lock", ErrInvalid)
	}
	campaign, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	unlocked := make(chan struct{})
	h := &Held{lock: l.withDefaults(), stop: stop, taken: make(chan struct{}), over: make(chan struct{}),
		unlock: sync.OnceFunc(func() { close(unlocked) })}
	tell := h.lock.OnChange
	h.lock.OnChange = func(e Event) {
		tell(e)
		if err := refuse(e); err != nil && !h.isTaken() {
			stop(err)
		}
		if e.Kind == EventEnded {
			h.ended = e
		}
	}
	go func() {
		defer close(h.over)
		h.err = Lead(campaign, h.lock, func(ctx context.Context, term Term) error {
			h.Term, h.context = term, ctx
			close(h.taken)
			<-unlocked
			stop(ErrShuttingDown) // there is one term, and no other campaign after it
			return nil
		})
	}()
	select {
	case <-h.taken:
		return h, nil
	case <-h.over:
	case <-ctx.Done():
		stop(context.Cause(ctx))
	}
	h.unlock() // it may have been taken in this moment
	<-h.over
	if h.err != nil {
		return nil, h.err
	}
	return nil, fmt.Errorf("baton: lock %q is not taken: %w", l.Key, context.Cause(campaign))
}

func (h *Held) isTaken() bool {
	select {
	case <-h.taken:
		return true
	default:
		return false
	}
}

// Trusted is [Term.Trusted], and false after [Held.Unlock].
func (h *Held) Trusted() bool { return h.context.Err() == nil && h.Term.Trusted() }

// Context ends when the lock is no longer certain to be held, and at [Held.Unlock]. context.Cause
// says why.
func (h *Held) Context() context.Context { return h.context }

// Unlock gives the lock back. It returns when Redis has confirmed that, or ctx ends. [ErrLost] and
// [ErrExpired] say that the lock was not held to the end: another process may have held it since.
// Another error says that Redis did not confirm: the lock then expires within the TTL. A second call
// changes nothing, and returns the same.
func (h *Held) Unlock(ctx context.Context) error {
	h.unlock()
	select {
	case <-h.over:
	case <-ctx.Done():
		return fmt.Errorf("baton: lock %q is being given back: %w", h.lock.Key, context.Cause(ctx))
	}
	cause := context.Cause(h.context)
	switch {
	case h.err != nil:
		return h.err
	case errors.Is(cause, ErrLost), errors.Is(cause, ErrExpired):
		return fmt.Errorf("baton: lock %q: %w", h.lock.Key, cause)
	case !h.ended.Released:
		return fmt.Errorf("baton: lock %q is not known to be given back; it ends by itself within %v: %w",
			h.lock.Key, h.lock.TTL, errors.Join(errors.New(h.ended.Reason), h.ended.Err))
	}
	return nil
}
