package baton

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"baton/internal/elector"
	"baton/internal/id"
	"baton/internal/nodelock"
	"baton/internal/redisconn"
	"baton/internal/redislock"
)

// Why the context of a leader's function has ended: context.Cause of it.
var (
	// ErrSteppedDown: an operator has asked for it.
	ErrSteppedDown = elector.ErrSteppedDown
	// ErrLost: the lock is not this process's any more.
	ErrLost = elector.ErrLeaseLost
	// ErrExpired: no renewal was answered, and the lease could end soon.
	ErrExpired = elector.ErrTrustClosed
	// ErrShuttingDown: the context of Lead has ended.
	ErrShuttingDown = elector.ErrShuttingDown
)

// ErrDone is returned by a function if the work is done for good, on this process.
var ErrDone = errors.New("done")

// Lead has this process campaign for a lock, and runs work while it leads, until ctx ends. It
// returns when work has returned and the lock is given back.
//
// The context of work ends when this process is no longer to lead; context.Cause says why. work
// must return then, within [Lock].Drain, and leave nothing behind that goes on; the lock is kept
// until it has. After that Lead campaigns again, unless ctx has ended: Lead then returns nil. If
// work returns an error after its context has ended, the error goes to [Lock].OnChange.
//
// If work returns before its context ends, this process steps down:
//
//   - with nil it campaigns again, and lets the others go first;
//   - with [ErrDone] Lead returns nil;
//   - with another error Lead returns that error.
//
// A Redis that is away is no error: Lead goes on trying. Other errors match [ErrInvalid], or say
// that the system has no random numbers.
func Lead(ctx context.Context, lock Lock, work func(ctx context.Context, term Term) error) error {
	e, err := NewElector(lock)
	if err != nil {
		return err
	}
	return e.Lead(ctx, work)
}

// lead is Lead with a lock that was checked.
func lead(ctx context.Context, lock Lock, work func(ctx context.Context, term Term) error) error {
	c := &candidate{lock: lock, work: work, hints: make(chan elector.Hint, 16)}
	if err := c.open(); err != nil {
		return errors.Join(err, c.close())
	}
	err := c.run(ctx)
	return errors.Join(err, c.close())
}

// candidate is one call of Lead.
type candidate struct {
	lock      Lock
	work      func(context.Context, Term) error
	stores    []*redisconn.Store
	node      nodelock.Lock
	hints     chan elector.Hint
	listening atomic.Int32 // to how many stores

	returned error // by the work, on its own
}

// open prepares the connections; it does not connect.
func (c *candidate) open() error {
	servers, _ := c.lock.servers()
	for _, r := range servers {
		store, err := r.open(c.lock)
		if err != nil {
			return err
		}
		c.stores = append(c.stores, store)
	}
	o := c.lock.options()
	var err error
	if o.Presence.Instance, err = id.New(); err != nil {
		return fmt.Errorf("baton: %w", err)
	}
	if c.node, err = nodelock.New(c.stores, nil, o); err != nil {
		return fmt.Errorf("%w: Key: %w", ErrInvalid, err)
	}
	return nil
}

func (c *candidate) close() error {
	if c.node != nil {
		c.node.Close()
	}
	var problems []error
	for _, s := range c.stores {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

// run campaigns until ctx ends, or the work is done.
func (c *candidate) run(ctx context.Context) error {
	ctx, finish := context.WithCancelCause(ctx)
	defer finish(nil)
	observer := &observer{lock: c.lock}
	election, err := elector.New(c.node, func(ctx context.Context, t *elector.Term) error {
		err := c.work(ctx, Term{term: t, lock: c.node})
		if err != nil && ctx.Err() == nil {
			c.returned = err
			finish(elector.ErrDone)
		}
		return err
	}, elector.Config{
		NodeID: c.lock.Node, Timing: c.lock.timing(), PollInterval: c.lock.Poll, NewOwner: id.New, Die: c.lock.overrun,
		Observer: func() bool { return c.lock.Observer }, Observe: observer.observe, HintSpread: nodelock.Spread(len(c.stores)),
		Hints: c.hints, Hinted: func() bool { return int(c.listening.Load()) == len(c.stores) },
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, s := range c.stores {
		watched := redislock.Watched{LockKey: c.lock.Key, Format: c.lock.format(), Hints: c.hints, Listening: &c.listening, Noted: true}
		wg.Go(func() { redislock.WatchAll(beside, s, watched) })
	}
	err = election.Run(ctx)
	stop()
	c.leave(ctx)
	wg.Wait()
	if err != nil {
		return fmt.Errorf("baton: %w", err)
	}
	if errors.Is(c.returned, ErrDone) {
		return nil
	}
	return c.returned
}

// leave takes this node off the list of nodes. If Redis is away it stays there, and seems gone.
func (c *candidate) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.lock.Timeout)
	defer cancel()
	if err := c.node.Leave(ctx); err != nil {
		c.lock.Logger.Debug("this node stays on the list of nodes", "lock", c.lock.Key, "error", err)
	}
}

func (l Lock) overrun(reason string) { l.OnOverrun(fmt.Sprintf("lock %q: %s", l.Key, reason)) }
