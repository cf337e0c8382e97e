package baton

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Elector leads as [Lead] does, and answers questions meanwhile: of a health check, or of a part of
// the program that serves requests. Its methods may be called from several goroutines.
type Elector struct {
	lock   Lock
	busy   atomic.Bool
	leads  atomic.Pointer[func() bool] // nil: no term
	leader atomic.Pointer[string]
}

// NewElector prepares an election. It does not connect. Its error matches [ErrInvalid].
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

// Lead is the function [Lead]. There is one at a time for each Elector.
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

// IsLeader reports whether this process leads for certain, and the context of its work has not
// ended: see [Term.Trusted]. It sends no request.
func (e *Elector) IsLeader() bool {
	leads := e.leads.Load()
	return leads != nil && (*leads)()
}

// Leader is the name of the leading node, as this process last saw it; "" without a leader, or if
// another program's client holds the lock.
func (e *Elector) Leader() string {
	if name := e.leader.Load(); name != nil {
		return *name
	}
	return ""
}
