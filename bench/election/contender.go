package main

import (
	"context"
	"sync"
	"time"

	"baton/bench/internal/rig"
)

// contender is one way of electing a leader.
type contender struct {
	name  string
	title string
	// renew returns the interval at which a leader extends a lease of ttl.
	renew func(ttl time.Duration) time.Duration
	// renews is a text that says where that interval comes from.
	renews string
	// polls means that the contender's standbys read the lock at intervals.
	polls bool
	// campaign contends for the lock until ctx ends, and then gives the lock back.
	campaign func(ctx context.Context, s setting) error
	// daemon means that the contender is the shipped binary, which does not report its acts.
	daemon bool
}

const (
	nameBaton  = "baton"
	nameDaemon = "baton-run"
)

func contenders() []contender {
	third := func(ttl time.Duration) time.Duration { return ttl / 3 }
	own := func(ttl time.Duration) time.Duration { return defaults(ttl).HeartbeatInterval }
	half := func(ttl time.Duration) time.Duration { return ttl / 2 }
	return []contender{
		{name: nameBaton, title: "baton", renew: own, renews: "ttl/5, its default", campaign: batonCampaign},
		{name: "redsync", title: "redsync", renew: third, renews: "ttl/3", polls: true, campaign: redsyncCampaign(false)},
		{name: "redsync-until", title: "redsync, asking Until", renew: third, renews: "ttl/3", polls: true, campaign: redsyncCampaign(true)},
		{name: "redislock", title: "bsm/redislock", renew: third, renews: "ttl/3", polls: true, campaign: redislockCampaign},
		{name: "rueidislock", title: "rueidislock", renew: half, renews: "ttl/2, its default", campaign: rueidislockCampaign},
		{name: "gocron", title: "gocron + Redis locker", renew: third, renews: "ttl/3", polls: true, campaign: gocronCampaign},
		{name: "tutorial-setnx", title: "tutorial: SET NX EX, sleep", renew: third, renews: "ttl/3", polls: true, campaign: setnxCampaign},
		{name: "tutorial-lua", title: "tutorial: Lua, heartbeat", renew: third, renews: "ttl/3", polls: true, campaign: luaCampaign},
		{name: nameDaemon, title: "`baton run`, all of it", renew: own, renews: "ttl/5, its default", daemon: true},
	}
}

// pollInterval returns the time that contenders that poll wait between two readings of the lock: baton's default.
func pollInterval(ttl time.Duration) time.Duration { return defaults(ttl).PollInterval }

// setting contains the settings of a contender's process.
type setting struct {
	redis   string // host:port
	key     string
	node    string
	ttl     time.Duration
	poll    time.Duration
	renew   time.Duration
	witness *witness
}

// hold acts until ctx ends, or until may or renew returns false. A ticker calls renew, because most libraries leave the renewal to their
// users.
func (s setting) hold(ctx context.Context, renew func(context.Context) bool, may func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(s.renew)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !renew(ctx) {
					cancel()
					return
				}
			}
		}
	})
	s.witness.lead(ctx, may)
	cancel()
	wg.Wait()
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// wanted returns the contenders whose names contain one of the words, or all contenders if there are no words.
func wanted(words string) []contender {
	var some []contender
	for _, c := range contenders() {
		if rig.Named(words, c.name) {
			some = append(some, c)
		}
	}
	return some
}
