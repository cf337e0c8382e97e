package alert

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/redisledger"
	"baton/internal/text"
)

func TestAFailureIsToldWhenItIsGivenUp(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		slot := time.Now()
		r.runs(job.StateFailed, ofSlot(slot, 1, time.Minute))
		r.runs(job.StateFailed, ofSlot(slot, 2, time.Minute))
		r.want("two failures that are to be tried again", "")
		r.runs(job.StateFailed, ofSlot(slot, 3, 0))
		r.want("the last one", "failed users")
		r.runs(job.StateSucceeded)
		r.want("a success", "recovered users")

		r.runs(job.StateFailed, ofSlot(slot, 1, time.Minute))
		r.runs(job.StateSucceeded, ofSlot(slot, 2, 0))
		r.want("a failure that went well when tried again", "")

		// The next slot came before the retry, so the retry is dropped.
		r.runs(job.StateFailed, ofSlot(slot, 1, time.Hour))
		r.runs(job.StateFailed, ofSlot(slot.Add(10*time.Minute), 1, time.Hour))
		r.want("a retrial that was overtaken by a failure", "failed users")
		r.runs(job.StateSucceeded)
		r.want("a success", "recovered users")

		r.runs(job.StateFailed, ofSlot(slot, 1, time.Hour))
		r.runs(job.StateCancelled, ofSlot(slot, 2, 0))
		r.runs(job.StateFailed, ofSlot(slot.Add(time.Minute), 1, time.Hour))
		r.want("a retrial that was cancelled", "")
	})
}

func TestACancelledRunIsNoNews(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		r.runs(job.StateCancelled)
		r.want("a cancelled run", "")
		r.runs(job.StateFailed)
		r.runs(job.StateCancelled)
		r.want("a failure, and a cancelled run", "failed users")
		r.runs(job.StateSucceeded)
		r.want("a success", "recovered users")
		r.runs(job.StateLost, func(rec *job.Record) { rec.RetryAt = time.Now() })
		r.want("a lost run that is run again", "")
		r.Finished(job.Record{Run: job.Run{Job: "gone"}, State: job.StateFailed})
		r.want("a job that is gone from the configuration", "")
	})
}

// TestALostRunIsToldAlthoughTheLedgerHasCountedIt checks that a lost run is reported when it is recorded, although the ledger has already
// counted it at that time.
func TestALostRunIsToldAlthoughTheLedgerHasCountedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNotesRig(t, noteConfig(users()))
		lost := &job.Record{Run: job.Run{ID: "run"}, State: job.StateLost, Finished: time.Now().Add(time.Millisecond)}
		r.past.set(redisledger.JobState{ConsecutiveFailures: 1, Last: lost}, nil)
		end := r.leads()
		r.runs(job.StateLost)
		r.runs(job.StateFailed)
		r.want("a lost run, and a failure", "failed users")
		end()
		r.Close(t.Context())
	})
}

// TestWhatEndsBeforeTheLedgerAnswersIsToldAfterwards checks runs that end before the state of their job is known. If the ledger has counted
// such a run, the run must not be counted twice.
func TestWhatEndsBeforeTheLedgerAnswersIsToldAfterwards(t *testing.T) {
	for _, c := range []struct {
		what   string
		state  redisledger.JobState
		states []job.State
		want   string
	}{
		{"a first failure, counted by the ledger", redisledger.JobState{ConsecutiveFailures: 1, Last: &job.Record{Run: job.Run{ID: "0"}}},
			[]job.State{job.StateFailed}, "failed users"},
		{"a first failure, not yet counted", redisledger.JobState{}, []job.State{job.StateFailed}, "failed users"},
		{"a third failure, counted", redisledger.JobState{ConsecutiveFailures: 3, Last: &job.Record{Run: job.Run{ID: "0"}}},
			[]job.State{job.StateFailed}, ""},
		{"two, of which one is counted", redisledger.JobState{ConsecutiveFailures: 1, Last: &job.Record{Run: job.Run{ID: "0"}}},
			[]job.State{job.StateFailed, job.StateFailed, job.StateSucceeded}, "failed users, recovered users"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newNotesRig(t, noteConfig(users()))
			r.past.err = errors.New("away")
			end := r.leads()
			for i, s := range c.states {
				r.runs(s, func(rec *job.Record) { rec.ID = fmt.Sprint(i) })
			}
			r.want(c.what+", before", "")
			r.past.set(c.state, nil)
			time.Sleep(2 * time.Second)
			r.want(c.what, c.want)
			end()
			r.Close(t.Context())
		})
	}
}

func TestWhatIsNotKnownAtTheEndOfTheTermIsToldAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNotesRig(t, noteConfig(users()))
		r.past.err = errors.New("away")
		end := r.leads()
		r.runs(job.StateFailed)
		r.want("before", "")
		end()
		r.want("the end of the term", "failed users")
		r.runs(job.StateSucceeded) // the run has ended at the same time as the term
		r.want("a run that ended last", "recovered users")
		r.Close(t.Context())
	})
}

func TestMissedSlotsAreToldAtOnceAndThenTogether(t *testing.T) {
	during(t, noteConfig(users()), func(r *notesRig) {
		slot := time.Now().Truncate(time.Second)
		miss := func(reason job.Reason, count int) {
			r.Missed(job.Missed{Job: "users", Reason: reason, Count: count, First: slot, Slot: slot})
			slot = slot.Add(time.Second)
		}
		miss(job.ReasonUnknown, 0)
		miss(job.ReasonPaused, 5)
		miss(job.ReasonOverlap, 0)
		r.want("what is not told", "")
		miss(job.ReasonOverlap, 1)
		if e := r.take(); len(e) != 1 || e[0].Count != 1 || e[0].Reason != "overlap" || !strings.Contains(e[0].Text, "A slot of job users, at ") {
			t.Errorf("the first: %+v", e)
		}
		first := slot
		for range 59 {
			time.Sleep(time.Second)
			miss(job.ReasonOverlap, 2)
		}
		r.want("less than a minute later", "")
		miss(job.ReasonNoLeader, 7) // another reason is reported separately
		if e := r.take(); len(e) != 1 || e[0].Count != 7 {
			t.Errorf("another reason: %+v", e)
		}
		last := slot.Add(-2 * time.Second)
		time.Sleep(2 * time.Second)
		e := r.take()
		if len(e) != 1 || e[0].Count != 118 || !e[0].Slot.Equal(last) || !strings.Contains(e[0].Text, "118 slots of job users, from "+text.Stamp(first)) {
			t.Errorf("the summary: %+v", e)
		}
		// If slots are missed for a whole day, the intervals between the reports grow.
		for range 24 * 60 {
			time.Sleep(time.Minute)
			miss(job.ReasonOverlap, 1)
		}
		if n := len(r.take()); n < 20 || n > 35 {
			t.Errorf("told %d times in a day", n)
		}
		time.Sleep(3 * time.Hour)
		r.take()
		miss(job.ReasonOverlap, 1)
		r.want("after a pause", "missed users")
		miss(job.ReasonOverlap, 1)
		r.Close(r.t.Context())
		r.want("the end", "missed users")
	})
}
