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

// However long the store was away, and however short the lease is, a node leads within one lease after the store is back.
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
				t.Error("no node leads one lease after the store is back")
			}
			cancel()
			<-done
		})
	}
}

// A store that was away refuses requests for a moment when it starts up, and a single line reports both. A store that comes back and
// continues to refuse, for example because it needs another password, is reported separately.
func TestTroubleOfAnotherKindIsToldOnlyIfItLasts(t *testing.T) {
	refuse := func(string) fakelock.Fault { return fakelock.Fault{Refuse: true} }
	cases := map[string]struct {
		refuses time.Duration
		told    int
	}{"a moment": {2 * time.Second, 1}, "a minute": {time.Minute, 2}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := &script{}
				a := start(t, "a", fakelock.NewStore(timing.TTL).Node("a", faults.fault), nil, nil)
				time.Sleep(time.Minute)
				faults.set(silent)
				for len(a.kinds(elector.EventStoreLost)) == 0 {
					time.Sleep(10 * time.Millisecond)
				}
				faults.set(refuse)
				time.Sleep(c.refuses)
				faults.set(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				if told := a.kinds(elector.EventStoreLost); len(told) != c.told {
					t.Errorf("trouble was told %d times, want %d: %+v", len(told), c.told, told)
				}
				if back := a.kinds(elector.EventStoreBack); len(back) != 1 {
					t.Errorf("the return was told %d times, want once", len(back))
				}
				a.stop()
			})
		})
	}
}
