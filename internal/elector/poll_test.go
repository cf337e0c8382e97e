package elector_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// While hints come, polls are only needed for lost hints and may be rarer. They must not be rarer for a lock without hints, or after
// the hints have ceased.
func TestAStandbyThatIsHintedPollsMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var hinted atomic.Bool
		var attempts atomic.Int64
		leader := start(t, "a", s.Node("a", nil), nil, nil)
		synctest.Wait()
		count := func(op string) fakelock.Fault {
			if op == "acquire" {
				attempts.Add(1)
			}
			return fakelock.Fault{}
		}
		b := startWith(t, "b", s.Node("b", count), nil, elector.Config{Hints: make(chan elector.Hint), Hinted: hinted.Load})
		inAMinute := func() int64 {
			time.Sleep(10 * time.Second)
			before := attempts.Load()
			time.Sleep(time.Minute)
			return attempts.Load() - before
		}
		if n := inAMinute(); n < 29 || n > 30 {
			t.Errorf("%d polls a minute without hints, want one every 2 s", n)
		}
		hinted.Store(true)
		if n := inAMinute(); n < 9 || n > 10 {
			t.Errorf("%d polls a minute with hints, want one every 6 s", n)
		}
		hinted.Store(false)
		if n := inAMinute(); n < 29 || n > 30 {
			t.Errorf("%d polls a minute after the hints have ceased, want one every 2 s", n)
		}
		hinted.Store(true)
		leader.stop()
		time.Sleep(hardAfter)
		if b.Leading() == nil {
			t.Error("a lost hint costs more than the lease")
		}
		b.stop()

		s.Steal("somebody else's")
		c := startWith(t, "c", s.Node("c", count), nil, elector.Config{Hints: make(chan elector.Hint), Hinted: hinted.Load})
		before := attempts.Load()
		time.Sleep(timing.TTL - time.Second)
		if n := attempts.Load() - before; n < 4 {
			t.Errorf("%d polls in 9 s of a foreign client's lock, want one every 2 s", n)
		}
		c.stop()
	})
}
