package quorum_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// jitter simulates a healthy network whose round trips take up to 2 × d.
func jitter(d time.Duration) func(int, string) fakelock.Fault {
	return func(int, string) fakelock.Fault {
		return fakelock.Fault{Before: rand.N(d) + 1, After: rand.N(d) + 1}
	}
}

// Five candidates ask at the same moment, as after a leader gives up, and divide five masters among themselves.
func TestFiveRivalsSoonAgree(t *testing.T) {
	t.Parallel()
	const rounds = 12
	for _, c := range []struct {
		oneWay, median, most time.Duration
	}{
		{time.Millisecond / 2, 50 * time.Millisecond, 400 * time.Millisecond},
		{20 * time.Millisecond, 250 * time.Millisecond, 1500 * time.Millisecond},
		{100 * time.Millisecond, 1500 * time.Millisecond, 6 * time.Second},
	} {
		t.Run(fmt.Sprint(c.oneWay), func(t *testing.T) {
			var took []time.Duration
			for range rounds {
				synctest.Test(t, func(t *testing.T) { took = append(took, rivalry(t, c.oneWay)) })
			}
			slices.Sort(took)
			median, p95, most := took[rounds/2], took[rounds*95/100], took[rounds-1]
			t.Logf("up to %v each way: p50 %v, p95 %v, max %v", c.oneWay, median, p95, most)
			if median > c.median || most > c.most {
				t.Errorf("up to %v each way it takes %v in the median, %v at most; want %v and %v", c.oneWay, median, most, c.median, c.most)
			}
		})
	}
}

// rivalry returns how long it takes from the common start of five candidates until
// one of them leads.
func rivalry(t *testing.T, oneWay time.Duration) time.Duration {
	m := newMasters(5, timing.TTL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// This is the leader that gives up. It is needed because in the very first election, masters that hear of a rival's term before they
	// have granted one would wait for a lease.
	former := m.lock(t, "former", timing.TTL, nil)
	if won, err := former.Acquire(ctx, elector.Candidate{Owner: "former-1"}); err != nil || won.Outcome != elector.Won {
		t.Fatalf("the former leader: %+v, %v", won, err)
	}
	if err := former.Release(ctx, "former-1", elector.Handover{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	leads := make(chan time.Duration, 10)
	var nodes []*node
	for i := range 5 {
		id := string(rune('a' + i))
		nodes = append(nodes, start(t, id, m.lock(t, id, timing.TTL, jitter(oneWay)), m.hints(ctx), func(ctx context.Context, _ *elector.Term) error {
			leads <- time.Since(began)
			<-ctx.Done()
			return nil
		}))
	}
	took := <-leads
	time.Sleep(timing.TTL)
	if len(leads) > 0 {
		t.Error("the first leader does not stay")
	}
	for _, n := range nodes {
		n.stop()
	}
	time.Sleep(time.Second)
	return took
}

// faulty holds the faults of the masters, which are the same for all nodes.
type faulty struct {
	mu sync.Mutex
	of map[int]fakelock.Fault
}

func (f *faulty) set(fault fakelock.Fault, masters ...int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of = map[int]fakelock.Fault{}
	for _, m := range masters {
		f.of[m] = fault
	}
}

func (f *faulty) fault(master int, _ string) fakelock.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := f.of[master]
	fault.Before, fault.After = rand.N(time.Millisecond)+1, rand.N(time.Millisecond)+1
	return fault
}

func TestAMinorityThatIsAwayCostsNoTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := newMasters(5, timing.TTL), &faulty{}
		a := start(t, "a", m.lock(t, "a", timing.TTL, f.fault), nil, nil)
		time.Sleep(time.Second)
		b := start(t, "b", m.lock(t, "b", timing.TTL, f.fault), nil, nil)
		term := a.Leading()
		if term == nil {
			t.Fatal("the first node does not lead")
		}
		silent := fakelock.Fault{LoseRequest: true}
		for i := range 10 {
			f.set(silent, i%5, (i+1)%5)
			time.Sleep(3 * timing.TTL / 2)
			f.set(fakelock.Fault{Refuse: true}, i%5, (i+1)%5)
			time.Sleep(3 * timing.TTL / 2)
			f.set(fakelock.Fault{})
			time.Sleep(2 * timing.Interval) // the lock is taken again at these two masters
			m[i%5].Restart(i%2 == 0)
			m[(i+2)%5].Steal("thief")
			time.Sleep(2 * timing.TTL)
		}
		if a.Leading() != term || b.Leading() != nil || b.Holder() != "a" {
			t.Errorf("a leads %v, b leads %v and takes %q for the leader", a.Leading(), b.Leading(), b.Holder())
		}
		if n := m.held(term.Owner()); n != 5 {
			t.Errorf("%d masters are held after all faults have ended", n)
		}
		b.stop()
		a.stop()
	})
}

func TestALeaderWithoutAMajorityStopsInTimeAndSomebodyLeadsWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := newMasters(5, timing.TTL), &faulty{}
		stopped := make(chan time.Time, 4)
		lead := func(ctx context.Context, _ *elector.Term) error {
			<-ctx.Done()
			stopped <- time.Now()
			return nil
		}
		a := start(t, "a", m.lock(t, "a", timing.TTL, f.fault), nil, lead)
		b := start(t, "b", m.lock(t, "b", timing.TTL, f.fault), nil, lead)
		time.Sleep(time.Minute)
		gone := time.Now()
		f.set(fakelock.Fault{LoseRequest: true}, 0, 2, 4)
		time.Sleep(time.Minute)
		if a.Leading() != nil || b.Leading() != nil {
			t.Error("somebody leads without a majority")
		}
		f.set(fakelock.Fault{})
		back := time.Now()
		for a.Leading() == nil && b.Leading() == nil && time.Since(back) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(back); took > timing.TTL {
			t.Errorf("somebody leads %v after the majority is back, want within one lease", took)
		}
		if n := a.heard(elector.EventStoreLost) + b.heard(elector.EventStoreLost); n != 2 {
			t.Errorf("the trouble was told %d times, want once by each", n)
		}
		b.stop()
		a.stop()
		if a.died.Load()+b.died.Load() > 0 {
			t.Error("a process died although its work returned")
		}
		if at := <-stopped; at.Sub(gone) > timing.TTL-timing.Margin-timing.Drain {
			t.Errorf("the work was stopped %v after the majority went", at.Sub(gone))
		}
		time.Sleep(time.Second)
	})
}

func TestAHandoverTakesAsLongAsTheMastersTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(3, timing.TTL)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var nodes []*node
		for i := range 3 {
			id := string(rune('a' + i))
			nodes = append(nodes, start(t, id, m.lock(t, id, timing.TTL, jitter(time.Millisecond/2)), m.hints(ctx), nil))
		}
		leader := func() *node {
			for _, n := range nodes {
				if n.Leading() != nil {
					return n
				}
			}
			return nil
		}
		time.Sleep(time.Minute)
		var took []time.Duration
		for range 15 {
			old := leader()
			m.order(elector.Order{StepDown: true})
			began := time.Now()
			for leader() == nil || leader() == old {
				time.Sleep(100 * time.Microsecond)
				if time.Since(began) > time.Minute { // time of the bubble
					t.Error("nobody follows a leader that has stepped down")
					break
				}
			}
			took = append(took, time.Since(began))
			if t.Failed() {
				break
			}
			time.Sleep(time.Minute)
		}
		slices.Sort(took)
		t.Logf("step down of 3 nodes on 3 masters: p50 %v, max %v", took[len(took)/2], took[len(took)-1])
		if took[len(took)/2] > 50*time.Millisecond || took[len(took)-1] > 500*time.Millisecond {
			t.Errorf("a handover takes %v in the median, %v at most", took[len(took)/2], took[len(took)-1])
		}
		for _, n := range nodes {
			n.stop()
		}
		time.Sleep(time.Second)
	})
}
