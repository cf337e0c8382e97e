package jobtest

import (
	"testing"
	"time"

	"baton/internal/job"
)

// idle returns the record of a run that has found nothing to do.
func idle(r job.Run) job.Record {
	return job.Record{Run: r, State: job.StateSucceeded, Started: r.Slot, Finished: r.Slot}
}

func conformIdle(t *testing.T, open opener, run runner, slot time.Time) {
	claim := func(t *testing.T, l job.Ledger, what string, want error, r job.Run) {
		t.Helper()
		answers := l.ClaimIdle(t.Context(), []job.Record{idle(r)})
		if len(answers) != 1 {
			t.Fatalf("%s: %d answers to one claim", what, len(answers))
		}
		check(t, what, answers[0], want)
	}

	t.Run("ASlotIsGrantedOnceAndNothingStaysOpen", func(t *testing.T) {
		l, lead := open(t)
		claim(t, l, "without a leader", job.ErrNotLeader, run("1", "a", slot))
		lead("a")
		claim(t, l, "the first", nil, run("1", "a", slot))
		checkLast(t, l, slot)
		checkOpen(t, l)
		claim(t, l, "another run", job.ErrSlotTaken, run("2", "a", slot))
		check(t, "another run that may have work", l.Claim(t.Context(), run("3", "a", slot)), job.ErrSlotTaken)
		claim(t, l, "an earlier slot", job.ErrSlotTaken, run("4", "a", slot.Add(-time.Millisecond)))
		claim(t, l, "a later slot", nil, run("5", "a", slot.Add(time.Second)))
		lead("b")
		claim(t, l, "who led before", job.ErrNotLeader, run("6", "a", slot.Add(2*time.Second)))
		claim(t, l, "the next leader, of a slot that was taken", job.ErrSlotTaken, run("7", "b", slot.Add(time.Second)))
		claim(t, l, "the next leader", nil, run("8", "b", slot.Add(2*time.Second)))
		checkLast(t, l, slot.Add(2*time.Second))
		checkOpen(t, l)
	})

	t.Run("WhoeverHasLostTheAnswerLearnsOfIt", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		for i := range 3 {
			r := run(string(rune('1'+i)), "a", slot.Add(time.Duration(i)*time.Second))
			claim(t, l, "the first time", nil, r)
			claim(t, l, "again", job.ErrDone, r)
			check(t, "as one that may have work", l.Claim(t.Context(), r), job.ErrDone)
			check(t, "that it was lost", l.Finish(t.Context(), endOf(r, job.StateLost)), nil)
			checkOpen(t, l)
			check(t, "that the slot was not run", l.Miss(t.Context(), r.Term, job.Missed{
				Job: r.Job, Reason: job.ReasonLedger, Count: 1, First: r.Slot, Slot: r.Slot}), job.ErrSlotTaken)
		}
	})

	t.Run("EachIsAnsweredForItself", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		check(t, "the claim of one", l.Claim(t.Context(), run("0", "a", slot)), nil)
		var recs []job.Record
		for i, name := range []string{"x", "report", "y"} {
			r := run(string(rune('1'+i)), "a", slot)
			r.Job = name
			recs = append(recs, idle(r))
		}
		for i, err := range l.ClaimIdle(t.Context(), recs) {
			check(t, recs[i].Job, err, map[string]error{"report": job.ErrSlotTaken}[recs[i].Job])
		}
	})

	t.Run("NotWhileTheJobIsPausedNorOfAMissedSlot", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		r := run("1", "a", slot)
		check(t, "the claim", l.Claim(t.Context(), r), nil)
		rec := endOf(r, job.StateFailed)
		rec.Pauses, rec.Error = true, "a gap"
		check(t, "the end that pauses", l.Finish(t.Context(), rec), nil)
		claim(t, l, "paused", job.ErrPaused, run("2", "a", slot.Add(time.Second)))
		checkLast(t, l, slot)
		other := run("3", "a", slot)
		other.Job = "other"
		missed := job.Missed{Job: other.Job, Reason: job.ReasonOverlap, Count: 1, First: slot, Slot: slot}
		check(t, "the miss", l.Miss(t.Context(), r.Term, missed), nil)
		claim(t, l, "missed", job.ErrSlotTaken, other)
	})

	t.Run("ALaterSlotTakesARetrialAway", func(t *testing.T) {
		l, lead := open(t)
		lead("a")
		r := run("1", "a", slot)
		check(t, "the claim", l.Claim(t.Context(), r), nil)
		rec := endOf(r, job.StateFailed)
		rec.RetryAt = slot.Add(time.Second)
		check(t, "the end", l.Finish(t.Context(), rec), nil)
		claim(t, l, "a later slot", nil, run("2", "a", slot.Add(2*time.Second)))
		checkRetry(t, l, nil)
	})
}
