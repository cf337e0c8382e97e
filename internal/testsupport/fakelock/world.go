package fakelock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"baton/internal/elector"
)

// World checks the guarantees of an election in a test. It records which node acts, and under which epoch. It reports an error if two nodes
// act at the same time, or if an epoch is not higher than the epochs before.
type World struct {
	t     *testing.T
	seed  uint64
	drain time.Duration

	mu     sync.Mutex
	acting map[string]int64
	last   int64 // the highest epoch under which a node has acted
	terms  int
}

// NewWorld returns a World in which no node has acted. The work of a term may take up to the time drain to end, after its context has
// ended.
func NewWorld(t *testing.T, seed uint64, drain time.Duration) *World {
	return &World{t: t, seed: seed, drain: drain, acting: map[string]int64{}}
}

// Terms returns the number of terms so far.
func (w *World) Terms() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.terms
}

// Act imitates the work of a term. The node counts as acting until Act returns.
func (w *World) Act(ctx context.Context, id string, term *elector.Term) error {
	w.enter(id, term.Epoch())
	defer w.leave(id)
	if rng := rand.New(rand.NewPCG(uint64(term.Epoch()), 2)); rng.IntN(4) == 0 {
		select { // the work ends by itself
		case <-ctx.Done():
		case <-time.After(time.Duration(rng.Int64N(int64(20 * time.Second)))):
			return nil
		}
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), elector.ErrLeaseLost) {
		time.Sleep(time.Duration(term.Epoch() % int64(w.drain)))
	}
	return nil
}

func (w *World) enter(id string, epoch int64) {
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

func (w *World) leave(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.acting, id)
}
