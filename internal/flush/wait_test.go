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
)

// idleSource has no work until it is given some.
type idleSource struct {
	flush.Source
	backlog atomic.Int64
	asked   atomic.Int64
	err     error
}

func (s *idleSource) Name() string { return "users" }

func (s *idleSource) Backlog(context.Context) (int64, error) {
	s.asked.Add(1)
	return s.backlog.Load(), s.err
}

// idleWaiter is one that can wait for it.
type idleWaiter struct {
	idleSource
	work    chan error
	waiting atomic.Int64
}

func (w *idleWaiter) Wait(ctx context.Context) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	select {
	case err := <-w.work:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newWaiter() *idleWaiter { return &idleWaiter{work: make(chan error, 1)} }

// waitFor waits in the background, and returns what comes of it with how long it took.
func waitFor(ctx context.Context, p *flush.Pipeline) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Wait(ctx) }()
	synctest.Wait()
	return done
}

func TestWaitEndsWithTheFirstSourceThatHasWorkAndLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := newWaiter(), newWaiter(), &idleSource{}
		for what, give := range map[string]func(){
			"a source that waits":    func() { b.work <- nil },
			"a source that is asked": func() { c.backlog.Store(1) },
		} {
			done := waitFor(t.Context(), flush.PipelineOf(a, c, b))
			time.Sleep(time.Minute)
			began := time.Now()
			give()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: %v until it was seen", what, took)
			}
			if left := a.waiting.Load() + b.waiting.Load(); left != 0 {
				t.Errorf("%s: %d still wait", what, left)
			}
			c.backlog.Store(0)
		}
	})
}

func TestWaitAsksLessOftenWhenNothingComesForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &idleSource{}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := waitFor(ctx, flush.PipelineOf(s))
		time.Sleep(10 * time.Second)
		if n := s.asked.Load(); n < 95 || n > 105 {
			t.Errorf("asked %d times in the first 10 s", n)
		}
		time.Sleep(time.Hour)
		before := s.asked.Load()
		time.Sleep(time.Minute)
		if n := s.asked.Load() - before; n < 59 || n > 61 {
			t.Errorf("asked %d times in a minute after an hour", n)
		}
		cause := errors.New("stepped down")
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("after the term: %v", err)
		}
	})
}

func TestWaitTellsOfASourceThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWaiter(), &idleSource{}
		w.work <- errors.New("connection refused")
		if err := flush.PipelineOf(w, s).Wait(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "wait for work in users: connection refused") {
			t.Errorf("of one that waits: %v", err)
		}
		s.err = errors.New("loading")
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
