package elector_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// world is what the model test checks against: who acts, and under which epoch.
type world struct {
	t    *testing.T
	seed uint64

	mu     sync.Mutex
	acting map[string]int64
	last   int64 // the highest epoch that ever acted
	terms  int
}

func (w *world) enter(id string, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, e := range w.acting {
		w.t.Errorf("seed %d: %s acts under epoch %d while %s still acts under %d", w.seed, id, epoch, other, e)
	}
	if epoch <= w.last {
		w.t.Errorf("seed %d: %s acts under epoch %d after %d", w.seed, id, epoch, w.last)
	}
	w.acting[id], w.last = epoch, epoch
	w.terms++
}

func (w *world) leave(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.acting, id)
}

// weather gives each request of one node a fault; it changes every few seconds.
type weather struct {
	mu    sync.Mutex
	rng   *rand.Rand
	until time.Time
	mood  int
}

func (w *weather) fault(string) fakelock.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().After(w.until) {
		w.mood = w.rng.IntN(6)
		w.until = time.Now().Add(time.Duration(w.rng.Int64N(int64(15 * time.Second))))
	}
	f := fakelock.Fault{Before: w.delay(5 * time.Millisecond), After: w.delay(5 * time.Millisecond)}
	switch w.mood {
	case 1: // a slow network: requests arrive after the caller has given up
		f.Before, f.After = w.delay(12*time.Second), w.delay(2*time.Second)
	case 2: // a lossy one
		f.LoseRequest, f.LoseReply = w.rng.IntN(3) == 0, w.rng.IntN(3) == 0
	case 3: // cut
		f.LoseRequest = true
	case 4: // cut one way
		f.LoseReply = true
	case 5: // a store that refuses, now and then
		f.Refuse = w.rng.IntN(2) == 0
	}
	return f
}

// deferral is one that changes all the time, or none.
func (w *weather) deferral() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.delay(time.Second)-500*time.Millisecond)
}

func (w *weather) delay(limit time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(limit)))
}

// TestTwoNodesNeverActAtOnce lets four nodes contend for twenty minutes of bubble
// time in every kind of weather. Work drains for up to the drain time. A node acts
// from the moment its work starts until it has returned.
func TestTwoNodesNeverActAtOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(15) {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { contend(t, seed+round) })
		})
	}
}

func contend(t *testing.T, seed uint64) {
	w := &world{t: t, seed: seed, acting: map[string]int64{}}
	s := fakelock.NewStore(timing.TTL)
	rng := rand.New(rand.NewPCG(seed, 1))
	var nodes []*node
	for i := range 4 {
		id := string(rune('a' + i))
		sky := &weather{rng: rand.New(rand.NewPCG(seed, uint64(100+i)))}
		lead := func(ctx context.Context, term *elector.Term) error {
			w.enter(id, term.Epoch())
			defer w.leave(id)
			if rng := rand.New(rand.NewPCG(uint64(term.Epoch()), 2)); rng.IntN(4) == 0 {
				// Work that ends by itself.
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(rng.Int64N(int64(20 * time.Second)))):
					return nil
				}
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), elector.ErrLeaseLost) {
				// Drain, but never beyond the drain time.
				time.Sleep(time.Duration(term.Epoch() % int64(timing.Drain)))
			}
			return nil
		}
		// Each has heard of a term: a store that restarts empty is not a new one.
		n := startWith(t, id, s.Node(id, sky.fault), lead, elector.Config{
			Floor: 1, Hints: s.Hints(), Deferral: sky.deferral,
		})
		nodes = append(nodes, n)
	}
	for end := time.Now().Add(20 * time.Minute); time.Now().Before(end); {
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Second))))
		if rng.IntN(6) == 0 {
			s.Restart(rng.IntN(2) == 0)
		}
		if rng.IntN(3) == 0 {
			s.Order(elector.Order{StepDown: true, To: []string{"", "a", "b"}[rng.IntN(3)]})
		}
	}
	for _, n := range nodes {
		n.stop()
		if n.deaths() > 0 {
			t.Errorf("seed %d: node %s died although its work always returns: %v", seed, n.id, n.died)
		}
	}
	if w.terms < 20 {
		t.Errorf("seed %d: only %d terms: the weather was too good to test anything", seed, w.terms)
	}
	time.Sleep(15 * time.Second) // the last requests are still on their way
}
