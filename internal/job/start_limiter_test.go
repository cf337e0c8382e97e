package job_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
)

func TestFewTermsBeginAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inTime := func() bool { return false }
		turns := make(job.StartLimiter, 2)
		begun := make(chan int, 5)
		for i := range 5 {
			go func() {
				if turns.Acquire(t.Context(), nil, inTime) == nil {
					begun <- i
				}
			}()
		}
		synctest.Wait()
		if len(begun) != 2 {
			t.Errorf("%d terms have begun, want 2", len(begun))
		}
		turns.Release()
		synctest.Wait()
		if len(begun) != 3 {
			t.Errorf("%d terms have begun when one has left, want 3", len(begun))
		}
		for range 4 {
			turns.Release()
			synctest.Wait()
		}
		if len(begun) != 5 {
			t.Errorf("%d terms have begun in the end, want 5", len(begun))
		}
	})
}

func TestATermThatIsOverWaitsForNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make(job.StartLimiter, 1)
		over, end := context.WithCancel(t.Context())
		began := time.Now()
		late := func() bool { return time.Since(began) < time.Second }
		if turns.Acquire(t.Context(), nil, late) != nil || time.Since(began) != time.Second {
			t.Errorf("it began after %v; want it to wait for its renewal", time.Since(began))
		}
		end()
		if turns.Acquire(over, nil, late) == nil {
			t.Error("a term that is over has begun")
		}
		turns.Release()
		if turns.Acquire(over, nil, func() bool { return false }) == nil {
			t.Error("a term that is over has begun, since nobody was before it")
		}
		if turns.Acquire(over, nil, func() bool { return true }) == nil || len(turns) != 0 {
			t.Errorf("a term that is over has begun, or keeps its turn: %d", len(turns))
		}
	})
}
