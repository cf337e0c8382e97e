package elector_test

import (
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/testsupport/fakelock"
)

// If a store has lost all its data, only the standbys know that a node led, and that this node may still lead.
func TestAStandbyThatHasHeardOfALeaderWaitsForItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var cable script
		a := start(t, "a", s.Node("a", cable.fault), nil, nil)
		time.Sleep(time.Second)
		b := start(t, "b", s.Node("b", nil), nil, nil)
		time.Sleep(10 * time.Second)
		cable.set(silent)
		s.Flush()
		lost := time.Now()
		for b.Leading() == nil && time.Since(lost) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(lost); took < timing.TTL || took > 2*timing.TTL {
			t.Errorf("the standby led %v after the store had lost its data; want one lease of %v", took, timing.TTL)
		}
		b.stop()
		a.stop()
	})
}
