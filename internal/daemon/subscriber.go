package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"baton/internal/daemon/work"
	"baton/internal/redisconn"
	"baton/internal/redislock"
)

// subscriber has the hints of all elections of a node come over one connection to each server.
type subscriber struct {
	changed chan struct{} // has room for one

	mu      sync.Mutex
	watched map[*redisconn.Store][]redislock.Watched
}

// joinTogether is how long those are waited for that begin at the same time.
const joinTogether = 10 * time.Millisecond

func newSubscriber() *subscriber {
	return &subscriber{changed: make(chan struct{}, 1), watched: map[*redisconn.Store][]redislock.Watched{}}
}

func (l *subscriber) add(s *redisconn.Store, w redislock.Watched) {
	l.mu.Lock()
	l.watched[s] = append(l.watched[s], w)
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// remove has nothing heard of an election from the next change on. Until then its hints are
// dropped, and the others are not interrupted.
func (l *subscriber) remove(lockKey string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, list := range l.watched {
		l.watched[s] = slices.DeleteFunc(list, func(w redislock.Watched) bool { return w.LockKey == lockKey })
	}
}

// run listens until ctx ends. It subscribes again whenever the set of elections changes.
func (l *subscriber) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = work.Rest(ctx, joinTogether)
		select {
		case <-l.changed: // they are among those below
		default:
		}
		hearing, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		l.mu.Lock()
		for s, list := range l.watched {
			if elections := slices.Clone(list); len(elections) > 0 {
				wg.Go(func() { redislock.WatchAll(hearing, s, elections...) })
			}
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-l.changed:
		}
		stop()
		wg.Wait()
	}
}
