package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"baton/internal/config"
	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redislock"
)

// defaults returns baton's default settings for a lease of ttl.
func defaults(ttl time.Duration) config.Election {
	return config.Config{Election: config.Election{TTL: ttl}}.WithDefaults().Election
}

// batonCampaign does the daemon's work between its configuration and its jobs, with the daemon's defaults for the lease.
func batonCampaign(ctx context.Context, s setting) error {
	store, err := redisconn.Open(redisconn.Options{
		URL: "redis://" + s.redis + "/0", ClientName: "baton:" + s.node, Timeout: min(5*time.Second, s.ttl/2),
	})
	if err != nil {
		return err
	}
	lock, err := redislock.NewLock(store, redislock.LockOptions{
		Key: s.key, NodeID: s.node, TTL: s.ttl,
		NodeInfo: redislock.NodeInfo{Version: "bench", ConfigHash: "0123456789ab", Address: "127.0.0.1:9747"},
	})
	if err != nil {
		return err
	}
	e := defaults(s.ttl)
	timing := heartbeat.Timing{
		TTL: e.TTL, Interval: e.HeartbeatInterval, Timeout: e.AttemptTimeout,
		Margin: heartbeat.DefaultMargin(e.TTL), Drain: e.Drain,
	}
	hints := make(chan elector.Hint, 16)
	var listening atomic.Int32
	lead := func(ctx context.Context, term *elector.Term) error {
		s.witness.lead(ctx, term.Trusted)
		<-ctx.Done()
		return nil
	}
	el, err := elector.New(lock, lead, elector.Config{
		NodeID: s.node, Timing: timing, PollInterval: s.poll, Hints: hints,
		Hinted:   func() bool { return listening.Load() > 0 },
		NewOwner: func() (string, error) { return rand.Text(), nil },
		Die: func(reason string) {
			fmt.Fprintln(os.Stderr, reason)
			os.Exit(4)
		},
	})
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		redislock.WatchAll(background, store, redislock.Watched{LockKey: s.key, Hints: hints, Listening: &listening})
	}()
	err = el.Run(ctx)
	leaving, cancel := context.WithTimeout(background, timing.Timeout)
	defer cancel()
	_ = lock.Leave(leaving) // as in the daemon, an error does not matter: the remaining entries show that the node is gone
	stop()
	<-watched
	return errors.Join(err, store.Close())
}
