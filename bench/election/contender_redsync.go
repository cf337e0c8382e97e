package main

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncCampaign locks as redsync's README does, and extends the lock by a ticker. The second contender calls Until before each act. The
// README does not show this, but the documentation of Until does.
func redsyncCampaign(asking bool) func(context.Context, setting) error {
	return func(ctx context.Context, s setting) error {
		client := redis.NewClient(&redis.Options{Addr: s.redis})
		defer client.Close()
		mutex := redsync.New(pool.NewPool(client)).NewMutex(s.key,
			redsync.WithExpiry(s.ttl), redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(s.poll))
		for ctx.Err() == nil {
			if mutex.LockContext(ctx) != nil {
				pause(ctx, s.poll)
				continue
			}
			var until atomic.Pointer[time.Time]
			note := func() {
				t := mutex.Until()
				until.Store(&t)
			}
			note()
			extend := func(ctx context.Context) bool {
				ok, err := mutex.ExtendContext(ctx)
				note()
				return ok && err == nil
			}
			may := func() bool { return !asking || time.Now().Before(*until.Load()) }
			s.hold(ctx, extend, may)
			_, _ = mutex.UnlockContext(context.WithoutCancel(ctx)) // a lock that it fails to release has expired, or will
		}
		return nil
	}
}
