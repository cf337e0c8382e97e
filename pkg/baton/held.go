package baton

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrHeld means that [Lock.TryLock] did not get the lock, because another process holds the lock or the election is paused. The text of the
// error contains the reason.
var ErrHeld = errors.New("baton: the lock is not free")

// Held is a lock that this process holds, from [Lock.Lock] or [Lock.TryLock] until [Held.Unlock]. The lock is renewed until then. The
// methods of Held are safe for concurrent use.
type Held struct {
	Term

	lock    Lock
	context context.Context //nolint:containedctx // of the term, which outlives the call that began it
	stop    context.CancelCauseFunc
	unlock  func()
	taken   chan struct{} // closed when this process holds the lock
	over    chan struct{} // closed when Lead has returned
	err     error         // the error of Lead; read only after over is closed
	ended   Event         // the end of the term; read only after over is closed
}

// Lock waits until this process holds the lock. ctx limits only the wait: when ctx ends, Lock gives up and returns an error with the cause
// of ctx. If Redis does not answer, Lock continues to wait.
//
// Lock works like [Lead] without a function, and gives the same guarantees. [Held.Context] ends when this process can no longer be certain
// that it holds the lock. The caller must then call [Held.Unlock] within [Lock].Drain; otherwise [Lock].OnOverrun ends the process.
func (l Lock) Lock(ctx context.Context) (*Held, error) {
	return l.hold(ctx, func(Event) error { return nil })
}

// TryLock takes the lock if the lock is free. Otherwise it returns an error that matches [ErrHeld], or an error that says that Redis does
// not answer.
func (l Lock) TryLock(ctx context.Context) (*Held, error) {
	return l.hold(ctx, func(e Event) error {
		switch e.Kind {
		case EventFollowing:
			return fmt.Errorf("%w: %s", ErrHeld, "held by "+orForeign(e.Node))
		case EventWaiting:
			return fmt.Errorf("%w: %s", ErrHeld, e.Reason)
		case EventUnavailable:
			return fmt.Errorf("baton: it is not known whether lock %q is free: %w", l.Key, e.Err)
		}
		return nil
	})
}

func orForeign(node string) string {
	if node == "" {
		return "a client that is not baton"
	}
	return node
}

// hold makes this process lead in the background. If refuse returns an error for an event, hold gives up and returns that error.
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
			stop(ErrShuttingDown) // there is only one term, so the campaign must not continue
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
	h.unlock() // this process may have taken the lock at this moment
	<-h.over
	if h.err != nil {
		return nil, h.err
	}
	return nil, fmt.Errorf("baton: lock %q was not acquired: %w", l.Key, context.Cause(campaign))
}

func (h *Held) isTaken() bool {
	select {
	case <-h.taken:
		return true
	default:
		return false
	}
}

// Trusted works like [Term.Trusted]. After [Held.Unlock] it returns false.
func (h *Held) Trusted() bool { return h.context.Err() == nil && h.Term.Trusted() }

// Context returns a context that ends at [Held.Unlock], or when this process can no longer be certain that it holds the lock. context.Cause
// returns the reason.
func (h *Held) Context() context.Context { return h.context }

// Unlock releases the lock. It returns when Redis has confirmed the release, or when ctx ends. [ErrLost] and [ErrExpired] mean that this
// process had lost the lock before, so another process may have held it in the meantime. Any other error means that Redis did not confirm
// the release, and the lock then expires within the TTL. A second call has no effect and returns the same result.
func (h *Held) Unlock(ctx context.Context) error {
	h.unlock()
	select {
	case <-h.over:
	case <-ctx.Done():
		return fmt.Errorf("baton: lock %q is being released: %w", h.lock.Key, context.Cause(ctx))
	}
	cause := context.Cause(h.context)
	switch {
	case h.err != nil:
		return h.err
	case errors.Is(cause, ErrLost), errors.Is(cause, ErrExpired):
		return fmt.Errorf("baton: lock %q: %w", h.lock.Key, cause)
	case !h.ended.Released:
		return fmt.Errorf("baton: it is unknown whether lock %q was released; its lease ends within %v: %w",
			h.lock.Key, h.lock.TTL, errors.Join(errors.New(h.ended.Reason), h.ended.Err))
	}
	return nil
}
