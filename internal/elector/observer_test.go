package elector_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// A node without jobs observes. It campaigns as soon as a reload gives it jobs, and no longer after a reload that removes them.
func TestAnObserverIsOneOnlyForAsLongAsItSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var observes atomic.Bool
		observes.Store(true)
		o := startWith(t, "o", s.Node("o", nil), nil, elector.Config{Observer: observes.Load, Hints: s.Hints()})
		time.Sleep(time.Minute)
		if o.Leading() != nil {
			t.Fatal("an observer leads")
		}
		observes.Store(false)
		time.Sleep(poll + 100*time.Millisecond)
		if o.Leading() == nil {
			t.Error("does not lead after a poll, although it observes no more")
		}
		o.stop()
	})
}
