package site

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
)

// Noted returns the locks that a daemon, a library or the command `baton lock` holds or waits for now, or did so recently. If there are
// several stores, the answer of one store is enough.
func (l *LockStores) Noted(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var problems []error
	names := map[string]bool{}
	for _, s := range l.Stores {
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
	if len(problems) == len(l.Stores) {
		return nil, errors.Join(problems...)
	}
	return names, nil
}

func (l *LockStores) state(ctx context.Context, key string) (redislock.ElectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	return l.ForLock(key).Election().State(ctx, 0)
}

// stateOfAny reads the election of a lock, in whatever format the lock is stored.
func (l *LockStores) stateOfAny(ctx context.Context, key string) (redislock.ElectionState, error) {
	p, err := l.state(ctx, key)
	switch {
	case redisconn.IsDenied(err):
		return redislock.ElectionState{Forbidden: true}, nil
	case redisconn.IsWrongType(err):
		other := *l
		for _, format := range script.Formats() {
			other.Config.Election.LockFormat = string(format)
			if q, err := other.state(ctx, key); err == nil {
				return q, nil
			}
		}
	}
	return p, err
}

// statesAtOnce is the maximum number of elections that are read at the same time.
const statesAtOnce = 8

// States reads many elections, without their events. It also reads locks whose format differs from the configured format, and marks locks
// that this Redis user has no permission to read. The error unread names the locks that cannot be read for any other reason, such as a key
// of a wrong type. If Redis does not answer, States returns the error err immediately.
func (l *LockStores) States(ctx context.Context, keys []string) (states map[string]redislock.ElectionState, unread, err error) {
	var mu sync.Mutex
	states = map[string]redislock.ElectionState{}
	problems := map[string]error{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(statesAtOnce)
	for _, key := range keys {
		group.Go(func() error {
			p, err := l.stateOfAny(ctx, key)
			if err != nil && (ctx.Err() != nil || redisconn.Unavailable(err) != "") {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems[key] = err
			} else {
				states[key] = p
			}
			return nil
		})
	}
	err = group.Wait()
	var inOrder []error
	for _, key := range slices.Sorted(maps.Keys(problems)) {
		inOrder = append(inOrder, problems[key])
	}
	return states, errors.Join(inOrder...), err
}
