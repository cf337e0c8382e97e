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

// Locks reaches all locks of a configuration: each is an election, and all take place in
// the same stores.
type Locks struct {
	stores LockStores
	data   *redisconn.Store
}

// OpenLocks prepares to reach the locks of a configuration; it does not connect.
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

// ForLock has the stores, for the election of one lock.
func (l *Locks) ForLock(key string) *LockStores { return l.stores.ForLock(key) }

// Lock is this process' view of one lock.
func (l *Locks) Lock(key, version string) (*AskedLock, error) {
	lock, err := l.ForLock(key).Lock(redislock.Presence{Version: version})
	return &AskedLock{NodeLock: lock}, err
}

// AskedLock knows whether it was ever asked for: only then is there anything to leave.
type AskedLock struct {
	NodeLock
	asked atomic.Bool
}

// Acquire implements elector.Lock.
func (l *AskedLock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	l.asked.Store(true)
	return l.NodeLock.Acquire(ctx, c)
}

// LeaveIfAsked takes the node off the list of those who want the lock.
func (l *AskedLock) LeaveIfAsked(ctx context.Context) {
	if l.asked.Load() {
		_ = l.Leave(ctx) // if that fails the node stays on the list, and seems gone
	}
}

// Watch passes hints about locks on until ctx ends.
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

// KeepNoted keeps a lock on the list of locks until ctx ends.
func (l *Locks) KeepNoted(ctx context.Context, key string) {
	var wg sync.WaitGroup
	for _, s := range l.stores.Stores {
		again := make(chan struct{}, 1)
		again <- struct{}{}
		wg.Go(func() { redislock.KeepNoted(ctx, s, again, key) })
	}
	wg.Wait()
}

// Noted is the list of locks: see LockStores.Noted.
func (l *Locks) Noted(ctx context.Context) (map[string]bool, error) { return l.stores.Noted(ctx) }

// Picture is a lock as it is now.
func (l *Locks) Picture(ctx context.Context, key string) (redislock.Picture, error) {
	return l.stores.picture(ctx, key)
}

// Pictures are locks as they are now: see LockStores.Pictures.
func (l *Locks) Pictures(ctx context.Context, keys []string) (_ map[string]redislock.Picture, unread, err error) {
	return l.stores.Pictures(ctx, keys)
}

// BreakUp takes a lock away, where it is held. It is done when a majority knows.
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

// Host is the servers' addresses, for messages.
func (l *Locks) Host() string { return l.stores.Host() }

// HeldBy says who holds the lock that an elector waits for.
func HeldBy(ev elector.Event) string {
	switch {
	case ev.Holder == "":
		return "held by a program that is not baton"
	case ev.Epoch == 0:
		return "held by " + ev.Holder
	}
	return fmt.Sprintf("held by %s, epoch %d", ev.Holder, ev.Epoch)
}

// ExitLockLost is the exit code of a process whose command did not end in time
// when its lock was lost.
const ExitLockLost = 76
