package job_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

func failing(context.Context, job.Run) (job.Result, error) {
	return job.Result{}, errors.New("database is away")
}

func retried(t testing.TB, interval string, r plan.Retry, work job.Func) job.Job {
	t.Helper()
	return with(every(t, "flush", interval, work), func(j *job.Job) { j.Retry = r })
}

func TestFailedRunIsTriedAgainEverMoreSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 4, Delay: 10 * time.Second, MaxDelay: 30 * time.Second}, failing))
		after(time.Hour + 10*time.Minute)
		n.end()
		rec := ledger.Records()
		want(t, "attempts", len(rec), 5)
		for i, most := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 30 * time.Second} {
			gap := rec[i+1].Started.Sub(rec[i].Finished)
			if gap < most*8/10 || gap > most*12/10 || !rec[i].RetryAt.Equal(rec[i+1].Started) {
				t.Errorf("pause %d: %v (announced for %v), want about %v", i+1, gap, rec[i].RetryAt.Sub(rec[i].Finished), most)
			}
			want(t, "trigger", rec[i+1].Trigger, job.TriggerRetry)
			want(t, "attempt", rec[i+1].Attempt, i+2)
			want(t, "slot", rec[i+1].Slot, rec[0].Slot)
		}
		want(t, "the last one's retrial", rec[4].RetryAt.IsZero(), true)
	})
}

func TestRetrialIsGivenUpAtTheNextSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, retried(t, "1m", plan.Retry{Limit: 9, Delay: 20 * time.Second}, failing))
		after(179 * time.Second)
		n.end()
		for _, rec := range ledger.Records() {
			if !rec.RetryAt.IsZero() && rec.RetryAt.Sub(rec.Slot) >= time.Minute {
				t.Errorf("attempt %d of %v is to be tried again at %v", rec.Attempt, rec.Slot, rec.RetryAt)
			}
		}
		// The second pause of about 40 s would end about a minute after the slot, or after the next slot.
		if len(ledger.Records()) < 4 || len(ledger.Records()) > 6 {
			t.Errorf("%d runs of two slots", len(ledger.Records()))
		}
	})
}

func TestWhatIsNotTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{
		{"APauseForAnOperator", &job.PauseError{Err: errors.New("a gap")}},
		{"ANewerLeader", job.ErrNotLeader},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := jobtest.NewLedger("me")
				n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 4, Delay: time.Second},
					func(context.Context, job.Run) (job.Result, error) { return job.Result{}, c.err }))
				after(time.Hour + time.Minute)
				n.stop(errSteppedDown)
				if err := <-n.result; err != nil && !errors.Is(err, job.ErrNotLeader) {
					t.Error(err)
				}
				want(t, "records", len(ledger.Records()), 1)
				want(t, "the retrial", ledger.Retry("flush") == nil, true)
			})
		})
	}
}

func TestTimedOutRunIsTriedAgainACancelledAndAManualOneAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		j := retried(t, "1h", plan.Retry{Limit: 1, Delay: time.Second}, lasting)
		j.Timeout = 10 * time.Second
		n := lead(t, ledger, j)
		after(time.Hour + 15*time.Second)
		want(t, "running attempt", n.Running()[0].Attempt, 2)
		_, _ = n.Cancel(t.Context(), "flush", "", "by alice")
		after(time.Minute)
		want(t, "manual", <-ask(t, ledger, n, "ask-1", false), nil)
		after(time.Minute)
		n.end()
		want(t, "states", n.states(), []job.State{job.StateTimedOut, job.StateCancelled, job.StateTimedOut})
	})
}

func TestNextTermGoesOnWithARetrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		j := retried(t, "1h", plan.Retry{Limit: 1, Delay: 10 * time.Minute}, failing)
		n := lead(t, ledger, j)
		after(time.Hour + time.Minute)
		n.end()
		ledger.SetOwner("other")
		n = leadAs(t, ledger, "other", job.Workload{Jobs: []job.Job{j}}, nil)
		after(15 * time.Minute)
		n.end()
		want(t, "attempts", len(ledger.Records()), 2)
		want(t, "starts", n.starts("flush"), []float64{-60})
	})
}

func TestCancelTakesARetrialAwayForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 1, Delay: 10 * time.Minute}, failing))
		after(time.Hour + time.Minute)
		_, err := n.Cancel(t.Context(), "flush", "", "by alice: no use")
		want(t, "error", err, nil)
		after(30 * time.Minute)
		want(t, "pending", ledger.Retry("flush") == nil, true)
		want(t, "what the history says", ledger.Records()[1].Error, "not started: cancelled by alice: no use")
		want(t, "starts", n.starts("flush"), []float64{3600})
		n.end()
	})
}

func TestCancelTakesARetrialAwayThatIsJustBeingRecorded(t *testing.T) {
	slow, away := jobtest.Fault{Delay: 500 * time.Millisecond}, jobtest.Fault{Lost: true}
	for _, c := range []struct {
		fault jobtest.Fault
		lasts time.Duration
		at    time.Duration // when the run is cancelled, after it has failed
		id    bool          // of the run
		anew  bool          // the job is removed and configured again before the run's end is recorded
		retry int
	}{
		{slow, time.Second, 200 * time.Millisecond, false, false, 2},
		{slow, time.Second, 200 * time.Millisecond, true, false, 2},
		{away, 5 * time.Minute, 4 * time.Minute, false, false, 0}, // no run is in progress, and the end of the run waits for the ledger
		{away, 5 * time.Minute, 4 * time.Minute, false, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ledger := jobtest.NewLedger("me")
			ledger.Disturb = during(jobtest.OpFinish, 0, time.Hour+c.lasts, c.fault)
			runID := ""
			flush := retried(t, "1h", plan.Retry{Limit: 1, Delay: 10 * time.Minute}, func(
				ctx context.Context, r job.Run,
			) (job.Result, error) {
				if c.id {
					runID = r.ID
				}
				return failing(ctx, r)
			})
			n := lead(t, ledger, flush)
			after(time.Hour + c.at)
			want(t, fmt.Sprintf("records of %+v", c), len(ledger.Records()), 0)
			done, err := n.Cancel(t.Context(), "flush", runID, "by alice: no use")
			want(t, "error", err, nil)
			want(t, fmt.Sprintf("cancelled of %+v", c), done, job.Cancelled{Retry: c.retry})
			if c.anew {
				n.update()
				n.update(flush)
			}
			after(30 * time.Minute)
			want(t, "pending", ledger.Retry("flush") == nil, true)
			want(t, "starts", n.starts("flush"), []float64{3600})
			want(t, "states", n.states(), []job.State{job.StateFailed, job.StateCancelled})
			want(t, "what the history says", ledger.Records()[1].Error, "not started: cancelled by alice: no use")
			n.end()
		})
	}
}

// A run that has succeeded cannot be cancelled while its end is being recorded.
func TestCancelThatFindsOnlyAnEndOnItsWayCancelsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpFinish, 0, 3*time.Hour, jobtest.Fault{Delay: 500 * time.Millisecond})
		n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 1, Delay: time.Minute}, takes(10*time.Second)))
		after(time.Hour + time.Second)
		going, err := n.Cancel(t.Context(), "flush", "", "by alice: too early")
		want(t, "error", err, nil)
		want(t, "while it goes on", len(going.Runs), 1)
		after(time.Hour + 9*time.Second + 200*time.Millisecond)
		want(t, "records", len(ledger.Records()), 1)
		for _, id := range []string{"", "run-2"} {
			done, err := n.Cancel(t.Context(), "flush", id, "by alice: too late")
			want(t, "error", err, nil)
			want(t, "cancelled", done, job.Cancelled{})
		}
		after(time.Second)
		n.end()
		want(t, "states", n.states(), []job.State{job.StateCancelled, job.StateSucceeded})
	})
}

func TestRetrialOverlapsAsSlotsDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		first := true
		work := func(ctx context.Context, r job.Run) (job.Result, error) {
			if first {
				first = false
				return failing(ctx, r)
			}
			return takes(time.Minute)(ctx, r)
		}
		n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 1, Delay: 30 * time.Second}, work))
		after(time.Hour + 10*time.Second)
		want(t, "manual", <-ask(t, ledger, n, "ask-1", false), nil)
		after(5 * time.Minute)
		n.end()
		want(t, "starts", len(n.starts("flush")), 2)
		want(t, "what the history says", ledger.Records()[1].Error, "not started: an earlier run of the job is still in progress")
	})
}

// The retrial must not be requested before the ledger knows it.
func TestRetrialSurvivesAnOutageOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpFinish, 0, time.Hour+20*time.Second, jobtest.Fault{Lost: true})
		n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 1, Delay: 5 * time.Second}, failing))
		after(time.Hour + time.Minute)
		n.end()
		want(t, "records", len(ledger.Records()), 2)
		want(t, "starts", n.starts("flush"), []float64{3600, 3600})
	})
}

func TestJitterIsTheSameForAJobAndMovesAllThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := every(t, "flush", "1m", takes(time.Second))
		j.Jitter = 40 * time.Second
		other := with(j, func(j *job.Job) { j.Name = "other" })
		offset := j.Offset()
		if offset <= 0 || offset >= j.Jitter || offset != j.Offset() || offset == other.Offset() || offset%time.Millisecond != 0 {
			t.Fatalf("offsets %v, %v", offset, other.Offset())
		}
		time.Sleep(50 * time.Second) // the last slot can no longer run
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, j)
		next, _ := n.Next("flush")
		want(t, "due", next.Sub(n.start), 10*time.Second+offset)
		after(10*time.Second + offset - time.Millisecond)
		want(t, "starts before", n.starts("flush"), []float64{})
		after(time.Millisecond)
		want(t, "slots", n.starts("flush"), []float64{10})
		n.end()
		// A term that begins between a slot and its due time does not catch up on the slot, because it is still to come.
		time.Sleep(time.Minute - offset/2)
		ledger.SetOwner("other")
		n = leadAs(t, ledger, "other", job.Workload{Jobs: []job.Job{j}}, nil)
		after(offset)
		n.end()
		want(t, "misses", n.misses(), map[job.Reason]int{})
		want(t, "starts", len(n.starts("flush")), 1)
		want(t, "trigger", n.records()[0].Trigger, job.TriggerSchedule)
	})
}
