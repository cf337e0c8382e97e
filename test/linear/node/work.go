package main

import (
	"context"
	"math/rand/v2"
	"time"

	"baton/internal/elector"
	"baton/test/linear/wire"
)

// actEvery is the time between two acts of the leader.
const actEvery = 3 * time.Millisecond

// work is the leader's work: it records that the leader is trusted, as often as it can.
type work struct {
	setup wire.Setup
	diary *diary
	past  *past
	rng   *rand.Rand // used by one term at a time
}

func newWork(s wire.Setup, d *diary, p *past) *work {
	return &work{setup: s, diary: d, past: p, rng: rand.New(rand.NewPCG(s.Seed, 0))}
}

// lead acts until ctx ends, or its term has lasted long enough. Then lead uses a part of the drain to wind down, and still acts, because
// work may run until the hard stop.
func (w *work) lead(ctx context.Context, t *elector.Term) error {
	w.diary.write(wire.Line{Kind: wire.Enter, At: now(), Owner: t.Owner(), Epoch: t.Epoch()})
	defer func() {
		w.diary.write(wire.Line{Kind: wire.Leave, At: now(), Owner: t.Owner(), Epoch: t.Epoch()})
		w.past.add(t)
	}()
	ttl := w.setup.Timing.TTL
	var enough, lift <-chan time.Time
	if w.rng.IntN(4) > 0 {
		enough = time.After(w.between(ttl/8, 2*ttl))
	}
	if w.rng.IntN(4) == 0 {
		lift = time.After(w.between(0, ttl))
	}
	tick := time.NewTicker(actEvery)
	defer tick.Stop()
	for {
		w.act(t)
		select {
		case <-ctx.Done():
			return w.windDown(t)
		case <-enough:
			if w.rng.IntN(3) == 0 {
				return &elector.Abdication{Reason: "enough for a while", CoolDown: w.between(0, ttl)}
			}
			return nil
		case <-lift:
			w.raise(ctx, t)
		case <-tick.C:
		}
	}
}

func (w *work) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)+1))
}

// act records one moment inside the trust window. The moment is between two readings of the clock, however long the process is stopped
// between them.
func (w *work) act(t *elector.Term) {
	before := now()
	if t.UntilHardStop() <= 0 {
		return
	}
	w.diary.write(wire.Line{Kind: wire.Act, At: before, Until: now(), Owner: t.Owner(), Epoch: t.Epoch()})
}

func (w *work) windDown(t *elector.Term) error {
	tick := time.NewTicker(actEvery)
	defer tick.Stop()
	for over := time.After(w.between(0, w.setup.Timing.Drain/2)); ; w.act(t) {
		select {
		case <-over:
			return nil
		case <-tick.C:
		}
	}
}

// raise raises the epoch, like a leader that finds a higher epoch in a database. The lock itself records the result.
func (w *work) raise(ctx context.Context, t *elector.Term) {
	ctx, cancel := context.WithTimeout(ctx, w.setup.Timing.Timeout)
	defer cancel()
	_, _ = t.Raise(ctx, t.Epoch()+w.rng.Int64N(3))
}
