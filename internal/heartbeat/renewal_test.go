package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/heartbeat"
)

// The store counts from the moment when it handled a renewal. The holder knows only that this moment was not before its request.
func TestARenewalExtendsTrustFromItsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		ctx, cancel := context.WithCancel(t.Context())
		var sent time.Time
		err := heartbeat.Keep(ctx, w, func(context.Context) error {
			if sent.IsZero() {
				sent = time.Now()
				time.Sleep(900 * time.Millisecond) // the reply is slow
				return nil
			}
			if got, want := w.UntilHard(), hardAfter-time.Since(sent); got != want {
				t.Errorf("after a slow renewal the hard stop is in %v, want %v", got, want)
			}
			cancel()
			return nil
		}, heartbeat.Options{})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestALossIsNoticedWhateverTheStoreSaysOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, _ := bubbleClock()
		w := heartbeat.NewWindow(clock, timing, clock())
		err := heartbeat.Keep(t.Context(), w, func(context.Context) error {
			return fmt.Errorf("owner-2 holds it: %w", heartbeat.ErrLost)
		}, heartbeat.Options{})
		if !errors.Is(err, heartbeat.ErrLost) || w.Trusted() {
			t.Errorf("Keep: %v, trusted %v; want ErrLost, false", err, w.Trusted())
		}
	})
}
