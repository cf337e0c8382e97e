package elector_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// The reason why no node may take the free lock is reported once, and no longer holds when a node leads.
func TestWhyNobodyMayTakeTheLockIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := startKnowing(t, 7, "a", s.Node("a", nil), nil, nil) // the store does not know this epoch
		time.Sleep(timing.TTL - time.Second)
		if code, why := a.Waiting(); code != elector.CodeQuarantine || why != "in quarantine" || a.Leading() != nil {
			t.Errorf("waiting %q, %q, leading %v", code, why, a.Leading())
		}
		time.Sleep(2 * time.Second)
		if code, why := a.Waiting(); code != "" || why != "" || a.Leading() == nil || a.Leading().Epoch() <= 7 {
			t.Errorf("after the quarantine: waiting %q, %q, leading %v", code, why, a.Leading())
		}
		if told := a.kinds(elector.EventWaiting); len(told) != 1 || told[0].Reason != "in quarantine" {
			t.Errorf("told %v; want the quarantine once", told)
		}
		a.stop()
	})
}

func TestAnObserverFollowsTheElectionAndNeverLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		o := startWith(t, "o", s.Node("o", nil), nil, elector.Config{Observer: func() bool { return true }, Hints: s.Hints()})
		time.Sleep(time.Minute)
		if code, why := o.Waiting(); code != elector.CodeLeft || why == "" {
			t.Error("does not tell why no node leads")
		}
		a := start(t, "a", s.Node("a", nil), nil, nil)
		time.Sleep(poll + 100*time.Millisecond)
		if o.Holder() != "a" {
			t.Errorf("the holder is %q; want a", o.Holder())
		}
		a.stop()
		time.Sleep(time.Minute)
		if o.Holder() != "" || len(o.kinds(elector.EventWon)) > 0 {
			t.Errorf("holder %q, events %v; want nobody", o.Holder(), o.kinds(elector.EventWon))
		}
		o.stop()
	})
}

func TestASpentOwnerAsksNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		lock := &acquireFails{Lock: s.Node("a", nil)}
		lock.fail(fmt.Errorf("too few replicas: %w", elector.ErrSpent))
		a := start(t, "a", lock, nil, nil)
		time.Sleep(timing.TTL + time.Second)
		asked := lock.attempts()
		for _, c := range asked[1:] {
			if c.Owner == asked[0].Owner {
				t.Errorf("asked as %v; want another owner after the first attempt", asked)
			}
		}
		if term := a.Leading(); term == nil || term.Owner() == asked[0].Owner {
			t.Errorf("leading %v after the first owner's lease", term)
		}
		a.stop()
	})
}
