package jobtest

import (
	"errors"
	"testing"
	"time"

	"baton/internal/job"
)

type (
	opener func(t *testing.T) (ledger job.Ledger, lead func(owner string))
	runner func(id, owner string, at time.Time) job.Run
)

// conformOpen checks the recorded state of runs in progress.
func conformOpen(t *testing.T, open opener, run runner, slot time.Time) {
	t.Run("RunsAreOpenFromTheirClaimToTheirEnd", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		first, second := run("1", "a", slot), run("2", "a", slot.Add(time.Second))
		check(t, "the first", l.Claim(t.Context(), first), nil)
		check(t, "the second, while the first goes on", l.Claim(t.Context(), second), nil)
		checkOpen(t, l, first, second)
		check(t, "the end of the first", l.Finish(t.Context(), endOf(first, job.StateSucceeded)), nil)
		lead("b")
		checkOpen(t, l, second)
		check(t, "the end of the second", l.Finish(t.Context(), endOf(second, job.StateSucceeded)), nil)
		checkOpen(t, l)
	})

	t.Run("AClaimThatFailsOpensNothing", func(t *testing.T) {
		l, lead := open(t)
		lead("b")
		check(t, "of who does not lead", l.Claim(t.Context(), run("1", "a", slot)), job.ErrNotLeader)
		check(t, "of who does", l.Claim(t.Context(), run("2", "b", slot)), nil)
		check(t, "of a slot that is taken", l.Claim(t.Context(), run("3", "b", slot)), job.ErrSlotTaken)
		checkOpen(t, l, run("2", "b", slot))
	})
}

// conformRetrials checks further attempts of a slot.
func conformRetrials(t *testing.T, open opener, run runner, slot time.Time) {
	at := slot.Add(10 * time.Second)
	// failed returns a ledger whose only run has failed and is to be retried.
	failed := func(t *testing.T) (job.Ledger, func(string)) {
		l, lead := open(t)
		lead("a")
		check(t, "the claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		rec := endOf(run("1", "a", slot), job.StateFailed)
		rec.RetryAt = at
		check(t, "the end", l.Finish(t.Context(), rec), nil)
		return l, lead
	}

	t.Run("ARetrialPendsUntilItIsTakenOnce", func(t *testing.T) {
		l, lead := failed(t)
		checkRetry(t, l, &job.Retrial{Slot: slot, Attempt: 2, At: at})
		lead("b")
		check(t, "another attempt", l.Claim(t.Context(), again(run("2", "b", slot), 3)), job.ErrSlotTaken)
		check(t, "of another slot", l.Claim(t.Context(), again(run("3", "b", slot.Add(-time.Second)), 2)), job.ErrSlotTaken)
		check(t, "of who does not lead", l.Claim(t.Context(), again(run("4", "a", slot), 2)), job.ErrNotLeader)
		checkRetry(t, l, &job.Retrial{Slot: slot, Attempt: 2, At: at})
		check(t, "the retrial", l.Claim(t.Context(), again(run("5", "b", slot), 2)), nil)
		checkRetry(t, l, nil)
		check(t, "by another run", l.Claim(t.Context(), again(run("6", "b", slot), 2)), job.ErrSlotTaken)
		if err := l.Claim(t.Context(), again(run("5", "b", slot), 2)); err != nil && !errors.Is(err, job.ErrSlotTaken) {
			t.Errorf("asked again: %v", err)
		}
		checkLast(t, l, slot)
		rec := endOf(again(run("5", "b", slot), 2), job.StateFailed)
		rec.RetryAt = at.Add(time.Minute)
		check(t, "its end", l.Finish(t.Context(), rec), nil)
		checkRetry(t, l, &job.Retrial{Slot: slot, Attempt: 3, At: at.Add(time.Minute)})
	})

	t.Run("TheClaimOfALaterSlotDropsIt", func(t *testing.T) {
		l, _ := failed(t)
		check(t, "the slot itself", l.Claim(t.Context(), run("2", "a", slot)), job.ErrSlotTaken)
		checkRetry(t, l, &job.Retrial{Slot: slot, Attempt: 2, At: at})
		check(t, "the next slot", l.Claim(t.Context(), run("3", "a", slot.Add(time.Second))), nil)
		checkRetry(t, l, nil)
		check(t, "the retrial", l.Claim(t.Context(), again(run("4", "a", slot), 2)), job.ErrSlotTaken)
	})

	t.Run("ItIsNotNotedAfterALaterSlotWasClaimed", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		check(t, "the next slot", l.Claim(t.Context(), run("2", "a", slot.Add(time.Second))), nil)
		rec := endOf(run("1", "a", slot), job.StateFailed)
		rec.RetryAt = at
		check(t, "the end", l.Finish(t.Context(), rec), nil)
		checkRetry(t, l, nil)
	})

	t.Run("AskedAgainTheEndDoesNotNoteItAgain", func(t *testing.T) {
		l, _ := failed(t)
		check(t, "the retrial", l.Claim(t.Context(), again(run("2", "a", slot), 2)), nil)
		rec := endOf(run("1", "a", slot), job.StateFailed)
		rec.RetryAt = at
		check(t, "the end, again", l.Finish(t.Context(), rec), nil)
		checkRetry(t, l, nil)
	})

	t.Run("ItIsDealtWithIfTheJobIsPaused", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		rec := endOf(run("1", "a", slot), job.StateFailed)
		rec.Pauses, rec.RetryAt = true, at
		check(t, "the end", l.Finish(t.Context(), rec), nil)
		check(t, "the retrial", l.Claim(t.Context(), again(run("2", "a", slot), 2)), job.ErrPaused)
		check(t, "asked again", l.Claim(t.Context(), again(run("2", "a", slot), 2)), job.ErrPaused)
		checkRetry(t, l, nil)
	})
}

// conformLost checks runs whose leader is gone.
func conformLost(t *testing.T, open opener, run runner, slot time.Time) {
	t.Run("ALostRunIsClosedAndMayBeTriedAgainInOneStep", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		r := run("1", "a", slot)
		check(t, "the claim", l.Claim(t.Context(), r), nil)
		lead("b")
		lost := endOf(r, job.StateLost)
		lost.RetryAt = lost.Finished
		check(t, "lost", l.Finish(t.Context(), lost), nil)
		checkOpen(t, l)
		want := &job.Retrial{Slot: slot, Attempt: 2, At: lost.RetryAt}
		checkRetry(t, l, want)
		late := endOf(r, job.StateFailed)
		late.RetryAt = slot.Add(time.Hour)
		check(t, "its end is recorded after all", l.Finish(t.Context(), late), nil)
		checkRetry(t, l, want)
		check(t, "the retrial", l.Claim(t.Context(), again(run("2", "b", slot), 2)), nil)
		check(t, "lost, asked again", l.Finish(t.Context(), lost), nil)
		check(t, "its end, asked again", l.Finish(t.Context(), late), nil)
		checkRetry(t, l, nil)
	})

	t.Run("ARunThatHasEndedIsNotLost", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		r := run("1", "a", slot)
		check(t, "the claim", l.Claim(t.Context(), r), nil)
		check(t, "the end", l.Finish(t.Context(), endOf(r, job.StateSucceeded)), nil)
		lead("b")
		lost := endOf(r, job.StateLost)
		lost.RetryAt = lost.Finished
		check(t, "lost", l.Finish(t.Context(), lost), nil)
		checkRetry(t, l, nil)
	})
}

// conformMissed checks slots that are not run.
func conformMissed(t *testing.T, open opener, run runner, slot time.Time) {
	missed := func(at time.Time) job.Missed {
		return job.Missed{Job: "report", Reason: job.ReasonOverlap, Count: 1, First: at, Slot: at}
	}

	t.Run("NoLaterTermCatchesUpOnMissedSlots", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		later := slot.Add(time.Minute)
		for range 2 {
			check(t, "missed", l.Miss(t.Context(), termOf("a"), missed(later)), nil)
		}
		checkLast(t, l, later)
		check(t, "an earlier one", l.Miss(t.Context(), termOf("a"), missed(later.Add(-time.Second))), nil)
		checkLast(t, l, later)
		// A claim that arrives after the requester has given up is no longer granted.
		check(t, "a slot before it", l.Claim(t.Context(), run("2", "a", later.Add(-time.Second))), job.ErrSlotTaken)
		check(t, "the slot itself", l.Claim(t.Context(), run("3", "a", later)), job.ErrSlotTaken)
		check(t, "a later one", l.Claim(t.Context(), run("4", "a", later.Add(time.Second))), nil)
	})

	t.Run("AReportOfNoSlotsOnlySaysFromWhenOnThereAreSome", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		later := slot.Add(time.Minute)
		check(t, "the report", l.Miss(t.Context(), termOf("a"), job.Missed{Job: "report", Reason: "none", First: later, Slot: later}), nil)
		checkLast(t, l, later)
		check(t, "a slot before it", l.Claim(t.Context(), run("2", "a", later.Add(-time.Second))), nil)
		checkLast(t, l, later)
	})

	t.Run("OnlyTheLocksOwnerMayTell", func(t *testing.T) {
		l, lead := open(t)
		check(t, "without a leader", l.Miss(t.Context(), termOf("a"), missed(slot)), job.ErrNotLeader)
		lead("b")
		check(t, "another owner", l.Miss(t.Context(), termOf("a"), missed(slot)), job.ErrNotLeader)
		checkLast(t, l, time.Time{})
	})

	t.Run("SlotsAheadOfTheLedgersClockAreStillToCome", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		ahead := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		check(t, "a claim", l.Claim(t.Context(), run("1", "a", ahead)), job.ErrAhead)
		check(t, "missed", l.Miss(t.Context(), termOf("a"), missed(ahead)), job.ErrAhead)
		checkLast(t, l, time.Time{})
		checkOpen(t, l)
	})

	t.Run("ASlotThatWasClaimedAfterAllIsNotToldTwice", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		unclaimed := missed(slot)
		unclaimed.Reason = job.ReasonLedger
		r := run("1", "a", slot)
		check(t, "the claim", l.Claim(t.Context(), r), nil)
		check(t, "while the run is open", l.Miss(t.Context(), termOf("a"), unclaimed), job.ErrSlotTaken)
		check(t, "the end", l.Finish(t.Context(), endOf(r, job.StateLost)), nil)
		check(t, "when it is lost", l.Miss(t.Context(), termOf("a"), unclaimed), job.ErrSlotTaken)
		later := slot.Add(2 * time.Minute)
		check(t, "a later claim", l.Claim(t.Context(), run("2", "a", later)), nil)
		check(t, "behind a later slot", l.Miss(t.Context(), termOf("a"), unclaimed), job.ErrSlotTaken)
		between := missed(slot.Add(time.Minute))
		between.Reason = job.ReasonLedger
		check(t, "one that was not claimed", l.Miss(t.Context(), termOf("a"), between), nil)
		checkLast(t, l, later)
	})

	t.Run("WhySlotsPassedMayBeUnknown", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the claim", l.Claim(t.Context(), run("1", "a", slot)), nil)
		later := missed(slot.Add(time.Minute))
		later.Reason = job.ReasonUnknown
		check(t, "missed", l.Miss(t.Context(), termOf("a"), later), nil)
		checkLast(t, l, later.Slot)
		check(t, "a claim of it", l.Claim(t.Context(), run("2", "a", later.Slot)), job.ErrSlotTaken)
	})

	t.Run("ThatNothingIsKnownCountsOnlyThen", func(t *testing.T) {
		unknown := missed(slot)
		unknown.Reason, unknown.Count, unknown.First = job.ReasonUnknown, 0, time.Time{}
		l, lead := open(t)
		lead("a")
		check(t, "nothing", l.Miss(t.Context(), termOf("a"), unknown), nil)
		checkLast(t, l, slot)
		unknown.Slot = slot.Add(time.Minute)
		check(t, "something", l.Miss(t.Context(), termOf("a"), unknown), nil)
		checkLast(t, l, slot)
		check(t, "a slot before it", l.Claim(t.Context(), run("1", "a", slot.Add(-time.Minute))), nil)
		checkLast(t, l, slot)
	})
}

func endOf(r job.Run, state job.State) job.Record {
	return job.Record{Run: r, State: state, Started: r.Slot, Finished: r.Slot.Add(time.Second)}
}

func again(r job.Run, attempt int) job.Run {
	r.Trigger, r.Attempt = job.TriggerRetry, attempt
	return r
}

func standing(t *testing.T, l job.Ledger) job.ResumeState {
	t.Helper()
	standings, err := l.ResumeStates(t.Context(), []string{"report"})
	if err != nil {
		t.Fatal(err)
	}
	return standings["report"]
}

// checkOpen requires that exactly these runs are open, in any order.
func checkOpen(t *testing.T, l job.Ledger, want ...job.Run) {
	t.Helper()
	have := map[string]job.Run{}
	for _, r := range standing(t, l).Open {
		if r.State != job.StateRunning {
			t.Errorf("an open run: %+v", r)
		}
		r.Run.Slot = r.Run.Slot.UTC()
		have[r.ID] = r.Run
	}
	for _, w := range want {
		w.Slot = w.Slot.UTC()
		if have[w.ID] != w {
			t.Errorf("open: got %+v, want %+v", have[w.ID], w)
		}
	}
	if len(have) != len(want) {
		t.Errorf("%d runs are open, want %d: %+v", len(have), len(want), have)
	}
}

func checkRetry(t *testing.T, l job.Ledger, want *job.Retrial) {
	t.Helper()
	got := standing(t, l).Retry
	switch {
	case got == nil && want == nil:
	case got == nil || want == nil || !got.Slot.Equal(want.Slot) || got.Attempt != want.Attempt || !got.At.Equal(want.At):
		t.Errorf("retrial: got %+v, want %+v", got, want)
	}
}
