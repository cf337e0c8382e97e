package main

import (
	"context"
	"time"

	redislock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"
)

// gocronCampaign is the program of the README with a job that leads. At every poll interval each scheduler tries to start the job under
// the lock, which is extended as long as the job runs. The library cannot inform a job that its lock is lost.
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
	// Shutdown ends the context that the library needs to give the lock back. So the job must return, and the library must unlock, before
	// Shutdown.
	select {
	case <-ended:
		time.Sleep(20 * time.Millisecond)
	case <-time.After(20 * time.Millisecond): // this process was a standby
	}
	return scheduler.Shutdown()
}
