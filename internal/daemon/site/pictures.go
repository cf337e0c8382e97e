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

// Noted is the list of the locks that a daemon, a library or baton lock holds or wants, or did
// lately. Each of several stores knows enough.
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

func (l *LockStores) picture(ctx context.Context, key string) (redislock.Picture, error) {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	return l.ForLock(key).Election().Picture(ctx, 0)
}

// pictureOfAny reads an election whose lock has any format.
func (l *LockStores) pictureOfAny(ctx context.Context, key string) (redislock.Picture, error) {
	p, err := l.picture(ctx, key)
	switch {
	case redisconn.IsDenied(err):
		return redislock.Picture{Forbidden: true}, nil
	case redisconn.IsWrongType(err):
		other := *l
		for _, format := range script.Formats() {
			other.Config.Election.LockFormat = string(format)
			if q, err := other.picture(ctx, key); err == nil {
				return q, nil
			}
		}
	}
	return p, err
}

// picturesAtOnce is how many elections are read at a time.
const picturesAtOnce = 8

// Pictures reads many elections, without their events. A lock may have another format than the
// configuration's, and this user of Redis may lack the permission to read it. unread tells of the
// others that cannot be read, such as a key of another type. A Redis that does not answer ends it
// at once: err.
func (l *LockStores) Pictures(ctx context.Context, keys []string) (pictures map[string]redislock.Picture, unread, err error) {
	var mu sync.Mutex
	pictures = map[string]redislock.Picture{}
	problems := map[string]error{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(picturesAtOnce)
	for _, key := range keys {
		group.Go(func() error {
			p, err := l.pictureOfAny(ctx, key)
			if err != nil && (ctx.Err() != nil || redisconn.Unavailable(err) != "") {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems[key] = err
			} else {
				pictures[key] = p
			}
			return nil
		})
	}
	err = group.Wait()
	var inOrder []error
	for _, key := range slices.Sorted(maps.Keys(problems)) {
		inOrder = append(inOrder, problems[key])
	}
	return pictures, errors.Join(inOrder...), err
}
