package elector_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// A shutdown waits for the work, but the lease does not wait for a shutdown.
func TestALeaderThatCannotStopDiesInAShutdownToo(t *testing.T) {
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
		a.cancel()
		time.Sleep(time.Minute)
		if a.deaths() != 0 {
			t.Error("died although the lease was kept")
		}
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
		<-a.done
	})
}

// Renewals may have reached the store although no answer came back. The lease that they have extended would keep every other node out.
func TestATermThatMayNotActAnyMoreGivesTheLockUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", func(op string) fakelock.Fault { return fakelock.Fault{LoseReply: op == "renew"} }), nil, nil)
		time.Sleep(time.Second)
		first, _ := s.Holder()
		time.Sleep(softAfter)
		if now, _ := s.Holder(); first == "" || now == first {
			t.Errorf("%q held the lock, and %q holds it when its trust is over", first, now)
		}
		if ended := a.kinds(elector.EventExpired); len(ended) != 1 || !ended[0].Released {
			t.Errorf("told %+v, want one term that has expired and released its lock", ended)
		}
		a.stop()
	})
}
