package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockCampaign obtains the lock with a linear retry, and refreshes the lock by a ticker.
func redislockCampaign(ctx context.Context, s setting) error {
	client := redis.NewClient(&redis.Options{Addr: s.redis})
	defer client.Close()
	locker := redislock.New(client)
	for ctx.Err() == nil {
		// Without a deadline Obtain gives up after one ttl.
		patient, cancel := context.WithTimeout(ctx, time.Hour)
		lock, err := locker.Obtain(patient, s.key, s.ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(s.poll)})
		cancel()
		if err != nil {
			pause(ctx, s.poll)
			continue
		}
		s.hold(ctx, func(ctx context.Context) bool { return lock.Refresh(ctx, s.ttl, nil) == nil }, nil)
		_ = lock.Release(context.WithoutCancel(ctx)) // a lock that it fails to release has expired, or will
	}
	return nil
}
