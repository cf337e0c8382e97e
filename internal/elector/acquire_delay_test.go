package elector_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// polite starts a node that leaves a free lock to others for the time d, which a test may change.
func polite(t *testing.T, s *fakelock.Store, id string, d *atomic.Int64, fault func(string) fakelock.Fault) *node {
	t.Helper()
	return startWith(t, id, s.Node(id, fault), nil, elector.Config{
		Hints: s.Hints(), AcquireDelay: func() time.Duration { return time.Duration(d.Load()) },
	})
}

func lasting(d time.Duration) *atomic.Int64 {
	v := new(atomic.Int64)
	v.Store(int64(d))
	return v
}

// tookOver waits until the node leads, for a minute at most, and returns how long this took.
func tookOver(t *testing.T, n *node) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if took := time.Since(began); n.Leading() != nil {
			return took
		} else if took > time.Minute {
			t.Fatalf("%s does not lead", n.id)
		}
	}
}

func TestADeferringNodeLetsAnotherGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		synctest.Wait()
		b := polite(t, s, "b", lasting(300*time.Millisecond), nil)
		c := startWith(t, "c", s.Node("c", func(string) fakelock.Fault {
			return fakelock.Fault{Before: 100 * time.Millisecond} // and is slow
		}), nil, elector.Config{Hints: s.Hints()})
		time.Sleep(time.Second)
		a.stop() // a releases the lock, which all nodes learn
		if took := tookOver(t, c); took > 150*time.Millisecond {
			t.Errorf("the other node leads after %v", took)
		}
		time.Sleep(time.Second)
		if b.Leading() != nil || b.Holder() != "c" {
			t.Errorf("the deferring node takes %q for the leader", b.Holder())
		}
		if told := b.kinds(elector.EventWaiting); len(told) > 0 {
			t.Errorf("the delay is told as an obstacle: %v", told)
		}
		c.stop()
		if took := tookOver(t, b); took < 300*time.Millisecond {
			t.Errorf("is deferring only once: leads %v after the next release", took)
		}
		b.stop()
	})
}

// If the other nodes are dead, the delay costs its time only once: after a release, after the end of a lease, and at the start. The
// value of AcquireDelay is limited.
func TestAcquireDelayCostsItsTimeOnce(t *testing.T) {
	for name, c := range map[string]struct{ says, costs time.Duration }{
		"as long as it says": {300 * time.Millisecond, 300 * time.Millisecond},
		"at most 500 ms":     {time.Hour, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				within := func(when string, took, least time.Duration) {
					t.Helper()
					if took < least || took > least+70*time.Millisecond {
						t.Errorf("%s: leads after %v, want %v", when, took, least)
					}
				}
				s := fakelock.NewStore(timing.TTL)
				first := polite(t, s, "b", lasting(c.says), nil)
				within("at the start", tookOver(t, first), c.costs)
				first.stop()

				a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
				synctest.Wait()
				b := polite(t, s, "b", lasting(c.says), nil)
				time.Sleep(time.Second)
				a.stop()
				within("after a release", tookOver(t, b), c.costs)
				b.stop()

				if _, err := s.Node("x", nil).Acquire(t.Context(), elector.Candidate{Owner: "x"}); err != nil {
					t.Fatal(err)
				}
				b = polite(t, s, "b", lasting(c.says), nil) // and x never answers again
				within("after the end of a lease", tookOver(t, b), timing.TTL+c.costs)
				b.stop()
			})
		})
	}
}

// Any client can publish a hint, and a real hint may come several times.
func TestHintsDoNotProlongAcquireDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		synctest.Wait()
		var attempts atomic.Int64
		b := polite(t, s, "b", lasting(300*time.Millisecond), func(op string) fakelock.Fault {
			if op == "acquire" {
				attempts.Add(1)
			}
			return fakelock.Fault{}
		})
		time.Sleep(time.Second)
		a.stop()
		before, began := attempts.Load(), time.Now()
		for b.Leading() == nil && time.Since(began) < time.Minute {
			s.Forge(elector.HintReleased)
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took < 290*time.Millisecond || took > 350*time.Millisecond {
			t.Errorf("leads after %v among hints, want 300ms", took)
		}
		if n := attempts.Load() - before; n > 17 {
			t.Errorf("%d attempts in 300 ms of hints, want one every 20 ms", n)
		}
		b.stop()
	})
}

func TestTheNamedSuccessorIsNotDeferring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		synctest.Wait()
		b := polite(t, s, "b", lasting(400*time.Millisecond), nil)
		time.Sleep(time.Second)
		s.Order(elector.Order{StepDown: true, To: "b"})
		if took := tookOver(t, b); took > 30*time.Millisecond {
			t.Errorf("the successor leads after %v", took)
		}
		time.Sleep(time.Minute)
		if b.Leading() == nil {
			t.Error("the delay ends a term")
		}
		a.stop()
		b.stop()
	})
}

// After its own term a node defers as before.
func TestANodeThatHasLedIsDeferring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var sky script
		var asked time.Time
		b := polite(t, s, "b", lasting(300*time.Millisecond), sky.fault)
		time.Sleep(time.Second)
		sky.set(silent)
		time.Sleep(hardAfter + time.Second)
		if b.Leading() != nil {
			t.Fatal("still leads")
		}
		sky.set(func(string) fakelock.Fault {
			if asked.IsZero() {
				asked = time.Now()
			}
			return fakelock.Fault{}
		})
		tookOver(t, b)
		if took := time.Since(asked); took < 300*time.Millisecond || took > 350*time.Millisecond {
			t.Errorf("leads %v after the store is back", took)
		}
		b.stop()
	})
}

// The value at the end of the delay decides, because this node may have won another lock since, or other nodes may have died.
func TestAcquireDelayFollowsWhatItSaysMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		says := lasting(150 * time.Millisecond)
		b := polite(t, s, "b", says, nil)
		time.Sleep(100 * time.Millisecond)
		says.Store(int64(400 * time.Millisecond))
		if took := tookOver(t, b); took < 295*time.Millisecond || took > 310*time.Millisecond {
			t.Errorf("leads %v later, want 300ms", took)
		}
		b.stop()

		says.Store(int64(400 * time.Millisecond))
		b = polite(t, s, "b", says, nil)
		time.Sleep(100 * time.Millisecond)
		says.Store(0)
		s.Forge(elector.HintReleased)
		if took := tookOver(t, b); took > 30*time.Millisecond {
			t.Errorf("leads %v after it need not be deferring any more", took)
		}
		b.stop()
	})
}

// The delay of a lock that no node may have yet begins only when nodes may have it.
func TestAcquireDelayBeginsAfterAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := startKnowing(t, 7, "a", s.Node("a", func(string) fakelock.Fault {
			return fakelock.Fault{Before: 200 * time.Millisecond}
		}), nil, nil)
		b := startWith(t, "b", s.Node("b", nil), nil, elector.Config{Floor: 7, AcquireDelay: func() time.Duration { return 400 * time.Millisecond }})
		if took := tookOver(t, a); took < timing.TTL || took > timing.TTL+500*time.Millisecond {
			t.Errorf("the other leads after %v", took)
		}
		a.stop()
		b.stop()
	})
}

// A deferring node polls like every other node, and defers again at the next free lock.
func TestAcquireDelayLeavesThePollsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), nil, nil)
		synctest.Wait()
		var attempts atomic.Int64
		b := polite(t, s, "b", lasting(400*time.Millisecond), func(string) fakelock.Fault {
			attempts.Add(1)
			return fakelock.Fault{}
		})
		time.Sleep(10 * time.Second)
		before := attempts.Load()
		time.Sleep(time.Minute)
		if n := attempts.Load() - before; n < 29 || n > 30 {
			t.Errorf("%d polls a minute, want one every 2 s", n)
		}
		for range 2 {
			a.stop()
			if took := tookOver(t, b); took < 400*time.Millisecond || took > 450*time.Millisecond {
				t.Errorf("leads after %v", took)
			}
			s.Order(elector.Order{StepDown: true, To: "a"})
			a = start(t, "a", s.Node("a", nil), s.Hints(), nil)
			time.Sleep(time.Second)
			if a.Leading() == nil {
				t.Fatal("the other does not lead again")
			}
		}
		a.stop()
		b.stop()
	})
}
