package demo

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// faults counts what was done to leaders.
type faults struct {
	Killed int `json:"killed"`
	Frozen int `json:"frozen"`
}

// chaos kills or freezes the leader, again and again.
type chaos struct {
	every   time.Duration
	rng     *rand.Rand
	fleet   *fleet
	watcher *watcher
	done    faults
}

func newChaos(every time.Duration, seed uint64, f *fleet, w *watcher) *chaos {
	return &chaos{every: every, rng: rand.New(rand.NewPCG(seed, 2)), fleet: f, watcher: w}
}

// run attacks until ctx ends, and returns when no node is frozen any more.
func (c *chaos) run(ctx context.Context) faults {
	if c.every <= 0 {
		return c.done
	}
	var thaws sync.WaitGroup
	defer thaws.Wait()
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return c.done
		case <-tick.C:
		}
		// Not in step with the flush, so that every phase of it has its turn.
		if !pause(ctx, time.Duration(c.rng.Int64N(int64(min(flushEvery, c.every/2))))) {
			return c.done
		}
		kill := c.rng.IntN(2) == 0
		freeze := ttl + ttl/4 + time.Duration(c.rng.Int64N(int64(ttl/2)))
		victim := c.leader(ctx)
		if victim == nil {
			return c.done
		}
		at := time.Now()
		if kill {
			if victim.signal(syscall.SIGKILL) != 0 {
				c.watcher.down(victim.id, at)
				c.done.Killed++
			}
			continue
		}
		pid := victim.signal(syscall.SIGSTOP)
		if pid == 0 {
			continue
		}
		c.watcher.down(victim.id, at)
		c.done.Frozen++
		thaws.Go(func() {
			pause(ctx, freeze)
			victim.signal(syscall.SIGCONT)
		})
	}
}

// leader waits for a node to lead. It returns nil when ctx has ended.
func (c *chaos) leader(ctx context.Context) *node {
	for {
		if n := c.fleet.find(c.watcher.leader()); n != nil && n.working() {
			return n
		}
		if !pause(ctx, 2*watchEvery) {
			return nil
		}
	}
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
