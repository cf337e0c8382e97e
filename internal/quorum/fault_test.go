package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/quorum"
	"baton/internal/testsupport/fakelock"
)

func TestAMinorityThatHangsDelaysNothing(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		b.win("o0") // so that there was an earlier term
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

// A master whose own epoch is higher grants the lock so late that the term's epoch is already known. A candidate that asks again, for
// example after a lost reply, gets the same epoch.
func TestAMasterThatGrantsATermLateDoesNotChangeItsEpoch(t *testing.T) {
	on(t, 3, func(t *testing.T, b *bench) {
		b.win("o0")
		_ = b.Release(b.ctx, "o0", elector.Handover{})
		alone := b.masters[2].Node("x", nil)
		for i := range 3 { // terms that never began
			owner := fmt.Sprint("x", i)
			_, _ = alone.Acquire(b.ctx, elector.Candidate{Owner: owner})
			_ = alone.Release(b.ctx, owner, elector.Handover{})
		}
		b.links.set(always(fakelock.Fault{After: perNode / 2}), 2)
		won := b.ask(elector.Candidate{Owner: "o1", Floor: 1})
		b.links.set(nil, 2)
		time.Sleep(perNode)
		if again := b.ask(elector.Candidate{Owner: "o1", Floor: 1}); won.Outcome != elector.Won || again.Outcome != elector.Won || again.Epoch != won.Epoch {
			t.Errorf("won %+v, and asked again %+v; want the same epoch", won, again)
		}
		raised, err := b.Raise(b.ctx, "o1", won.Epoch+100)
		if again := b.ask(elector.Candidate{Owner: "o1", Floor: 1}); err != nil || again.Epoch != raised {
			t.Errorf("raised to %d, %v, and asked again %+v; want the same epoch", raised, err, again)
		}
		_ = b.Release(b.ctx, "o1", elector.Handover{})
		if next := b.win("o2"); next.Epoch <= raised {
			t.Errorf("the next term has epoch %d after %d", next.Epoch, raised)
		}
	})
}

// Otherwise one more fault, before the first renewal, would end the term.
func TestAMasterThatIsSlowWhenATermBeginsIsAskedAgainAtOnce(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		b.win("o0") // so that there was an earlier term
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
		time.Sleep(perNode) // until the first request is given up
		if n := b.held("o1"); n != 5 {
			t.Errorf("%d masters are held, want all 5", n)
		}
	})
}

// A driver that ignores its deadline costs one goroutine, and the goroutines of the requests that wait behind it until their own
// deadline.
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

// Each master counts its own epochs. A majority that has granted a term need not have granted the one before.
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
		// Master 2 has granted terms that never began.
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
		b.links.set(hung, 2) // the master that knew the epoch
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
		for won.Outcome != elector.Won { // the master is in quarantine, because one master could not be asked
			time.Sleep(won.Left)
			won = b.ask(elector.Candidate{Owner: "o1", Floor: 1})
		}
		owner := won.Owner // a new owner, because the first attempt was withdrawn
		b.links.set(nil, 2)
		renew := func() {
			t.Helper()
			if _, err := b.Renew(b.ctx, owner, won.Epoch); err != nil {
				t.Fatal(err)
			}
			time.Sleep(timing.Interval)
		}
		for range 10 { // the lock is in quarantine
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
		// Master 0 is still held under the old owner, but masters 1 and 2 decide.
		b.links.set(nil, 2)
		won := b.ask(elector.Candidate{Owner: "o1", Floor: 1})
		if won.Outcome != elector.Won || won.Owner == "" || won.Owner == "o1" {
			t.Fatalf("after a withdrawal that nobody has confirmed: %+v; want it won under a fresh owner", won)
		}
		time.Sleep(6 * time.Second) // the late release has arrived
		if _, err := b.Renew(b.ctx, won.Owner, won.Epoch); err != nil {
			t.Error(err)
		}
		if n := b.held(won.Owner); n < 2 {
			t.Errorf("%d masters are held", n)
		}
		// A caller that knows only the owner that campaigned may release with this owner.
		if err := b.Release(b.ctx, "o1", elector.Handover{}); err != nil || b.held(won.Owner) > 1 {
			t.Errorf("release: %v, %d masters are held", err, b.held(won.Owner))
		}
	})
}

func TestAStandbyIsToldWhenAMajorityCanBeFree(t *testing.T) {
	on(t, 5, func(t *testing.T, b *bench) {
		ctx := context.Background()
		for i, s := range b.masters { // granted after 0, 0, 100, 300 and 600 ms; now it is 1000
			owner := s.Node("l", nil)
			if _, err := owner.Acquire(ctx, elector.Candidate{Owner: "l1"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(i) * 100 * time.Millisecond)
		}
		a := b.ask(elector.Candidate{Owner: "o1"})
		// The third of the five leases decides, because it must end.
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
