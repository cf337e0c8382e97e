package baton

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Elector leads as [Lead] does, and also answers questions about the election. It is useful for a health check, or for a part of the
// program that serves requests. Its methods are safe for concurrent use.
type Elector struct {
	lock   Lock
	busy   atomic.Bool
	leads  atomic.Pointer[func() bool] // nil if there is no term
	leader atomic.Pointer[string]
}

// NewElector returns an Elector for a lock. It does not connect to Redis. If the lock is invalid, the error matches [ErrInvalid].
func NewElector(lock Lock) (*Elector, error) {
	lock = lock.withDefaults()
	if err := lock.check(); err != nil {
		return nil, err
	}
	e := &Elector{lock: lock}
	tell := lock.OnChange
	e.lock.OnChange = func(ev Event) {
		switch ev.Kind {
		case EventLeading, EventFollowing:
			e.leader.Store(&ev.Node)
		case EventWaiting, EventEnded:
			e.leader.Store(nil)
		}
		tell(ev)
	}
	return e, nil
}

// Lead works like the function [Lead]. Only one call at a time is allowed for each Elector.
func (e *Elector) Lead(ctx context.Context, work func(ctx context.Context, term Term) error) error {
	if work == nil {
		return fmt.Errorf("%w: there is no function to run", ErrInvalid)
	}
	if !e.busy.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: this Elector campaigns already", ErrInvalid)
	}
	defer e.busy.Store(false)
	defer e.leader.Store(nil)
	return lead(ctx, e.lock, func(ctx context.Context, term Term) error {
		leads := func() bool { return ctx.Err() == nil && term.Trusted() }
		e.leads.Store(&leads)
		defer e.leads.Store(nil)
		return work(ctx, term)
	})
}

// IsLeader reports whether this process certainly leads (see [Term.Trusted]) and the context of its work has not ended. It sends no
// request.
func (e *Elector) IsLeader() bool {
	leads := e.leads.Load()
	return leads != nil && (*leads)()
}

// Leader returns the name of the leading node that this process has seen last. It returns "" if there is no leader, or if a client of
// another program holds the lock.
func (e *Elector) Leader() string {
	if name := e.leader.Load(); name != nil {
		return *name
	}
	return ""
}
