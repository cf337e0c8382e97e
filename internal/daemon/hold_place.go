package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// lockPlace is where locks are: every lock is an election, and all take place at
// the same venue.
type lockPlace struct {
	venue site.Venue
	data  *redisconn.Store
}

func openLockPlace(c config.Config) (*lockPlace, error) {
	data, err := site.OpenRedis(c)
	if err != nil {
		return nil, err
	}
	v, err := site.Open(c, data)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	v.Share()
	return &lockPlace{*v, data}, nil
}

func (p *lockPlace) close() error { return errors.Join(p.venue.Close(), p.data.Close()) }

// at is the venue of one lock's election.
func (p *lockPlace) at(key string) *site.Venue { return p.venue.At(key) }

// lock is this process' view of one lock.
func (p *lockPlace) lock(key, version string) (*askedLock, error) {
	l, err := p.at(key).Lock(redislock.Presence{Version: version})
	return &askedLock{NodeLock: l}, err
}

// askedLock knows whether it was ever asked for: only then is there anything to leave.
type askedLock struct {
	site.NodeLock
	asked atomic.Bool
}

// Acquire implements elector.Lock.
func (l *askedLock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	l.asked.Store(true)
	return l.NodeLock.Acquire(ctx, c)
}

// leaveIfAsked takes the node off the list of those who want the lock.
func (l *askedLock) leaveIfAsked(ctx context.Context) {
	if l.asked.Load() {
		_ = l.Leave(ctx) // if that fails the node stays on the list, and looks gone
	}
}

// watch passes hints about locks on until ctx ends.
func (p *lockPlace) watch(ctx context.Context, watched []redislock.Watched) {
	for i := range watched {
		watched[i].Format = script.Format(p.venue.Config.Election.LockFormat)
	}
	var wg sync.WaitGroup
	for _, s := range p.venue.Stores {
		wg.Go(func() { redislock.WatchAll(ctx, s, watched...) })
	}
	wg.Wait()
}

// note puts a lock on the list of those that are held.
func (p *lockPlace) note(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range p.venue.Stores {
		wg.Go(func() { _ = redislock.NoteLock(ctx, s, key, time.Now()) }) // a courtesy
	}
	wg.Wait()
}

// noted is the list of names that are, or were lately, held. Of several stores each
// knows enough.
func (p *lockPlace) noted(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var problems []error
	names := map[string]bool{}
	for _, s := range p.venue.Stores {
		wg.Go(func() {
			some, err := redislock.NotedLocks(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems = append(problems, err)
			}
			for _, name := range some {
				names[name] = true
			}
		})
	}
	wg.Wait()
	if len(problems) == len(p.venue.Stores) {
		return nil, errors.Join(problems...)
	}
	return names, nil
}

// picture is a lock as it is now.
func (p *lockPlace) picture(ctx context.Context, key string) (redislock.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	return p.at(key).Election().Picture(ctx, 0)
}

// breakUp takes a lock away, where it is held. It is done when a majority knows.
func (p *lockPlace) breakUp(ctx context.Context, key, reason string) (redislock.Broken, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	views := make([]site.Election, len(p.venue.Stores))
	for i, s := range p.venue.Stores {
		views[i] = redislock.NewElection(s, key, script.Format(p.venue.Config.Election.LockFormat))
	}
	answers, err := site.AskAll(views, func(one site.Election) (redislock.Broken, error) {
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

// host is the servers' addresses, for messages.
func (p *lockPlace) host() string { return p.venue.Host() }

// heldBy says who holds the lock that an elector waits for.
func heldBy(ev elector.Event) string {
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
