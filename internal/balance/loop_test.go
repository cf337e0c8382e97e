package balance

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// fakeCandidacy is a candidacy whose answers a test sets.
type fakeCandidacy struct {
	lock    string
	gone    atomic.Bool // true if node b leads the lock
	busy    bool
	away    error // error of the store
	refuses error // error of an order
	barred  bool  // only a reading shows it
	looks   int
	orders  []string
}

func (c *fakeCandidacy) LockKey() string { return c.lock }
func (c *fakeCandidacy) Leads() bool     { return !c.gone.Load() }
func (c *fakeCandidacy) Idle() bool      { return !c.busy }

func (c *fakeCandidacy) leader() string {
	if c.gone.Load() {
		return "b"
	}
	return "a"
}

func (c *fakeCandidacy) Known() (Known, error) { return Known{Leader: c.leader()}, c.away }

func (c *fakeCandidacy) Read(context.Context) (Election, error) {
	c.looks++
	e := Election{Now: time.Now(), Leader: c.leader(), Lease: 10 * time.Second, Barred: c.barred}
	for _, id := range []string{"a", "b"} {
		e.Nodes = append(e.Nodes, Node{ID: id, Seen: e.Now})
	}
	return e, c.away
}

func (c *fakeCandidacy) HandOver(_ context.Context, to, reason string) error {
	c.orders = append(c.orders, reason)
	if c.refuses == nil {
		time.AfterFunc(5*time.Second, func() { c.gone.Store(to == "b") }) // the node's work takes so long to end
	}
	return c.refuses
}

// balancing runs the balancer of node a, which leads all of the locks, for d.
func balancing(t *testing.T, d time.Duration, fakes ...*fakeCandidacy) *Balancer {
	t.Helper()
	candidacies := make([]Candidacy, len(fakes))
	for i, c := range fakes {
		c.lock = string(rune('k' + i))
		candidacies[i] = c
	}
	b := New("a", func() []Candidacy { return candidacies }, time.Hour, zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	time.Sleep(d)
	cancel()
	<-done
	return b
}

func TestWithOneLockThereIsNothingToSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := &fakeCandidacy{}
		b := balancing(t, time.Minute, only)
		if d := b.AcquireDelay("k"); only.looks > 0 || d > 0 || len(only.orders) > 0 {
			t.Errorf("%d looks, delay %v, orders %v", only.looks, d, only.orders)
		}
	})
}

func TestALockIsHandedOverAndItsEndAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, first, second, third := &fakeCandidacy{busy: true}, &fakeCandidacy{}, &fakeCandidacy{}, &fakeCandidacy{}
		b := balancing(t, 8*time.Second, busy, first, second, third)
		if len(first.orders) != 1 || first.orders[0] != "b leads 0 of 4 locks, a 4" || len(second.orders) > 0 {
			t.Errorf("orders %v, and meanwhile %v", first.orders, second.orders)
		}
		if d := b.AcquireDelay("l"); d < shortestAcquireDelay {
			t.Errorf("delay %v of one that leads more than its share", d)
		}
		time.Sleep(10 * time.Second) // until handovers under way have ended
	})
	synctest.Test(t, func(t *testing.T) {
		busy, first, second, third := &fakeCandidacy{busy: true}, &fakeCandidacy{}, &fakeCandidacy{}, &fakeCandidacy{}
		balancing(t, time.Minute, busy, first, second, third)
		if len(busy.orders)+len(third.orders) > 0 || len(first.orders) != 1 || len(second.orders) != 1 {
			t.Errorf("orders %v %v %v %v", busy.orders, first.orders, second.orders, third.orders)
		}
	})
}

func TestAnOrderThatIsRefusedIsTriedAgainOnlyAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCandidacy{refuses: errors.New("a run has begun")}
		balancing(t, 35*time.Second, c, &fakeCandidacy{busy: true})
		if n := len(c.orders); n < 3 || n > 4 {
			t.Errorf("asked %d times in 35 s with a lease of 10 s", n)
		}
	})
}

func TestNothingIsHandedOverByWhatCannotBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCandidacy{}
		balancing(t, time.Minute, c, &fakeCandidacy{away: errors.New("redis is away")})
		if c.looks < 25 || len(c.orders) > 0 {
			t.Errorf("%d looks, orders %v", c.looks, c.orders)
		}
	})
}

// The number of elections that a step reads must not grow with the number of locks.
func TestALookReadsOneElectionHoweverManyThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		candidacies := make([]*fakeCandidacy, 100)
		for i := range candidacies {
			candidacies[i] = &fakeCandidacy{busy: true}
		}
		balancing(t, time.Minute, candidacies...)
		others := 0
		for _, c := range candidacies[1:] {
			others += c.looks
		}
		if candidacies[0].looks < 25 || others > 0 {
			t.Errorf("%d looks at the first of 100 elections, %d at the others", candidacies[0].looks, others)
		}
	})
}

// A node's own knowledge of an election may be out of date. If a lock cannot be handed over now, the node must hand over another lock
// instead.
func TestALockIsLookedAtBeforeItIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, ordered, third := &fakeCandidacy{busy: true}, &fakeCandidacy{barred: true}, &fakeCandidacy{}
		balancing(t, 20*time.Second, first, ordered, third)
		if ordered.looks == 0 || len(ordered.orders) > 0 || len(third.orders) != 1 {
			t.Errorf("%d looks at a lock about which an order is under way, orders %v; of the next %v", ordered.looks, ordered.orders, third.orders)
		}
	})
}

// A node that started before the others may lead hundreds of locks.
func TestManyLocksAreHandedOverSeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		candidacies := make([]*fakeCandidacy, 100)
		for i := range candidacies {
			candidacies[i] = &fakeCandidacy{}
		}
		balancing(t, 2*time.Minute, candidacies...)
		gone := 0
		for _, c := range candidacies {
			if c.gone.Load() {
				gone++
			}
			if len(c.orders) > 1 {
				t.Errorf("a lock was handed over %d times", len(c.orders))
			}
		}
		if gone < 48 || gone > 50 {
			t.Errorf("of 100 locks %d were handed over to one who led none, want half", gone)
		}
	})
}
