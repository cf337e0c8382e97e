package elector_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/testsupport/fakelock"
)

// However long the store was away, and however short the lease: once it is back,
// somebody leads within one lease.
func TestAfterALongOutageSomebodyLeadsWithinOneLease(t *testing.T) {
	short := heartbeat.Timing{
		TTL: 2 * time.Second, Interval: 400 * time.Millisecond, Timeout: 200 * time.Millisecond,
		Margin: 270 * time.Millisecond, Drain: 400 * time.Millisecond,
	}
	for range 50 { // pauses are random
		synctest.Test(t, func(t *testing.T) {
			faults := &script{}
			faults.set(silent)
			s := fakelock.NewStore(short.TTL)
			began := time.Now()
			e, err := elector.New(s.Node("a", faults.fault), func(ctx context.Context, _ *elector.Term) error {
				<-ctx.Done()
				return nil
			}, elector.Config{
				NodeID: "a", Timing: short, PollInterval: 400 * time.Millisecond,
				NewOwner: func() (string, error) { return "a-1", nil }, Die: func(string) {},
				Clock: func() heartbeat.Instant { return heartbeat.Instant(time.Since(began)) },
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if err := e.Run(ctx); err != nil {
					t.Error(err)
				}
			}()
			time.Sleep(time.Minute)
			faults.set(nil)
			time.Sleep(short.TTL)
			if e.Leading() == nil {
				t.Error("nobody leads one lease after the store is back")
			}
			cancel()
			<-done
		})
	}
}
