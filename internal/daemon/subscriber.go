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

// subscriber receives the hints of all elections of a node over one connection to each server. A hint is a message that a lock has changed.
type subscriber struct {
	changed chan struct{} // has room for one value

	mu      sync.Mutex
	watched map[*redisconn.Store][]redislock.Watched
}

// joinTogether is how long a subscription waits before it begins, so that it also includes other elections that begin at that time.
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

// remove ends the hints of an election when the set of elections next changes. Until then the subscriber drops this election's hints. The
// hints of the other elections are not interrupted.
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
		case <-l.changed: // the change is in the list below
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
