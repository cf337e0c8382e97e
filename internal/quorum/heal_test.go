package quorum_test

import (
	"context"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
)

// The host was suspended during a renewal, and the trust window has ended. A master that has lost the lock belongs to the next term, so
// the renewal must not take it again.
func TestNoMasterIsTakenAgainPastTheTrustWindow(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		on(t, 3, func(t *testing.T, b *bench) {
			won := b.win("o1")
			b.masters[0].Steal("")
			var now heartbeat.Instant
			ctx, cancel := context.WithCancel(b.ctx)
			window := heartbeat.NewWindow(func() heartbeat.Instant { return now }, timing, 0)
			err := heartbeat.Keep(ctx, window, func(ctx context.Context) error {
				if suspended {
					now = now.Add(timing.TTL) // Keep has looked at the window before
				}
				_, err := b.Renew(ctx, "o1", won.Epoch)
				time.Sleep(perNode)
				cancel()
				return err
			}, heartbeat.Options{})
			want := 3
			if suspended {
				want = 2
			}
			if n := b.held("o1"); err != nil || n != want {
				t.Errorf("suspended: %v; %d masters are held, want %d; %v", suspended, n, want, err)
			}
			_ = b.Release(b.ctx, "o1", elector.Handover{})
		})
	}
}
