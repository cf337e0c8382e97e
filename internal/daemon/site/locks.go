package site

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// Locks gives access to all locks of a configuration. Each lock is an election, and all elections take place in the same stores.
type Locks struct {
	stores LockStores
	data   *redisconn.Store
}

// OpenLocks prepares the access to all locks of a configuration, without connecting.
func OpenLocks(c config.Config) (*Locks, error) {
	data, err := OpenRedis(c)
	if err != nil {
		return nil, err
	}
	v, err := Open(c, data)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	v.Share()
	return &Locks{*v, data}, nil
}

// Close drops the connections.
func (l *Locks) Close() error { return errors.Join(l.stores.Close(), l.data.Close()) }

// ForLock returns the stores for the election of one lock.
func (l *Locks) ForLock(key string) *LockStores { return l.stores.ForLock(key) }

// Lock returns the lock with this key, for this process.
func (l *Locks) Lock(key, version string) (*AskedLock, error) {
	lock, err := l.ForLock(key).Lock(redislock.NodeInfo{Version: version})
	return &AskedLock{NodeLock: lock}, err
}

// AskedLock is a lock that records whether this process has ever asked for it. Only a process that has asked must later leave the list of
// nodes.
type AskedLock struct {
	NodeLock
	asked atomic.Bool
}

// Acquire implements elector.Lock.
func (l *AskedLock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	l.asked.Store(true)
	return l.NodeLock.Acquire(ctx, c)
}

// LeaveIfAsked removes this node from the list of nodes that want the lock. It does nothing if this node has never asked for the lock.
func (l *AskedLock) LeaveIfAsked(ctx context.Context) {
	if l.asked.Load() {
		_ = l.Leave(ctx) // if this fails the node stays on the list, and seems to be gone
	}
}

// Watch delivers hints about the watched locks until ctx ends.
func (l *Locks) Watch(ctx context.Context, watched []redislock.Watched) {
	for i := range watched {
		watched[i].Format = script.Format(l.stores.Config.Election.LockFormat)
	}
	var wg sync.WaitGroup
	for _, s := range l.stores.Stores {
		wg.Go(func() { redislock.WatchAll(ctx, s, watched...) })
	}
	wg.Wait()
}

// KeepNoted keeps a lock on the list of the locks in use until ctx ends.
func (l *Locks) KeepNoted(ctx context.Context, key string) {
	var wg sync.WaitGroup
	for _, s := range l.stores.Stores {
		again := make(chan struct{}, 1)
		again <- struct{}{}
		wg.Go(func() { redislock.KeepNoted(ctx, s, again, key) })
	}
	wg.Wait()
}

// Noted returns the locks in use: see LockStores.Noted.
func (l *Locks) Noted(ctx context.Context) (map[string]bool, error) { return l.stores.Noted(ctx) }

// State returns the present state of a lock.
func (l *Locks) State(ctx context.Context, key string) (redislock.ElectionState, error) {
	return l.stores.state(ctx, key)
}

// States returns the present states of locks: see LockStores.States.
func (l *Locks) States(ctx context.Context, keys []string) (_ map[string]redislock.ElectionState, unread, err error) {
	return l.stores.States(ctx, keys)
}

// BreakUp takes a lock away from its holder. It succeeds if a majority of the servers has removed the lock.
func (l *Locks) BreakUp(ctx context.Context, key, reason string) (redislock.Broken, error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	views := make([]Election, len(l.stores.Stores))
	for i, s := range l.stores.Stores {
		views[i] = redislock.NewElection(s, key, script.Format(l.stores.Config.Election.LockFormat))
	}
	answers, err := AskAll(views, func(one Election) (redislock.Broken, error) {
		b, err := one.(*redislock.Election).Break(ctx, reason)
		if errors.Is(err, redislock.ErrNotHeld) {
			err = nil
		}
		return b, err
	})
	if err != nil {
		return redislock.Broken{}, err
	}
	var broken redislock.Broken
	for _, b := range answers {
		if (b.Owner != "" || b.Forgotten) && b.Left >= broken.Left {
			broken = b
		}
	}
	if broken.Owner == "" && !broken.Forgotten {
		return broken, redislock.ErrNotHeld
	}
	return broken, nil
}

// Host returns the servers' addresses, for messages.
func (l *Locks) Host() string { return l.stores.Host() }

// HeldBy returns a text that says who holds the lock for which an elector waits.
func HeldBy(ev elector.Event) string {
	switch {
	case ev.Holder == "":
		return "held by a program that is not baton"
	case ev.Epoch == 0:
		return "held by " + ev.Holder
	}
	return fmt.Sprintf("held by %s, epoch %d", ev.Holder, ev.Epoch)
}

// ExitLockLost is the exit code of a process that lost its lock and whose command did not end in time.
const ExitLockLost = 76
