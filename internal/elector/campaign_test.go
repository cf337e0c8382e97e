package elector_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/testsupport/fakelock"
)

// acquireFails executes each request and then answers with the next error of errs. A nil error passes the lock's answer on.
type acquireFails struct {
	elector.Lock

	mu   sync.Mutex
	errs []error
	seen []elector.Candidate
}

func (l *acquireFails) Acquire(ctx context.Context, c elector.Candidate) (elector.Answer, error) {
	a, err := l.Lock.Acquire(ctx, c)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, c)
	if len(l.errs) > 0 {
		if l.errs[0] != nil {
			a, err = elector.Answer{}, l.errs[0]
		}
		l.errs = l.errs[1:]
	}
	return a, err
}

func (l *acquireFails) fail(errs ...error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = errs
}

// next waits for the next attempt and returns its candidate.
func (l *acquireFails) next() elector.Candidate {
	for n := len(l.attempts()); ; time.Sleep(time.Millisecond) {
		if seen := l.attempts(); len(seen) > n {
			return seen[n]
		}
	}
}

func (l *acquireFails) attempts() []elector.Candidate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// keepStolen makes a foreign client hold the lock until the test's end.
func keepStolen(t *testing.T, s *fakelock.Store) {
	s.Steal("intruder")
	ticker := time.NewTicker(time.Second)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				s.Steal("intruder")
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { ticker.Stop(); close(done) })
}

var errReset = errors.New("connection reset by peer")

// A lock that may be ours is also given back between two attempts, because a refusal says nothing about the effect of an earlier
// attempt.
func TestStoppingBetweenAttemptsInDoubtGivesTheLockBack(t *testing.T) {
	for _, errs := range [][]error{{errReset}, {errReset, elector.ErrRefused}} {
		synctest.Test(t, func(t *testing.T) {
			s := fakelock.NewStore(timing.TTL)
			lock := &acquireFails{Lock: s.Node("a", nil), errs: errs}
			a := start(t, "a", lock, nil, nil)
			for len(lock.attempts()) < len(errs) {
				time.Sleep(time.Millisecond)
			}
			synctest.Wait() // the node pauses before the next attempt
			if owner, _ := s.Holder(); owner == "" {
				t.Fatal("the request was not applied: nothing to test")
			}
			a.stop()
			if owner, _ := s.Holder(); owner != "" {
				t.Errorf("after %v: %s still holds the lock after its node has stopped", errs, owner)
			}
		})
	}
}

// A candidate says that it only polls if nothing has happened since the answer that the lock is held.
func TestOnlyAnUndisturbedWaitIsPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		keepStolen(t, s)
		lock := &acquireFails{Lock: s.Node("a", nil)}
		a := start(t, "a", lock, s.Hints(), nil)
		synctest.Wait()
		if lock.attempts()[0].Polling {
			t.Error("the first attempt only polls")
		}
		if !lock.next().Polling {
			t.Error("the second attempt does not only poll")
		}
		s.Forge(elector.HintReleased)
		if lock.next().Polling {
			t.Error("the attempt after a hint only polls")
		}
		if !lock.next().Polling {
			t.Error("a hint has ended the polling for good")
		}
		lock.fail(errReset)
		if lock.next(); lock.next().Polling {
			t.Error("the attempt after a failure only polls")
		}
		s.Forge(elector.HintControl)
		before := len(lock.attempts())
		time.Sleep(10 * time.Millisecond)
		if len(lock.attempts()) != before {
			t.Error("an order to the leader wakes a standby")
		}
		a.stop()
	})
}

// The next request contains the epochs that this process has seen, because the store may have lost them.
func TestANodeRemembersTheEpochsThatItHasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		var epochs []int64
		a := start(t, "a", s.Node("a", nil), nil, func(ctx context.Context, term *elector.Term) error {
			if len(epochs) == 0 {
				if _, err := term.Raise(ctx, term.Epoch()+1_000_000_000); err != nil {
					t.Error(err)
				}
			}
			epochs = append(epochs, term.Epoch())
			<-ctx.Done()
			return nil
		})
		time.Sleep(time.Second)
		s.Order(elector.Order{StepDown: true})
		time.Sleep(2500 * time.Millisecond) // the node cools down
		s.Flush()
		time.Sleep(2 * timing.TTL)
		a.stop()
		if len(epochs) != 2 || epochs[1] <= epochs[0] {
			t.Errorf("epochs %v of two terms; want them to rise", epochs)
		}
	})
}

func TestTroubleIsToldOnceForEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		keepStolen(t, s)
		lock := &acquireFails{Lock: s.Node("a", nil)}
		for range 5 {
			lock.errs = append(lock.errs, errReset)
		}
		for range 5 {
			lock.errs = append(lock.errs, elector.ErrRefused)
		}
		a := start(t, "a", lock, nil, nil)
		time.Sleep(time.Hour)
		if idle := a.SinceProgress(); idle > 10*time.Second {
			t.Errorf("no progress for %v", idle)
		}
		a.stop()
		var told []string
		for _, ev := range a.kinds(elector.EventStoreLost, elector.EventStoreBack) {
			told = append(told, fmt.Sprint(ev.Kind, " ", errors.Is(ev.Err, elector.ErrRefused)))
		}
		if want := "[store_lost false store_lost true store_back false]"; fmt.Sprint(told) != want {
			t.Errorf("told %v, want %s", told, want)
		}
	})
}

// The pauses grow while the store is away, and begin again with the shortest pause after the store was back.
func TestPausesBeginAnewAfterTheStoreWasBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		keepStolen(t, s)
		lock := &acquireFails{Lock: s.Node("a", nil)}
		for range 10 {
			lock.errs = append(lock.errs, errReset)
		}
		a := start(t, "a", lock, nil, nil)
		time.Sleep(time.Hour)
		lock.fail(errReset)
		lock.next()
		failed := time.Now()
		lock.next()
		if took := time.Since(failed); took > 200*time.Millisecond {
			t.Errorf("asked again %v after the first failure of a new outage", took)
		}
		a.stop()
	})
}

func TestAFloodOfHintsIsNotAFloodOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakelock.NewStore(timing.TTL)
		keepStolen(t, s)
		lock := &acquireFails{Lock: s.Node("a", nil)}
		a := start(t, "a", lock, s.Hints(), nil)
		time.Sleep(time.Second)
		before := len(lock.attempts())
		for range 10_000 {
			s.Forge(elector.HintReleased)
			time.Sleep(100 * time.Microsecond)
		}
		if n := len(lock.attempts()) - before; n < 10 || n > 51 {
			t.Errorf("%d attempts in a second of 10,000 hints, want one for every 20 ms", n)
		}
		a.stop()
	})
}
