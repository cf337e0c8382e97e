package elector_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// weather gives each request of one node a fault. The faults change every few seconds.
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
	case 5: // a store that sometimes refuses
		f.Refuse = w.rng.IntN(2) == 0
	}
	return f
}

// acquireDelay returns a delay that changes all the time, or none.
func (w *weather) acquireDelay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.delay(time.Second)-500*time.Millisecond)
}

func (w *weather) delay(limit time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(limit)))
}

// TestTwoNodesNeverActAtOnce lets four nodes contend for twenty minutes of bubble time in every kind of weather. Work may take up to
// the drain time to end. A node acts from the moment when its work starts until the work has returned.
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
	w := fakelock.NewWorld(t, seed, timing.Drain)
	s := fakelock.NewStore(timing.TTL)
	rng := rand.New(rand.NewPCG(seed, 1))
	var nodes []*node
	for i := range 4 {
		id := string(rune('a' + i))
		sky := &weather{rng: rand.New(rand.NewPCG(seed, uint64(100+i)))}
		lead := func(ctx context.Context, term *elector.Term) error { return w.Act(ctx, id, term) }
		// Each node has heard of a term, so that an empty store after a restart is not a new store.
		n := startWith(t, id, s.Node(id, sky.fault), lead, elector.Config{
			Floor: 1, Hints: s.Hints(), AcquireDelay: sky.acquireDelay,
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
	if w.Terms() < 20 {
		t.Errorf("seed %d: only %d terms: the weather was too good to test anything", seed, w.Terms())
	}
	time.Sleep(15 * time.Second) // the last requests are still on their way
}
