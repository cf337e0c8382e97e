package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockCampaign is the program of the README: one Redis, so a majority of one, and NOLOOP. The library renews in the background and
// ends the context. Redis' client-side caching informs the library that the key has changed.
func rueidislockCampaign(ctx context.Context, s setting) error {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{s.redis}},
		KeyMajority:    1,
		NoLoopTracking: true,
		KeyValidity:    s.ttl,
		ExtendInterval: s.renew,
		// With one key there is no next key to try. With the default of 20 ms the library would keep a processor busy while Redis is
		// away.
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
