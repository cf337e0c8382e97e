package elector_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/testsupport/fakelock"
	"baton/internal/testsupport/locktest"
)

func TestFakeLockConforms(t *testing.T) {
	locktest.RunInBubble(t, func(*testing.T) locktest.Harness {
		s := fakelock.NewStore(time.Second)
		return locktest.Harness{
			TTL: time.Second, A: s.Node("a", nil), B: s.Node("b", nil), C: s.Node("c", nil), Flush: s.Flush, Sleep: time.Sleep,
			StepDown: func(to, reason string) error {
				s.Order(elector.Order{StepDown: true, To: to, Reason: reason})
				return nil
			},
		}
	})
}

func TestOneLeadsAndTheOtherKnowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), nil, nil)
		time.Sleep(time.Second)
		b := start(t, "b", s.Node("b", nil), nil, nil)
		time.Sleep(time.Hour)
		if a.Leading() == nil || b.Leading() != nil || b.Holder() != "a" {
			t.Errorf("a leads %v, b leads %v and takes %q for the leader", a.Leading(), b.Leading(), b.Holder())
		}
		if n := len(s.Owners()); n != 1 {
			t.Errorf("%d terms in an hour without a fault", n)
		}
		b.stop()
		a.stop()
	})
}

func TestATermKnowsSinceWhenNobodyLed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), nil, nil)
		time.Sleep(time.Second)
		if free := a.Leading().FreeFor(); free != 0 {
			t.Errorf("before the first term the lock was free for %v, which nobody knows", free)
		}
		a.stop()
		time.Sleep(time.Minute)
		b := start(t, "b", s.Node("b", nil), nil, nil)
		time.Sleep(time.Second)
		if free := b.Leading().FreeFor(); free != 61*time.Second {
			t.Errorf("the lock has become free %v ago, want 61 s", free)
		}
		b.stop()
	})
}

func TestALostReplyOfTheAcquireDoesNotLockUsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var faults script
		first := true
		faults.set(func(op string) fakelock.Fault {
			defer func() { first = false }()
			return fakelock.Fault{LoseReply: first && op == "acquire"}
		})
		a := start(t, "a", s.Node("a", faults.fault), nil, nil)
		time.Sleep(2 * time.Second)
		if a.Leading() == nil {
			t.Fatal("the node does not lead although its request was granted")
		}
		if owners := s.Owners(); len(owners) != 1 {
			t.Errorf("owners %v: the lock was won twice", owners)
		}
		a.stop()
	})
}

func TestAGrantThatArrivesTooLateIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		slow := true
		worked := 0
		a := start(t, "a", s.Node("a", func(op string) fakelock.Fault {
			if op != "acquire" || !slow {
				return fakelock.Fault{}
			}
			slow = false
			return fakelock.Fault{After: 9 * time.Second, Deaf: true}
		}), nil, func(ctx context.Context, term *elector.Term) error {
			worked++
			if !term.Trusted() {
				t.Error("work began outside the trust window")
			}
			<-ctx.Done()
			return nil
		})
		time.Sleep(9*time.Second + time.Millisecond)
		if owners := s.Owners(); len(owners) != 2 || owners[0] == owners[1] {
			t.Errorf("owners %v, want the late one given back and a new one", owners)
		}
		a.stop()
		if won := len(a.kinds(elector.EventWon)); worked != 1 || won != 1 {
			t.Errorf("the work ran %d times, and %d wins were told; want once", worked, won)
		}
	})
}

func TestShuttingDownInDoubtGivesTheLockBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", func(op string) fakelock.Fault { return fakelock.Fault{LoseReply: op == "acquire"} }), nil, nil)
		time.Sleep(1500 * time.Millisecond)
		if owner, _ := s.Holder(); owner == "" {
			t.Fatal("the request was not applied: nothing to test")
		}
		a.stop()
		if owner, _ := s.Holder(); owner != "" {
			t.Errorf("%s still holds the lock after its node has stopped", owner)
		}
	})
}

func TestTheWorkStopsBeforeTheLeaseCanEndWhenTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var faults script
		var lastSent, stopped time.Time
		var cause error
		faults.set(func(string) fakelock.Fault { lastSent = time.Now(); return fakelock.Fault{} })
		a := start(t, "a", s.Node("a", faults.fault), nil, func(ctx context.Context, _ *elector.Term) error {
			<-ctx.Done()
			if stopped.IsZero() {
				stopped, cause = time.Now(), context.Cause(ctx)
			}
			return nil
		})
		time.Sleep(time.Minute)
		faults.set(silent)
		time.Sleep(3 * timing.TTL)
		synctest.Wait()
		if got := stopped.Sub(lastSent); got != softAfter {
			t.Errorf("the work was stopped %v after the last answered request was sent, want %v", got, softAfter)
		}
		if !errors.Is(cause, elector.ErrTrustClosed) {
			t.Errorf("cause %v, want ErrTrustClosed", cause)
		}
		if a.deaths() != 0 {
			t.Error("the process died although its work returned")
		}
		if lost := a.kinds(elector.EventStoreLost); len(lost) != 1 {
			t.Errorf("the trouble was told %d times, want once", len(lost))
		}
		back := time.Now()
		faults.set(nil)
		for a.Leading() == nil && time.Since(back) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(back); took > timing.TTL {
			t.Errorf("leads again %v after the store is back, want within one lease", took)
		}
		if n := len(a.kinds(elector.EventStoreBack)); n != 1 {
			t.Errorf("the return was told %d times, want once", n)
		}
		if owners := s.Owners(); len(owners) != 2 || owners[0] == owners[1] {
			t.Errorf("owners %v: the new term needs an owner of its own", owners)
		}
		a.stop()
	})
}

func TestALeaderThatCannotStopDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var faults script
		var lastSent time.Time
		faults.set(func(string) fakelock.Fault { lastSent = time.Now(); return fakelock.Fault{} })
		release := make(chan struct{})
		a := start(t, "a", s.Node("a", faults.fault), nil, func(context.Context, *elector.Term) error {
			<-release // the work ignores its context
			return nil
		})
		time.Sleep(time.Minute)
		faults.set(silent)
		time.Sleep(time.Until(lastSent.Add(hardAfter - time.Millisecond)))
		if a.deaths() != 0 {
			t.Error("died before the hard stop")
		}
		time.Sleep(2 * time.Millisecond)
		if a.deaths() != 1 {
			t.Error("still alive after the hard stop")
		}
		close(release)
		a.stop()
	})
}

// Only work in progress is a reason to die. The loop of an idle term may get no processor before the hard stop, and a term whose work
// has ended may take long to record its end.
func TestOnlyATermThatWorksDiesAtTheHardStop(t *testing.T) {
	for name, works := range map[string]bool{"idle": false, "worked before": false, "works": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakelock.NewStore(timing.TTL)
				var faults script
				scheduled, terms := make(chan struct{}), 0
				a := startWith(t, "a", s.Node("a", faults.fault), func(ctx context.Context, term *elector.Term) error {
					if terms++; terms > 1 {
						<-ctx.Done()
						return nil
					}
					if name != "idle" && !term.Begin() {
						t.Error("its work did not begin")
					}
					if name == "worked before" {
						term.End()
					}
					<-scheduled
					if term.Begin() {
						t.Error("work began after the hard stop")
					}
					return nil
				}, elector.Config{Counts: true})
				time.Sleep(time.Minute)
				faults.set(silent)
				time.Sleep(2 * timing.TTL)
				if died := a.deaths() > 0; died != works {
					t.Errorf("the process died: %v, want %v", died, works)
				}
				faults.set(nil)
				close(scheduled)
				time.Sleep(timing.TTL)
				synctest.Wait()
				if expired := a.kinds(elector.EventExpired); len(expired) != 1 || a.Leading() == nil {
					t.Errorf("told %+v, and leads again: %v; want one expiry, and another term", expired, a.Leading() != nil)
				}
				a.stop()
			})
		})
	}
}

func TestNoWorkBeginsAfterTheSoftStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var faults script
		a := startWith(t, "a", s.Node("a", faults.fault), func(_ context.Context, term *elector.Term) error {
			<-term.Closed()
			if term.UntilHardStop() <= 0 || term.Begin() {
				t.Errorf("work began %v before the hard stop", term.UntilHardStop())
			}
			return nil
		}, elector.Config{Counts: true})
		time.Sleep(time.Minute)
		faults.set(silent)
		time.Sleep(timing.TTL)
		a.stop()
	})
}

// On a host without free processors each new term would delay the renewals of the others.
func TestACandidateWaitsForTheRenewalsOfItsProcess(t *testing.T) {
	for name, back := range map[string]bool{"the renewal is answered": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var faults script
				var beat heartbeat.Beat
				a := startWith(t, "a", fakelock.NewStore(timing.TTL).Node("a", faults.fault), nil, elector.Config{Beat: &beat})
				time.Sleep(time.Minute)
				faults.set(silent)
				time.Sleep(timing.Interval*3/2 + 100*time.Millisecond) // the renewal is overdue, and the term goes on for longer than b waits
				began := time.Now()
				var asked atomic.Int64 // how long after began, and at least a nanosecond
				b := startWith(t, "b", fakelock.NewStore(timing.TTL).Node("b", func(string) fakelock.Fault {
					asked.CompareAndSwap(0, int64(max(time.Since(began), 1)))
					return fakelock.Fault{}
				}), nil, elector.Config{Beat: &beat})
				time.Sleep(timing.Timeout / 2)
				synctest.Wait()
				if after := asked.Load(); after != 0 {
					t.Errorf("it asked after %v, while a renewal was overdue", time.Duration(after))
				}
				if back {
					faults.set(nil)
				}
				time.Sleep(3 * timing.Timeout)
				synctest.Wait()
				if waited := time.Duration(asked.Load()); waited == 0 || !back && waited < timing.Timeout || waited > timing.Timeout*3 {
					t.Errorf("it asked after %v", waited)
				}
				b.stop()
				a.stop()
			})
		})
	}
}

func TestALeaseThatSomebodyElseHoldsStopsTheWorkAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var cause error
		var stopped time.Time
		a := start(t, "a", s.Node("a", nil), nil, func(ctx context.Context, term *elector.Term) error {
			<-ctx.Done()
			if cause == nil {
				cause, stopped = context.Cause(ctx), time.Now()
			}
			if term.Trusted() {
				t.Error("a lost lease is trusted")
			}
			return nil
		})
		time.Sleep(time.Minute)
		s.Steal("intruder")
		stolen := time.Now()
		time.Sleep(timing.TTL / 2)
		synctest.Wait()
		if !errors.Is(cause, elector.ErrLeaseLost) {
			t.Errorf("cause %v, want ErrLeaseLost", cause)
		}
		if took := stopped.Sub(stolen); took > timing.Interval*11/10 {
			t.Errorf("noticed after %v, want within one renewal", took)
		}
		if owner, _ := s.Holder(); owner != "intruder" {
			t.Errorf("the lock of another owner was taken away: %q holds it", owner)
		}
		if by := a.kinds(elector.EventStandby); len(by) != 1 || by[0].Holder != "" {
			t.Errorf("told %+v, want once that a foreign client holds the lock", by)
		}
		a.stop()
	})
}

func TestTheLeaseIsKeptUntilTheWorkHasReturned(t *testing.T) {
	endings := map[string]func(*fakelock.Store, *node){
		"step-down": func(s *fakelock.Store, _ *node) { s.Order(elector.Order{StepDown: true, Reason: "upgrade"}) },
		"shutdown":  func(_ *fakelock.Store, a *node) { a.cancel() },
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakelock.NewStore(timing.TTL)
				var returned time.Time
				a := start(t, "a", s.Node("a", nil), s.Hints(), func(ctx context.Context, _ *elector.Term) error {
					<-ctx.Done()
					if returned.IsZero() {
						time.Sleep(5 * timing.TTL) // a long drain
						returned = time.Now()
					}
					return nil
				})
				time.Sleep(time.Second)
				owner, _ := s.Holder()
				end(s, a)
				for range 49 {
					time.Sleep(timing.TTL / 10)
					if now, _ := s.Holder(); now != owner {
						t.Fatalf("%q holds the lock while the work of %q still runs", now, owner)
					}
				}
				time.Sleep(timing.TTL / 5)
				if now, _ := s.Holder(); now == owner || returned.IsZero() {
					t.Errorf("returned %v: %q holds the lock", !returned.IsZero(), now)
				}
				if a.deaths() != 0 {
					t.Error("died although the lease was kept")
				}
				a.stop()
			})
		})
	}
}

func TestAStepDownHandsOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		b := start(t, "b", s.Node("b", nil), s.Hints(), nil)
		c := start(t, "c", s.Node("c", nil), s.Hints(), nil)
		// Two nodes may win each time. If the named node only won by chance, it would not win six times in a row.
		for i, successor := range []*node{c, b, a, c, b, c} {
			time.Sleep(10 * time.Second)
			s.Order(elector.Order{StepDown: true, To: successor.id, Reason: "drill"})
			time.Sleep(20 * time.Millisecond)
			if successor.Leading() == nil {
				t.Errorf("order %d: node %s, the named successor, does not lead 20ms after it", i, successor.id)
			}
		}
		ended := a.kinds(elector.EventSteppedDown)
		if len(ended) != 2 || ended[0].Reason != "drill" {
			t.Errorf("the first leader told %+v, want two step-downs for the order's reason", ended)
		}
		s.Order(elector.Order{StepDown: true})
		time.Sleep(20 * time.Millisecond)
		if a.Leading() == nil && b.Leading() == nil {
			t.Error("no other node leads 20ms after an order without a successor")
		}
		for _, n := range []*node{a, b, c} {
			n.stop()
		}
	})
}

func TestALonelyNodeLeadsAgainAfterAStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		s.Order(elector.Order{StepDown: true})
		time.Sleep(poll)
		if a.Leading() != nil {
			t.Error("did not stand aside for a poll interval")
		}
		time.Sleep(poll)
		if a.Leading() == nil {
			t.Error("no node leads although the only node has stood aside long enough")
		}
		a.stop()
	})
}

func TestWorkThatFailsEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), func(context.Context, *elector.Term) error { return errWork })
		time.Sleep(time.Second)
		ended := a.kinds(elector.EventSteppedDown)
		if len(ended) != 1 || !errors.Is(ended[0].Err, errWork) {
			t.Errorf("told %+v, want one end of term with the work's error", ended)
		}
		if owner, _ := s.Holder(); owner != "" {
			t.Errorf("%s still holds the lock", owner)
		}
		a.stop()
	})
}

func TestAStandbyTakesOverWhenTheLeaseEndsWithoutAnyHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var cable script
		a := start(t, "a", s.Node("a", cable.fault), nil, nil)
		time.Sleep(time.Second)
		b := start(t, "b", s.Node("b", nil), nil, nil)
		time.Sleep(10*time.Second + 1234*time.Millisecond)
		cable.set(silent)
		for owner, node := s.Holder(); owner != "" && node == "a"; owner, node = s.Holder() {
			time.Sleep(time.Millisecond)
		}
		free := time.Now()
		for b.Leading() == nil {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(free); took > 60*time.Millisecond {
			t.Errorf("the lock was free for %v, want at most the jitter of 50ms and 5ms of slack", took)
		}
		b.stop()
		a.stop()
	})
}

func TestForgedHintsDoNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		b := start(t, "b", s.Node("b", nil), s.Hints(), nil)
		for range 100 {
			for _, h := range []elector.Hint{elector.HintReleased, elector.HintControl, elector.HintSubscribed} {
				s.Forge(h)
				time.Sleep(37 * time.Millisecond)
			}
		}
		if a.Leading() == nil || b.Leading() != nil || len(s.Owners()) != 1 {
			t.Errorf("a leads %v, b leads %v, owners %v", a.Leading() != nil, b.Leading() != nil, s.Owners())
		}
		b.stop()
		a.stop()
	})
}

func TestRaiseLiftsTheTermsEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var before, after int64
		a := start(t, "a", s.Node("a", nil), nil, func(ctx context.Context, term *elector.Term) error {
			if before == 0 {
				before = term.Epoch()
				if _, err := term.Raise(ctx, before+1000); err != nil {
					t.Errorf("raise: %v", err)
				}
				after = term.Epoch()
				return nil
			}
			if term.Epoch() <= after {
				t.Errorf("the next term has epoch %d after %d", term.Epoch(), after)
			}
			<-ctx.Done()
			return nil
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if after <= before+1000 {
			t.Errorf("epoch %d, want above %d", after, before+1000)
		}
		a.stop()
	})
}
