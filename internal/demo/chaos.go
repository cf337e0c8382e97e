package demo

import (
	"context"
	"math/rand/v2"
	"time"
)

// faults counts how many leaders were killed and how many were frozen.
type faults struct {
	Killed int `json:"killed"`
	Frozen int `json:"frozen"`
}

// chaos kills or freezes the leader repeatedly.
type chaos struct {
	*actions
	every time.Duration
	rng   *rand.Rand
	done  faults
}

func newChaos(every time.Duration, seed uint64, a *actions) *chaos {
	return &chaos{actions: a, every: every, rng: rand.New(rand.NewPCG(seed, 2))}
}

// run attacks the leader until ctx ends. When it returns, a node may still be frozen; see [actions.wg].
func (c *chaos) run(ctx context.Context) faults {
	if c.every <= 0 {
		return c.done
	}
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.done
		case <-tick.C:
		}
		// The random pause avoids a fixed rhythm with the flush, so that faults hit every phase of the flush.
		if !pause(ctx, time.Duration(c.rng.Int64N(int64(min(flushEvery, c.every/2))))) {
			return c.done
		}
		kill := c.rng.IntN(2) == 0
		freeze := ttl + ttl/4 + time.Duration(c.rng.Int64N(int64(ttl/2)))
		victim := c.await(ctx)
		if victim == nil {
			return c.done
		}
		switch {
		case kill && c.kill(victim):
			c.done.Killed++
		case !kill && c.freeze(ctx, victim, freeze):
			c.done.Frozen++
		}
	}
}

// await waits for a node to lead. It returns nil when ctx has ended.
func (c *chaos) await(ctx context.Context) *node {
	for {
		if n := c.fleet.find(c.watcher.leader()); n != nil && n.working() {
			return n
		}
		if !pause(ctx, 2*watchEvery) {
			return nil
		}
	}
}

// pause waits for d. It returns false if ctx has ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
