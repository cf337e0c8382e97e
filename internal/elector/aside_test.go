package elector_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// A watchdog ends a process whose election makes no progress. Standing aside is what
// it does then, however long that takes.
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
