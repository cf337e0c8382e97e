package elector_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// A watchdog ends a process whose election makes no progress. A node in its cool-down makes progress, however long the cool-down lasts.
func TestStandingAsideIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), func(context.Context, *elector.Term) error {
			return &elector.Abdication{Reason: "its database is away", CoolDown: 5 * time.Minute}
		})
		time.Sleep(5*time.Minute - time.Second)
		if idle := a.SinceProgress(); idle > 30*time.Second {
			t.Errorf("no progress for %v in a cool-down", idle)
		}
		if n := len(a.kinds(elector.EventWon)); n != 1 {
			t.Errorf("%d terms within the cool-down", n)
		}
		a.stop()
	})
}

// Two nodes step down in quick succession: the first must be ready when the second steps down, because others have had their turn.
func TestStepDownsInQuickSuccessionLeaveNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		synctest.Wait()
		b := start(t, "b", s.Node("b", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		for i := range 6 {
			from, to := a, b
			if i%2 == 1 {
				from, to = b, a
			}
			if from.Leading() == nil {
				t.Fatalf("%s does not lead before step-down %d", from.id, i)
			}
			s.Order(elector.Order{StepDown: true, To: to.id})
			time.Sleep(60 * time.Millisecond)
			if to.Leading() == nil {
				t.Errorf("%s does not lead 60 ms after step-down %d", to.id, i)
			}
		}
		a.stop()
		b.stop()
	})
}

// A term may begin and end before the node that gave up the previous term has asked again, for example in two consecutive drills. The
// only answer that this node gets, that others have had their turn, must be enough.
func TestATermShorterThanALookLeavesNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		synctest.Wait()
		b := start(t, "b", s.Node("b", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		s.Order(elector.Order{StepDown: true, To: "b"})
		for b.Leading() == nil {
			time.Sleep(100 * time.Microsecond)
		}
		s.Order(elector.Order{StepDown: true})
		time.Sleep(60 * time.Millisecond)
		if a.Leading() == nil {
			t.Error("does not lead 60 ms after the short term of another")
		}
		a.stop()
		b.stop()
	})
}

// A node that cannot do the work does not take the lock when others hand it over. It follows the leader, and takes the lock only after
// the end of the cool-down.
func TestACoolDownOutlastsTheTermsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		over := make(chan struct{})
		terms := 0
		a := start(t, "a", s.Node("a", nil), s.Hints(), func(ctx context.Context, _ *elector.Term) error {
			if terms++; terms == 1 {
				return &elector.Abdication{Reason: "its database is away", CoolDown: time.Minute, Over: over}
			}
			<-ctx.Done()
			return nil
		})
		synctest.Wait()
		b := start(t, "b", s.Node("b", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		for range 3 {
			if b.Leading() == nil {
				t.Fatal("the other node does not lead")
			}
			if h := a.Holder(); h != "b" {
				t.Errorf("in its cool-down the node takes %q for the leader", h)
			}
			s.Order(elector.Order{StepDown: true})
			time.Sleep(poll / 2)
			if a.Leading() != nil {
				t.Fatal("a release ends the cool-down")
			}
			time.Sleep(2 * poll)
		}
		b.stop()
		time.Sleep(poll)
		if a.Leading() != nil {
			t.Error("leads before the cool-down is over")
		}
		close(over)
		time.Sleep(poll / 4)
		if a.Leading() == nil {
			t.Error("does not lead although the cool-down was ended")
		}
		a.stop()
	})
}

// A node in its cool-down asks as an observer, but is not an observer: its events must not say that it never leads.
func TestWhoeverStandsAsideIsNotTakenForAnObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), func(context.Context, *elector.Term) error {
			return &elector.Abdication{Reason: "its database is away", CoolDown: time.Minute}
		})
		time.Sleep(30 * time.Second)
		if _, why := a.Waiting(); why != "" {
			t.Errorf("waits because of %q", why)
		}
		if told := a.kinds(elector.EventWaiting); len(told) > 0 {
			t.Errorf("told %v", told)
		}
		s.Restart(true)
		time.Sleep(2 * poll)
		if _, why := a.Waiting(); why != "in quarantine" {
			t.Errorf("waits because of %q; want the quarantine, which is in everybody's way", why)
		}
		a.stop()
	})
}
