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

// Place is where locks are: every lock is an election, and all take place at
// the same venue.
type Place struct {
	venue Venue
	data  *redisconn.Store
}

// OpenPlace prepares to reach the place that the configuration names; it does not connect.
func OpenPlace(c config.Config) (*Place, error) {
	data, err := OpenRedis(c)
	if err != nil {
		return nil, err
	}
	v, err := Open(c, data)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	v.Share()
	return &Place{*v, data}, nil
}

// Close drops the connections.
func (p *Place) Close() error { return errors.Join(p.venue.Close(), p.data.Close()) }

// At is the venue of one lock's election.
func (p *Place) At(key string) *Venue { return p.venue.At(key) }

// Lock is this process' view of one lock.
func (p *Place) Lock(key, version string) (*AskedLock, error) {
	l, err := p.At(key).Lock(redislock.Presence{Version: version})
	return &AskedLock{NodeLock: l}, err
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
func (p *Place) Watch(ctx context.Context, watched []redislock.Watched) {
	for i := range watched {
		watched[i].Format = script.Format(p.venue.Config.Election.LockFormat)
	}
	var wg sync.WaitGroup
	for _, s := range p.venue.Stores {
		wg.Go(func() { redislock.WatchAll(ctx, s, watched...) })
	}
	wg.Wait()
}

// KeepNoted keeps a lock on the list of locks until ctx ends.
func (p *Place) KeepNoted(ctx context.Context, key string) {
	var wg sync.WaitGroup
	for _, s := range p.venue.Stores {
		again := make(chan struct{}, 1)
		again <- struct{}{}
		wg.Go(func() { redislock.KeepNoted(ctx, s, again, key) })
	}
	wg.Wait()
}

// Noted is the list of locks: see Venue.Noted.
func (p *Place) Noted(ctx context.Context) (map[string]bool, error) { return p.venue.Noted(ctx) }

// Picture is a lock as it is now.
func (p *Place) Picture(ctx context.Context, key string) (redislock.Picture, error) {
	return p.venue.picture(ctx, key)
}

// Pictures are locks as they are now: see Venue.Pictures.
func (p *Place) Pictures(ctx context.Context, keys []string) (_ map[string]redislock.Picture, unread, err error) {
	return p.venue.Pictures(ctx, keys)
}

// BreakUp takes a lock away, where it is held. It is done when a majority knows.
func (p *Place) BreakUp(ctx context.Context, key, reason string) (redislock.Broken, error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	views := make([]Election, len(p.venue.Stores))
	for i, s := range p.venue.Stores {
		views[i] = redislock.NewElection(s, key, script.Format(p.venue.Config.Election.LockFormat))
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
func (p *Place) Host() string { return p.venue.Host() }

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
