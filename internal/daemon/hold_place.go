package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/quorum"
	"baton/internal/redisstore"
)

// lockPlace is where locks are: one Redis deployment, or the masters of a quorum.
type lockPlace struct {
	config config.Config
	stores []*redisstore.Store
}

func openLockPlace(c config.Config) (lockPlace, error) {
	p := lockPlace{config: c}
	deployments := c.Redis.Masters()
	if len(deployments) == 0 {
		deployments = []config.Redis{c.Redis}
	}
	for _, d := range deployments {
		c.Redis = d
		store, err := openRedis(c)
		if err != nil {
			return p, errors.Join(err, p.close())
		}
		p.stores = append(p.stores, store)
	}
	return p, nil
}

func (p lockPlace) close() error {
	var problems []error
	for _, s := range p.stores {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

// host names the place, for messages.
func (p lockPlace) host() string {
	if len(p.stores) > 1 {
		return fmt.Sprintf("%s and %d others", p.stores[0].Host(), len(p.stores)-1)
	}
	return p.stores[0].Host()
}

// lock is this process' view of one lock, and how to leave the list of those who
// want it.
func (p lockPlace) lock(key, version string) (elector.Lock, func(context.Context), error) {
	o := lockOptions(p.config)
	o.Key, o.Presence = key, redisstore.Presence{Version: version}
	var locks []elector.Lock
	var views []*redisstore.Lock
	for _, s := range p.stores {
		l, err := redisstore.NewLock(s, o)
		if err != nil {
			return nil, nil, err
		}
		locks, views = append(locks, l), append(views, l)
	}
	if len(locks) == 1 {
		asked := &askedLock{Lock: locks[0]}
		return asked, func(ctx context.Context) {
			if asked.asked.Load() {
				_ = views[0].Leave(ctx) // else the node stays on the list
			}
		}, nil
	}
	lock, err := quorum.New(locks, quorum.Options{TTL: o.TTL, NewOwner: newID})
	return lock, func(context.Context) { // not worth waiting for a master that is away
		for _, v := range views {
			v.Close()
		}
	}, err
}

// askedLock knows whether it was ever asked for: only then is there anything to leave.
type askedLock struct {
	elector.Lock
	asked atomic.Bool
}

// Acquire implements elector.Lock.
func (l *askedLock) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	l.asked.Store(true)
	return l.Lock.Acquire(ctx, c)
}

// watch passes hints about the keys on until ctx ends.
func (p lockPlace) watch(ctx context.Context, keys []string, hints chan<- elector.Hint) {
	var wg sync.WaitGroup
	for _, s := range p.stores {
		for _, key := range keys {
			wg.Go(func() { s.Watch(ctx, key, hints) })
		}
	}
	wg.Wait()
}

// note puts a lock on the list of those that are held.
func (p lockPlace) note(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	for _, s := range p.stores {
		_ = s.NoteLock(ctx, key, time.Now()) // a courtesy
	}
}

// owner is who holds a lock, "" if nobody does.
func (p lockPlace) owner(ctx context.Context, key string) (string, error) {
	picture, err := p.picture(ctx, key)
	return picture.Owner, err
}

// picture is a lock as most of the stores show it. Where no majority agrees on an
// owner nobody holds it.
func (p lockPlace) picture(ctx context.Context, key string) (redisstore.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var pictures []redisstore.Picture
	var problems []error
	for _, s := range p.stores {
		picture, err := p.election(s, key).Picture(ctx, 0)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		pictures = append(pictures, picture)
	}
	majority := len(p.stores)/2 + 1
	if len(pictures) < majority {
		return redisstore.Picture{}, errors.Join(problems...)
	}
	for _, one := range pictures {
		votes := 0
		for _, other := range pictures {
			if other.Owner == one.Owner {
				votes++
			}
		}
		if votes >= majority {
			return one, nil
		}
	}
	return redisstore.Picture{Now: pictures[0].Now}, nil
}

func (p lockPlace) election(s *redisstore.Store, key string) *redisstore.Election {
	return redisstore.NewElection(s, key, redisstore.Format(p.config.Election.LockFormat))
}
