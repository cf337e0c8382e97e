package elector_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// A client that can publish on the wake channel must not be able to make the leader do nothing but renew, or to hide an order among
// forged hints.
func TestForgedOrdersDoNotMakeTheLeaderRenewWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var renewals atomic.Int64
		count := func(op string) fakelock.Fault {
			if op == "renew" {
				renewals.Add(1)
			}
			return fakelock.Fault{}
		}
		a := start(t, "a", s.Node("a", count), s.Hints(), nil)
		time.Sleep(time.Second)
		before := renewals.Load()
		for range 10_000 {
			s.Forge(elector.HintControl)
			time.Sleep(100 * time.Microsecond)
		}
		if n := renewals.Load() - before; n < 10 || n > 21 {
			t.Errorf("%d renewals in a second of forged hints, want one for every 50ms", n)
		}
		asked := time.Now()
		s.Order(elector.Order{StepDown: true, Reason: "drill"})
		for a.Leading() != nil {
			s.Forge(elector.HintControl)
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(asked); took > 60*time.Millisecond {
			t.Errorf("an order among forged hints took %v", took)
		}
		a.stop()
	})
}

func TestAnOrderAfterAQuietTimeIsObeyedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		s.Order(elector.Order{StepDown: true, Reason: "drill"})
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if a.Leading() != nil {
			t.Error("still leads a millisecond after the order")
		}
		a.stop()
	})
}

// An order that was published while the subscription was broken waits only until the subscription is back.
func TestAnOrderThatWasNotHeardIsObeyedOnceHintsAreBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		hints := make(chan elector.Hint, 1)
		a := start(t, "a", s.Node("a", nil), hints, nil)
		time.Sleep(100 * time.Millisecond)
		s.Order(elector.Order{StepDown: true, Reason: "drill"})
		time.Sleep(100 * time.Millisecond)
		if a.Leading() == nil {
			t.Fatal("obeys an order that it cannot know")
		}
		hints <- elector.HintSubscribed
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if a.Leading() != nil {
			t.Error("still leads a millisecond after hints are back")
		}
		a.stop()
	})
}
