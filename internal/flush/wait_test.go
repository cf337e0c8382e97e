package flush_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
)

// waiter is a source that can wait for work.
type waiter struct {
	*flushtest.Script
	work    chan error
	waiting atomic.Int64
}

func (w *waiter) Wait(ctx context.Context) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	select {
	case err := <-w.work:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newWaiter() *waiter {
	return &waiter{Script: flushtest.NewScript("users"), work: make(chan error, 1)}
}

// waitFor waits in the background, and returns the error of the wait.
func waitFor(ctx context.Context, p *flush.Pipeline) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Wait(ctx) }()
	synctest.Wait()
	return done
}

func TestWaitEndsWithTheFirstSourceThatHasWorkAndLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := newWaiter(), newWaiter(), flushtest.NewScript("users")
		for what, give := range map[string]func(){
			"a source that waits":    func() { b.work <- nil },
			"a source that is asked": func() { c.SetPages(user("1", "Ann")) },
		} {
			done := waitFor(t.Context(), flush.PipelineOf(a, c, b))
			time.Sleep(time.Minute)
			began := time.Now()
			give()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("%s: %v until it was seen", what, took)
			}
			if left := a.waiting.Load() + b.waiting.Load(); left != 0 {
				t.Errorf("%s: %d still wait", what, left)
			}
			c.SetPages()
		}
	})
}

func TestWaitAsksLessOftenWhenNothingComesForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flushtest.NewScript("users")
		var asked atomic.Int64
		s.On = on("backlog", func() error {
			asked.Add(1)
			return nil
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		done := waitFor(ctx, flush.PipelineOf(s))
		time.Sleep(10 * time.Second)
		if n := asked.Load(); n < 140 || n > 155 { // every 10 ms, then less often, and every 100 ms after two seconds
			t.Errorf("asked %d times in the first 10 s", n)
		}
		time.Sleep(time.Hour)
		before := asked.Load()
		time.Sleep(time.Minute)
		if n := asked.Load() - before; n < 599 || n > 601 {
			t.Errorf("asked %d times in a minute after an hour", n)
		}
		cause := errors.New("stepped down")
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("after the term: %v", err)
		}
	})
}

// A run that follows shows that nothing is pending. Without that run, a verification would wait until there is work.
func TestWaitEndsWhenItIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiter()
		p := flush.PipelineOf(w)
		done := waitFor(t.Context(), p)
		p.Wake()
		if err := <-done; err != nil || w.waiting.Load() != 0 {
			t.Errorf("woken while it waits: %v; %d still wait", err, w.waiting.Load())
		}
		p.Wake() // a run follows
		p.Wake()
		if err := p.Wait(t.Context()); err != nil {
			t.Errorf("woken before: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("woken twice it returns a third time: %v", err)
		}
	})
}

func TestWaitTellsOfASourceThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWaiter(), flushtest.NewScript("users")
		w.work <- errors.New("connection refused")
		if err := flush.PipelineOf(w, s).Wait(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "wait for work in users: connection refused") {
			t.Errorf("of one that waits: %v", err)
		}
		s.On = on("backlog", func() error { return errors.New("loading") })
		if err := flush.PipelineOf(newWaiter(), s).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "users: loading") {
			t.Errorf("of one that is asked: %v", err)
		}
	})
}

func TestWaitLeavesItToTheRunToLookAtWhatIsNotKnownYet(t *testing.T) {
	if err := (&flush.Pipeline{}).Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
