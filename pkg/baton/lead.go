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

// These are the causes for the end of a leader's context. context.Cause returns them.
var (
	// ErrSteppedDown means that an operator has asked the leader to step down.
	ErrSteppedDown = elector.ErrSteppedDown
	// ErrLost means that this process no longer holds the lock.
	ErrLost = elector.ErrLeaseLost
	// ErrExpired means that no renewal was answered, and that the lease could end soon.
	ErrExpired = elector.ErrTrustClosed
	// ErrShuttingDown means that the context of Lead has ended.
	ErrShuttingDown = elector.ErrShuttingDown
)

// ErrDone can be returned by the function work of [Lead] to say that this work is finished permanently in this process.
var ErrDone = errors.New("done")

// Lead makes this process campaign for a lock until ctx ends, and runs the function work while this process leads. Lead returns when this
// function has returned and the lock is released.
//
// The context of work ends when this process must no longer lead; context.Cause returns the reason. work must then return within
// [Lock].Drain, and must leave nothing running. The lock is kept until work has returned. After that Lead campaigns again, or returns nil
// if ctx has ended. If work returns an error after its context has ended, the error is passed to [Lock].OnChange.
//
// If work returns before its context ends, this process steps down. The next step depends on the result of work:
//
//   - If work returns nil, Lead campaigns again, and lets other processes go first.
//   - If work returns [ErrDone], Lead returns nil.
//   - If work returns another error, Lead returns that error.
//
// If Redis does not answer, Lead does not return an error but continues to try. Other errors match [ErrInvalid], or say that the system
// provides no random numbers.
func Lead(ctx context.Context, lock Lock, work func(ctx context.Context, term Term) error) error {
	e, err := NewElector(lock)
	if err != nil {
		return err
	}
	return e.Lead(ctx, work)
}

// lead works like the function Lead, with a lock that was already checked.
func lead(ctx context.Context, lock Lock, work func(ctx context.Context, term Term) error) error {
	c := &candidate{lock: lock, work: work, hints: make(chan elector.Hint, 16)}
	if err := c.open(); err != nil {
		return errors.Join(err, c.close())
	}
	err := c.run(ctx)
	return errors.Join(err, c.close())
}

// candidate is the state of one call of Lead.
type candidate struct {
	lock      Lock
	work      func(context.Context, Term) error
	stores    []*redisconn.Store
	node      nodelock.Lock
	hints     chan elector.Hint
	listening atomic.Int32 // the number of stores whose messages are received

	returned error // the error that work returned before its context ended
}

// open prepares the connections to the servers of the lock, but does not connect yet.
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
	if o.NodeInfo.Instance, err = id.New(); err != nil {
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

// run campaigns until ctx ends, or until the function work has returned an error before its context ended.
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

// leave removes this node from the list of nodes in Redis. If Redis does not answer, the node stays in the list, and counts as gone after
// some time.
func (c *candidate) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.lock.Timeout)
	defer cancel()
	if err := c.node.Leave(ctx); err != nil {
		c.lock.Logger.Debug("cannot remove this node from the list of nodes", "lock", c.lock.Key, "error", err)
	}
}

func (l Lock) overrun(reason string) { l.OnOverrun(fmt.Sprintf("lock %q: %s", l.Key, reason)) }
