package main

import (
	"context"
	"math/rand/v2"
	"time"

	"baton/internal/elector"
	"baton/test/linear/wire"
)

// actEvery is how often the leader acts.
const actEvery = 3 * time.Millisecond

// work is the leader's work: it writes that it is trusted, as often as it can.
type work struct {
	setup wire.Setup
	diary *diary
	past  *past
	rng   *rand.Rand // of one term at a time
}

func newWork(s wire.Setup, d *diary, p *past) *work {
	return &work{setup: s, diary: d, past: p, rng: rand.New(rand.NewPCG(s.Seed, 0))}
}

// lead acts until ctx ends, or its term has lasted long enough. Then it takes
// some of the drain to wind down, acting still: what runs until the hard stop counts.
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

// act tells of one moment inside the trust window. The moment lies between two readings
// of the clock, however long the process is stopped in between.
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

// raise lifts the epoch, as a leader does that finds a higher one in a database. What
// comes of it is in the lock's own lines.
func (w *work) raise(ctx context.Context, t *elector.Term) {
	ctx, cancel := context.WithTimeout(ctx, w.setup.Timing.Timeout)
	defer cancel()
	_, _ = t.Raise(ctx, t.Epoch()+w.rng.Int64N(3))
}
