package main

import (
	"context"
	"time"

	redislock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"
)

// gocronCampaign is the README's program with a job that leads: every poll interval each scheduler tries to start it under the lock,
// which is extended for as long as the job runs. The library cannot tell a job that its lock is gone.
func gocronCampaign(ctx context.Context, s setting) error {
	client := redis.NewClient(&redis.Options{Addr: s.redis})
	defer client.Close()
	locker, err := redislock.NewRedisLockerWithOptions(client,
		redislock.WithAutoExtendDuration(s.renew),
		redislock.WithRedsyncOptions(redislock.WithTries(1), redislock.WithExpiry(s.ttl)))
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithStopTimeout(5*time.Second))
	if err != nil {
		return err
	}
	ended := make(chan struct{}, 1)
	job := func() {
		if ctx.Err() == nil {
			s.witness.lead(ctx, nil)
			ended <- struct{}{}
		}
	}
	_, err = scheduler.NewJob(gocron.DurationJob(s.poll), gocron.NewTask(job), gocron.WithName(s.key),
		gocron.WithSingletonMode(gocron.LimitModeReschedule), gocron.WithStartAt(gocron.WithStartImmediately()))
	if err != nil {
		return err
	}
	scheduler.Start()
	<-ctx.Done()
	// Shutdown ends the context that the library would give the lock back with. So let the job return, and the library unlock, before
	// that.
	select {
	case <-ended:
		time.Sleep(20 * time.Millisecond)
	case <-time.After(20 * time.Millisecond): // it was a standby
	}
	return scheduler.Shutdown()
}
