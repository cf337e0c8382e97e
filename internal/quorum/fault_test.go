package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/quorum"
	"baton/internal/testsupport/fakelock"
)

// perNode is the timeout of a request to one master with the TTL of these tests.
const perNode = 500 * time.Millisecond

// links gives the requests of one node to each master a fault.
type links struct {
	mu    sync.Mutex
	fault map[int]func(op string) fakelock.Fault
}

func (l *links) set(f func(op string) fakelock.Fault, masters ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault == nil {
		l.fault = map[int]func(string) fakelock.Fault{}
	}
	for _, m := range masters {
		l.fault[m] = f
	}
}

func (l *links) of(master int, op string) fakelock.Fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.fault[master]; f != nil {
		return f(op)
	}
	return fakelock.Fault{}
}

func always(f fakelock.Fault) func(string) fakelock.Fault {
	return func(string) fakelock.Fault { return f }
}

func only(op string, f fakelock.Fault) func(string) fakelock.Fault {
	return func(asked string) fakelock.Fault {
		if asked == op {
			return f
		}
		return fakelock.Fault{}
	}
}

var (
	hung    = always(fakelock.Fault{LoseRequest: true})
	refuses = always(fakelock.Fault{Refuse: true})
)

// bench is a node "a" on n masters, with links of its own.
type bench struct {
	t   *testing.T
	ctx context.Context
	masters
	*quorum.Lock
	links links
}

// on runs a test in a bubble.
func on(t *testing.T, n int, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, ctx: t.Context(), masters: newMasters(n, timing.TTL)}
		b.Lock = b.lock(t, "a", timing.TTL, b.links.of)
		test(t, b)
		b.links.set(nil, 0, 1, 2, 3, 4)
		time.Sleep(time.Minute) // nothing is left behind: the bubble would not end
	})
}

func (b *bench) ask(c elector.Candidate) elector.Answer {
	b.t.Helper()
	a, err := b.Acquire(b.ctx, c)
	if err != nil {
		b.t.Fatalf("acquire by %s: %v", c.Owner, err)
	}
	return a
}

func (b *bench) win(owner string) elector.Answer {
	b.t.Helper()
	a := b.ask(elector.Candidate{Owner: owner})
	if a.Outcome != elector.Won {
		b.t.Fatalf("acquire by %s: %+v, want it won", owner, a)
	}
	return a
}

// elapsed is how long do takes in the bubble.
func elapsed(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

func TestAMinorityThatHangsDelaysNothing(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		b.win("o0") // there was a term before
		if err := b.Release(b.ctx, "o0", elector.Handover{}); err != nil {
			t.Fatal(err)
		}
		b.links.set(hung, 1, 3)
		var won elector.Answer
		if took := elapsed(func() { won = b.ask(elector.Candidate{Owner: "o1", Floor: 1}) }); won.Outcome != elector.Won || took > 20*time.Millisecond {
			t.Errorf("acquire with two of five hung: %+v after %v", won, took)
		}
		for range 100 {
			var err error
			if took := elapsed(func() { _, err = b.Renew(b.ctx, "o1", won.Epoch) }); err != nil || took > 0 {
				t.Fatalf("renew with two of five hung: %v after %v", err, took)
			}
			time.Sleep(timing.Interval)
		}
		if took := elapsed(func() { _ = b.Release(b.ctx, "o1", elector.Handover{}) }); took > perNode {
			t.Errorf("release took %v, want at most %v", took, perNode)
		}
	})
}

// Else one more fault, before the first renewal, would end the term.
func TestAMasterThatIsSlowWhenATermBeginsIsAskedAgainAtOnce(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		b.win("o0") // there was a term before
		if err := b.Release(b.ctx, "o0", elector.Handover{}); err != nil {
			t.Fatal(err)
		}
		asked := 0
		b.links.set(func(string) fakelock.Fault {
			if asked++; asked == 1 {
				return fakelock.Fault{LoseRequest: true}
			}
			return fakelock.Fault{}
		}, 1)
		won := b.ask(elector.Candidate{Owner: "o1", Floor: 1})
		if n := b.held("o1"); won.Outcome != elector.Won || n != 4 {
			t.Fatalf("acquire: %+v, at %d masters; want it won at 4", won, n)
		}
		time.Sleep(perNode) // when the first request is given up
		if n := b.held("o1"); n != 5 {
			t.Errorf("%d masters are held, want all 5", n)
		}
	})
}

// A driver that ignores its deadline costs one goroutine, and those of the
// requests that wait for it until their own deadline.
func TestADriverThatHangsForEverPilesNothingUp(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		won := b.win("o1")
		b.links.set(always(fakelock.Fault{Deaf: true, Before: 10 * time.Minute}), 2)
		time.Sleep(time.Second)
		before := runtime.NumGoroutine()
		for range 200 {
			if _, err := b.Renew(b.ctx, "o1", won.Epoch); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timing.Interval)
			if n := runtime.NumGoroutine() - before; n > 4 {
				t.Fatalf("%d goroutines more", n)
			}
		}
		b.links.set(nil, 2)
		time.Sleep(10 * time.Minute)
	})
}

func TestWithoutAMajorityNothingIsWonAndNothingIsKept(t *testing.T) {
	for name, f := range map[string]func(string) fakelock.Fault{"hung": hung, "the reply is lost": always(fakelock.Fault{LoseReply: true}), "refuses": refuses} {
		t.Run(name, func(t *testing.T) {
			on(t, 3, func(t *testing.T, b *bench) {
				b.links.set(f, 0, 1)
				var err error
				took := elapsed(func() { _, err = b.Acquire(b.ctx, elector.Candidate{Owner: "o1", Floor: 1}) })
				if err == nil || errors.Is(err, elector.ErrRefused) != (name == "refuses") || took > 2*perNode {
					t.Errorf("acquire: %v after %v", err, took)
				}
				b.links.set(nil, 0, 1)
				time.Sleep(2 * perNode)
				if n := b.held("o1"); n != 0 {
					t.Errorf("%d masters are still held", n)
				}
			})
		})
	}
}

// The masters count for themselves. A majority that has granted a term need not
// have granted the one before.
func TestTheEpochIsTheHighestOfAMajorityAndIsWrittenBack(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		last := b.win("o0").Epoch
		_ = b.Release(b.ctx, "o0", elector.Handover{})
		for i := range 20 {
			owner := fmt.Sprint("o", i+1)
			b.links.set(nil, 0, 1, 2, 3, 4)
			b.links.set(hung, i%5, (i+2)%5)
			won := b.ask(elector.Candidate{Owner: owner, Floor: 1})
			if won.Outcome != elector.Won || won.Epoch <= last {
				t.Fatalf("term %d: %+v after epoch %d", i, won, last)
			}
			last = won.Epoch
			_ = b.Release(b.ctx, owner, elector.Handover{})
			time.Sleep(timing.TTL)
		}
	})
}

func TestAnEpochThatCannotBeWrittenBackIsNotUsed(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		b.win("o0")
		_ = b.Release(b.ctx, "o0", elector.Handover{})
		// Master 2 has granted terms that came to nothing.
		alone := b.masters[2].Node("x", nil)
		for i := range 3 {
			owner := fmt.Sprint("x", i)
			_, _ = alone.Acquire(b.ctx, elector.Candidate{Owner: owner})
			_ = alone.Release(b.ctx, owner, elector.Handover{})
		}
		b.links.set(only("raise", fakelock.Fault{LoseRequest: true}), 0, 1)
		if a, err := b.Acquire(b.ctx, elector.Candidate{Owner: "o1", Floor: 1}); err == nil {
			t.Fatalf("won with an epoch that one master knows: %+v", a)
		}
		time.Sleep(2 * perNode)
		if n := b.held("o1"); n != 0 {
			t.Errorf("%d masters are still held", n)
		}
		b.links.set(nil, 0, 1)
		high := b.win("o2").Epoch
		_ = b.Release(b.ctx, "o2", elector.Handover{})
		b.links.set(hung, 2) // the one that knew
		if low := b.ask(elector.Candidate{Owner: "o3", Floor: 1}); low.Epoch <= high {
			t.Errorf("the next term has epoch %d, after %d", low.Epoch, high)
		}
	})
}

func TestAnswersThatTakeTheWholeLeaseWinNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(3, timing.TTL)
		var locks []elector.Lock
		for _, s := range m {
			locks = append(locks, s.Node("a", only("acquire", fakelock.Fault{After: 9 * time.Second})))
		}
		l := newLock(t, "a", locks, quorum.Options{TTL: timing.TTL, Timeout: timing.TTL, Margin: 2 * time.Second})
		if a, err := l.Acquire(t.Context(), elector.Candidate{Owner: "o1"}); err == nil {
			t.Errorf("%+v", a)
		}
		time.Sleep(time.Second)
		if n := m.held("o1"); n != 0 {
			t.Errorf("%d masters are still held", n)
		}
	})
}

func TestAMasterThatLostTheLockIsTakenAgain(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		b.links.set(hung, 2)
		won := b.ask(elector.Candidate{Owner: "o1", Floor: 1})
		for won.Outcome != elector.Won { // in quarantine: a master could not be asked
			time.Sleep(won.Left)
			won = b.ask(elector.Candidate{Owner: "o1", Floor: 1})
		}
		owner := won.Owner // a fresh one: the first attempt was withdrawn
		b.links.set(nil, 2)
		renew := func() {
			t.Helper()
			if _, err := b.Renew(b.ctx, owner, won.Epoch); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timing.Interval)
		}
		for range 10 { // it is in quarantine
			renew()
		}
		if n := b.held(owner); n != 3 {
			t.Fatalf("%d masters are held: the one that was away at the beginning is not", n)
		}
		b.masters[0].Steal("")
		b.masters[1].Restart(false)
		renew()
		if n := b.held(owner); n != 3 {
			t.Errorf("%d masters are held after one lost its lock and another its data", n)
		}
		_ = b.Release(b.ctx, owner, elector.Handover{})
		time.Sleep(perNode)
		if n := b.held(owner); n != 0 {
			t.Errorf("%d masters are held after the release", n)
		}
	})
}

func TestAMajorityThatHasItElsewhereIsLost(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		won := b.win("o1")
		for i := range 2 {
			b.masters[i].Steal("thief")
		}
		if _, err := b.Renew(b.ctx, "o1", won.Epoch); err != nil {
			t.Fatalf("two of five stolen: %v", err)
		}
		b.masters[2].Steal("thief")
		if _, err := b.Renew(b.ctx, "o1", won.Epoch); !errors.Is(err, elector.ErrLost) {
			t.Fatalf("three of five stolen: %v, want ErrLost", err)
		}
		time.Sleep(perNode)
		if n := b.held("o1"); n != 0 {
			t.Errorf("%d masters are kept from others by a term that is lost", n)
		}
	})
}

func TestARenewalThatNoMajorityAnswersIsUnknown(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		won := b.win("o1")
		b.links.set(hung, 0, 1)
		_, err := b.Renew(b.ctx, "o1", won.Epoch)
		if err == nil || errors.Is(err, elector.ErrLost) || errors.Is(err, elector.ErrRefused) {
			t.Errorf("hung: %v", err)
		}
		if err != nil && !strings.Contains(err.Error(), "1 of 3 masters") {
			t.Errorf("%q does not say how many", err)
		}
		b.links.set(refuses, 0, 1)
		if _, err = b.Renew(b.ctx, "o1", won.Epoch); !errors.Is(err, elector.ErrRefused) || errors.Is(err, elector.ErrLost) {
			t.Errorf("refused by two: %v", err)
		}
		b.links.set(hung, 1)
		if _, err = b.Renew(b.ctx, "o1", won.Epoch); err == nil || errors.Is(err, elector.ErrRefused) {
			t.Errorf("refused by one: %v", err)
		}
	})
}

func TestAnOrderThatOneMasterKnowsReachesTheLeader(t *testing.T) {
	for name, delay := range map[string]time.Duration{"in time": 0, "always after the others have decided": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			on(t, 5, func(t *testing.T, b *bench) {
				won := b.win("o1")
				want := elector.Order{StepDown: true, To: "b", Reason: "upgrade"}
				b.masters[3].Order(want)
				b.links.set(always(fakelock.Fault{After: delay}), 3)
				var order elector.Order
				for range 2 {
					var err error
					if order, err = b.Renew(b.ctx, "o1", won.Epoch); err != nil {
						t.Fatal(err)
					}
					time.Sleep(timing.Interval)
				}
				if order != want {
					t.Errorf("got %+v", order)
				}
				_ = b.Release(b.ctx, "o1", elector.Handover{})
				next := b.win("o2")
				if order, err := b.Renew(b.ctx, "o2", next.Epoch); err != nil || order.StepDown {
					t.Errorf("the next term: %+v, %v", order, err)
				}
			})
		})
	}
}

// The release of an attempt that failed arrives after the next attempt was granted.
func TestALateReleaseTakesNothingFromALaterWin(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		b.win("o0")
		_ = b.Release(b.ctx, "o0", elector.Handover{})
		late := func(op string) fakelock.Fault {
			if op == "release" {
				return fakelock.Fault{Before: 5 * time.Second}
			}
			return fakelock.Fault{}
		}
		b.links.set(hung, 1, 2)
		b.links.set(late, 0)
		if a, err := b.Acquire(b.ctx, elector.Candidate{Owner: "o1", Floor: 1}); err == nil {
			t.Fatalf("one of three: %+v", a)
		}
		b.links.set(nil, 1)
		// Master 0 is still held under the old owner; 1 and 2 decide.
		b.links.set(nil, 2)
		won := b.ask(elector.Candidate{Owner: "o1", Floor: 1})
		if won.Outcome != elector.Won || won.Owner == "" || won.Owner == "o1" {
			t.Fatalf("after a withdrawal that nobody has confirmed: %+v; want it won under a fresh owner", won)
		}
		time.Sleep(6 * time.Second) // the release has arrived
		if _, err := b.Renew(b.ctx, won.Owner, won.Epoch); err != nil {
			t.Error(err)
		}
		if n := b.held(won.Owner); n < 2 {
			t.Errorf("%d masters are held", n)
		}
		// Whoever knows the owner that campaigned may release by it.
		if err := b.Release(b.ctx, "o1", elector.Handover{}); err != nil || b.held(won.Owner) > 1 {
			t.Errorf("release: %v, %d masters are held", err, b.held(won.Owner))
		}
	})
}

// Master 2 never heard of the leader, master 1 has forgotten it, and what master 0
// says does not arrive. A node that knows of no term must not take two masters that
// know of none for the beginning of time.
func TestANewNodeIsNotWonOverByMastersThatHaveForgotten(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		leader := b.lock(t, "l", timing.TTL, func(master int, _ string) fakelock.Fault {
			return fakelock.Fault{LoseRequest: master == 2}
		})
		won, err := leader.Acquire(b.ctx, elector.Candidate{Owner: "l1", Floor: 0})
		for err == nil && won.Outcome != elector.Won {
			time.Sleep(won.Left)
			won, err = leader.Acquire(b.ctx, elector.Candidate{Owner: "l1", Floor: 0})
		}
		if err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		b.masters[1].Restart(false)
		b.links.set(always(fakelock.Fault{LoseReply: true}), 0)
		for time.Since(sent) < timing.TTL-timing.Margin {
			a, err := b.Acquire(b.ctx, elector.Candidate{Owner: "o1"})
			if err == nil && a.Outcome == elector.Won {
				t.Fatalf("won %v after the leader did", time.Since(sent))
			}
			time.Sleep(time.Second)
		}
	})
}

func TestABrandNewLockIsWonAtOnceIfAllMastersAnswer(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		if took := elapsed(func() { b.win("o1") }); took > perNode {
			t.Errorf("won after %v", took)
		}
	})
	on(t, 3, func(t *testing.T, b *bench) {
		b.links.set(hung, 0)
		a := b.ask(elector.Candidate{Owner: "o1"})
		if a.Outcome != elector.Wait || a.Left > timing.TTL {
			t.Fatalf("one cannot be asked: %+v, want to wait for a lease", a)
		}
		time.Sleep(a.Left)
		b.win("o1")
	})
}

func TestAStandbyIsToldWhenAMajorityCanBeFree(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		ctx := context.Background()
		for i, s := range b.masters { // granted after 0, 0, 100, 300 and 600 ms; now are 1000
			owner := s.Node("l", nil)
			if _, err := owner.Acquire(ctx, elector.Candidate{Owner: "l1"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
		}
		a := b.ask(elector.Candidate{Owner: "o1"})
		// The third of five leases is the one that has to end.
		if want := timing.TTL - 900*time.Millisecond; a.Outcome != elector.Held || a.Holder != "l" || a.Left != want {
			t.Errorf("%+v, want it held by l for %v", a, want)
		}
	})
}

func TestAReleaseThatNoMajorityConfirmsIsAnError(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		b.win("o1")
		b.links.set(hung, 0, 1)
		if err := b.Release(b.ctx, "o1", elector.Handover{}); err == nil {
			t.Error("no error")
		}
		b.links.set(nil, 1)
		if err := b.Release(b.ctx, "o1", elector.Handover{}); err != nil {
			t.Error(err)
		}
	})
}

// A process that ends after its release takes requests with it that are still on
// their way to a master that is slow.
func TestSettlingWaitsForTheSlowestMaster(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		b.win("o1")
		b.links.set(always(fakelock.Fault{Before: 2 * perNode / 3}), 2)
		go func() { _, _ = b.Renew(t.Context(), "o1", 1) }() // the release waits behind it
		time.Sleep(time.Millisecond)
		if err := b.Release(t.Context(), "o1", elector.Handover{}); err != nil {
			t.Fatal(err)
		}
		if b.held("o1") == 0 {
			t.Fatal("the slow master was waited for: nothing to test")
		}
		b.Settle(t.Context())
		if n := b.held("o1"); n != 0 {
			t.Errorf("%d masters are still held", n)
		}
		b.links.set(always(fakelock.Fault{Deaf: true, Before: time.Minute}), 2)
		_ = b.Release(t.Context(), "o1", elector.Handover{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if took := elapsed(func() { b.Settle(ctx) }); took != time.Second {
			t.Errorf("settling took %v, want what it was given", took)
		}
		time.Sleep(2 * time.Minute)
	})
}

// What one hung master costs a candidate that knows of no term must leave it the time to
// ask for the lock: an attempt may have less than the master's own timeout.
func TestAHungMasterKeepsNoNewcomerFromWinning(t *testing.T) {
	for _, knows := range []string{"a lock that never was", "a lock that was"} {
		t.Run(knows, func(t *testing.T) {
			on(t, 3, func(t *testing.T, b *bench) {
				if knows == "a lock that was" {
					b.win("o0")
					_ = b.Release(b.ctx, "o0", elector.Handover{})
				}
				time.Sleep(time.Second)
				b.links.set(always(fakelock.Fault{Deaf: true, Before: 10 * time.Minute}), 1)
				began := time.Now()
				for i := 0; ; i++ {
					ctx, cancel := context.WithTimeout(b.ctx, perNode)
					a, err := b.Acquire(ctx, elector.Candidate{Owner: "o1"})
					cancel()
					if err == nil && a.Outcome == elector.Won {
						break
					}
					if time.Since(began) > 2*timing.TTL {
						t.Fatalf("nothing is won within two leases: %+v, %v", a, err)
					}
					time.Sleep(time.Second)
				}
				t.Logf("won after %v", time.Since(began))
				b.links.set(nil, 1)
				time.Sleep(10 * time.Minute)
			})
		})
	}
}

// A newcomer looks before it asks. That is one attempt, after which it pauses as long as
// a rival that knows of the lock already.
func TestANewcomerPausesNoLongerThanItsRivals(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		for i := range 3 {
			_, _ = b.masters[i].Node(string(rune('x'+i)), nil).Acquire(b.ctx, elector.Candidate{Owner: fmt.Sprint(i)})
		}
		for i := range 5 {
			limit := 5 * time.Millisecond << (i + 1)
			if a := b.ask(elector.Candidate{Owner: "o1"}); a.Outcome != elector.Wait || a.Left > limit {
				t.Errorf("attempt %d: %+v, want a pause of at most %v", i+1, a, limit)
			}
		}
	})
}
