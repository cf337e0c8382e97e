package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockCampaign is the README's program: one Redis, so a majority of one,
// and NOLOOP. The library renews by itself and ends the context. It waits for
// Redis' client-side caching to tell that the key has changed.
func rueidislockCampaign(ctx context.Context, s setting) error {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{s.redis}},
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    s.ttl,
		ExtendInterval: s.renew,
		// With one key there is no next one to try. The default of 20 ms would
		// take a moment of a busy machine for a Redis that is away.
		TryNextAfter: s.ttl / 20,
	})
	if err != nil {
		return err
	}
	defer locker.Close()
	for ctx.Err() == nil {
		held, release, err := locker.WithContext(ctx, s.key)
		if err != nil {
			pause(ctx, s.poll)
			continue
		}
		s.witness.lead(held, nil)
		release()
	}
	return nil
}
