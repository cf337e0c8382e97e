package jobtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"baton/internal/job"
)

// Conformance checks that a ledger follows the rules of job.Ledger. Each call of the function open returns an empty ledger, and a function
// that gives the ledger's lock to an owner.
func Conformance(t *testing.T, open func(t *testing.T) (ledger job.Ledger, lead func(owner string))) {
	slot := time.UnixMilli(1_772_359_205_100) // a fraction of a second must be kept
	// The order of the owners' names is the order of their terms.
	run := func(id, owner string, at time.Time) job.Run {
		return job.Run{ID: id, Job: "report", Slot: at, Trigger: job.TriggerSchedule, Attempt: 1, Term: termOf(owner)}
	}

	t.Run("AnUnknownJobHasNoLastSlot", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		checkLast(t, l, time.Time{})
	})

	t.Run("ASlotIsGrantedOnceAndNeverAnEarlierOne", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the first claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		checkLast(t, l, slot)
		check(t, "another run", l.Claim(t.Context(), run("2", "a", slot)), job.ErrSlotTaken)
		check(t, "an earlier slot", l.Claim(t.Context(), run("3", "a", slot.Add(-time.Millisecond))), job.ErrSlotTaken)
		lead("b")
		check(t, "another leader", l.Claim(t.Context(), run("4", "b", slot)), job.ErrSlotTaken)
		checkLast(t, l, slot)
		check(t, "a later slot", l.Claim(t.Context(), run("5", "b", slot.Add(time.Millisecond))), nil)
		checkLast(t, l, slot.Add(time.Millisecond))
	})

	t.Run("OnlyTheLocksOwnerMayClaim", func(t *testing.T) {
		l, lead := open(t)
		check(t, "without a leader", l.Claim(t.Context(), run("1", "a", slot)), job.ErrNotLeader)
		lead("b")
		check(t, "another owner", l.Claim(t.Context(), run("2", "a", slot)), job.ErrNotLeader)
		checkLast(t, l, time.Time{})
	})

	t.Run("TheSameRunMayAskAgain", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the first claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		if err := l.Claim(t.Context(), run("1", "a", slot)); err != nil && !errors.Is(err, job.ErrSlotTaken) {
			t.Errorf("the same run asked again: got %v, want nil or %v", err, job.ErrSlotTaken)
		}
	})

	t.Run("OfManyOneIsGranted", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		if got := claimTogether(t.Context(), l, run, slot); got != 1 {
			t.Errorf("%d of many claims for one slot were granted, want 1", got)
		}
	})

	t.Run("AnEndIsRecordedAlsoAfterTheTermAndAskedAgain", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		r := run("1", "a", slot)
		check(t, "the claim", l.Claim(t.Context(), r), nil)
		lead("b")
		rec := job.Record{Run: r, State: job.StateFailed, Started: slot, Finished: slot.Add(time.Second), Error: "disk full"}
		check(t, "the first time", l.Finish(t.Context(), rec), nil)
		check(t, "the second time", l.Finish(t.Context(), rec), nil)
		check(t, "another run for the slot", l.Claim(t.Context(), run("2", "b", slot)), job.ErrSlotTaken)
	})

	t.Run("ARunThatPausesItsJobIsTheLast", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		r := run("1", "a", slot)
		check(t, "the claim", l.Claim(t.Context(), r), nil)
		rec := job.Record{Run: r, State: job.StateFailed, Started: slot, Finished: slot, Error: "a gap", Pauses: true}
		check(t, "the end", l.Finish(t.Context(), rec), nil)
		next := slot.Add(time.Second)
		check(t, "the next slot", l.Claim(t.Context(), run("2", "a", next)), job.ErrPaused)
		checkLast(t, l, slot) // the slot is not settled before its miss is recorded
		lead("b")
		check(t, "another leader", l.Claim(t.Context(), run("3", "b", next.Add(time.Second))), job.ErrPaused)
		manual := run("4", "b", next.Add(2*time.Second))
		manual.Trigger = job.TriggerManual
		check(t, "a manual run that was not asked for", l.Claim(t.Context(), manual), job.ErrSlotTaken)
	})

	t.Run("AnEndedContextIsAnError", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Claim(ctx, run("1", "a", slot)); err == nil {
			t.Error("a claim with an ended context was granted")
		}
	})

	t.Run("Idle", func(t *testing.T) { conformIdle(t, open, run, slot) })
	t.Run("Open", func(t *testing.T) { conformOpen(t, open, run, slot) })
	t.Run("Retrials", func(t *testing.T) { conformRetrials(t, open, run, slot) })
	t.Run("Lost", func(t *testing.T) { conformLost(t, open, run, slot) })
	t.Run("Missed", func(t *testing.T) { conformMissed(t, open, run, slot) })
}

func termOf(owner string) job.Term {
	return job.Term{NodeID: "node-" + owner, Owner: owner, Epoch: int64(owner[0])}
}

func claimTogether(ctx context.Context, l job.Ledger, run func(id, owner string, at time.Time) job.Run, slot time.Time) int {
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		granted int
	)
	for i := range 8 {
		group.Go(func() {
			if l.Claim(ctx, run(fmt.Sprint(i), "a", slot)) == nil {
				mu.Lock()
				defer mu.Unlock()
				granted++
			}
		})
	}
	group.Wait()
	return granted
}

func check(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// checkLast requires that the time in the argument slot is the last slot of the job "report", and that the job "other" has no slot. Zero
// means that "report" has no slot.
func checkLast(t *testing.T, l job.Ledger, slot time.Time) {
	t.Helper()
	last, err := l.ResumeStates(t.Context(), []string{"report", "other"})
	if err != nil {
		t.Fatal(err)
	}
	got, known := last["report"]
	if known == slot.IsZero() || !got.Last.Equal(slot) {
		t.Errorf("last slot: got %v (known: %v), want %v", got.Last, known, slot)
	}
	if other, known := last["other"]; known {
		t.Errorf("a job without a slot has one: %v", other)
	}
}
