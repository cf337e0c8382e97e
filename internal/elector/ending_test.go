package elector_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/testsupport/fakelock"
)

// startObserved is start with the test's own observer.
func startObserved(t *testing.T, lock elector.Lock, lead elector.LeadFunc, observe func(elector.Event)) (stop func()) {
	t.Helper()
	began := time.Now()
	e, err := elector.New(lock, lead, elector.Config{
		NodeID: "a", Timing: timing, PollInterval: poll, Observe: observe,
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
	return func() { cancel(); <-done }
}

// A program that needs the lock for one piece of work ends its election when the work is done. The history gives this reason, and not
// that a host was shutting down.
func TestALockThatHasServedItsPurposeIsReleasedAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 { // the work returns and the election is ended at the same time
			s := fakelock.NewStore(timing.TTL)
			ctx, enough := context.WithCancelCause(t.Context())
			var ended []elector.Event
			e, err := elector.New(s.Node("a", nil), func(context.Context, *elector.Term) error {
				enough(elector.ErrDone)
				return nil
			}, elector.Config{
				NodeID: "a", Timing: timing, PollInterval: poll, Die: func(string) {},
				NewOwner: func() (string, error) { return "a-1", nil },
				Observe: func(ev elector.Event) {
					if ev.Released {
						ended = append(ended, ev)
					}
				},
			})
			if err == nil {
				err = e.Run(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(ended) != 1 || ended[0].Kind != elector.EventReleased || ended[0].Reason != "its work is done" {
				t.Fatalf("ended by %+v", ended)
			}
		}
	})
}

// An observer writes to a log, and the reader of the log may have stopped.
func TestTheWorkIsToldToStopBeforeAnybodyElseIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		stuck, told := make(chan struct{}), false
		stop := startObserved(t, s.Node("a", nil), func(ctx context.Context, _ *elector.Term) error {
			<-ctx.Done()
			told = true
			return nil
		}, func(ev elector.Event) {
			if ev.Kind == elector.EventStopping {
				<-stuck
			}
		})
		time.Sleep(time.Second)
		s.Steal("intruder")
		time.Sleep(timing.TTL / 2)
		synctest.Wait()
		if !told {
			t.Error("the work goes on because the observer hangs")
		}
		close(stuck)
		stop()
	})
}

func TestNoWorkBeginsIfTellingOfTheWinTookTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		slow := true
		var events []elector.Event
		stop := startObserved(t, s.Node("a", nil), func(ctx context.Context, term *elector.Term) error {
			if !term.Trusted() {
				t.Error("work began outside the trust window")
			}
			<-ctx.Done()
			return nil
		}, func(ev elector.Event) {
			events = append(events, ev)
			if ev.Kind == elector.EventWon && slow {
				slow = false
				time.Sleep(softAfter)
			}
		})
		time.Sleep(timing.TTL)
		synctest.Wait()
		stop()
		if len(events) < 2 || events[1].Kind != elector.EventExpired || !events[1].Released {
			t.Errorf("told %+v, want the first term expired and released at once", events)
		}
	})
}

func TestALossIsToldAsALoss(t *testing.T) {
	for range 300 { // two goroutines notice the end, in either order
		synctest.Test(t, func(t *testing.T) {
			s := fakelock.NewStore(timing.TTL)
			var cause error
			a := start(t, "a", s.Node("a", nil), nil, func(ctx context.Context, _ *elector.Term) error {
				<-ctx.Done()
				if cause == nil {
					cause = context.Cause(ctx)
				}
				return nil
			})
			time.Sleep(time.Second)
			s.Steal("intruder")
			time.Sleep(timing.TTL / 2)
			a.stop()
			if !errors.Is(cause, elector.ErrLeaseLost) || len(a.kinds(elector.EventLost)) != 1 {
				t.Errorf("cause %v, told %+v; want a loss", cause, a.kinds(elector.EventStopping, elector.EventLost, elector.EventExpired))
			}
		})
	}
}

// brokenOnce fails the first release at once, like a connection that was cut while it was idle.
type brokenOnce struct {
	elector.Lock
	failed bool
}

func (b *brokenOnce) Release(ctx context.Context, owner string, h elector.Handover) error {
	if !b.failed {
		b.failed = true
		return errors.New("connection reset by peer")
	}
	return b.Lock.Release(ctx, owner, h)
}

func TestAReleaseOnABrokenConnectionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", &brokenOnce{Lock: s.Node("a", nil)}, nil, nil)
		time.Sleep(time.Second)
		a.stop()
		if owner, _ := s.Holder(); owner != "" {
			t.Errorf("%s still holds the lock after an orderly shutdown", owner)
		}
		if ended := a.kinds(elector.EventReleased); len(ended) != 1 || !ended[0].Released || ended[0].Err != nil {
			t.Errorf("told %+v, want one confirmed release", ended)
		}
	})
}

// The event of a term's end names what happened to the lease during the drain.
func TestADrainThatLosesTheLeaseEndsAsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), func(ctx context.Context, _ *elector.Term) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), elector.ErrSteppedDown) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			time.Sleep(timing.TTL / 2)
			return nil
		})
		time.Sleep(time.Second)
		s.Order(elector.Order{StepDown: true, Reason: "drill"})
		time.Sleep(time.Second)
		s.Steal("intruder")
		time.Sleep(timing.TTL / 2)
		a.cancel()
		<-a.done
		ended := a.kinds(elector.EventLost, elector.EventExpired, elector.EventSteppedDown)
		if len(ended) != 1 || ended[0].Kind != elector.EventLost || ended[0].Reason != "this node no longer holds the lock while drill" {
			t.Errorf("told %+v, want a loss during the drill", ended)
		}
		if told := a.kinds(elector.EventStopping); len(told) != 1 {
			t.Errorf("the work was told to stop %d times", len(told))
		}
		if trouble := a.kinds(elector.EventStoreLost); len(trouble) != 0 {
			t.Errorf("a loss was told as trouble with the store: %+v", trouble)
		}
	})
}

func TestOneWhoStandsAsideComesBackAtTheNextRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		a := start(t, "a", s.Node("a", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		b := start(t, "b", s.Node("b", nil), s.Hints(), nil)
		time.Sleep(time.Second)
		for _, next := range []*node{b, a} {
			s.Order(elector.Order{StepDown: true})
			time.Sleep(300 * time.Millisecond) // much less than a cool-down takes
			if next.Leading() == nil {
				t.Errorf("%s does not lead", next.id)
			}
		}
		b.stop()
		a.stop()
	})
}
