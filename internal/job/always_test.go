package job_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
	"baton/internal/job/schedule"
)

// always returns a job that runs all the time.
func always(t testing.TB, name string, work job.Func) job.Job {
	t.Helper()
	s, err := schedule.Parse("@always", nil)
	if err != nil {
		t.Fatal(err)
	}
	return job.Job{Name: name, Schedule: s, Run: work, Timeout: time.Minute}
}

// lasting is work that goes on until its context ends.
func lasting(ctx context.Context, _ job.Run) (job.Result, error) {
	<-ctx.Done()
	return job.Result{Rows: 7}, ctx.Err()
}

func TestAlwaysIsOneRunForTheWholeTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, always(t, "flush", lasting))
		after(26 * time.Hour) // the job's timeout of a minute does not apply
		want(t, "starts", n.starts("flush"), []float64{0})
		want(t, "time to step down", n.end(), 0)
		rec := ledger.Records()
		want(t, "records", len(rec), 1)
		want(t, "state", rec[0].State, job.StateCancelled)
		want(t, "rows", rec[0].Result.Rows, int64(7))
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

func TestAlwaysIsStartedAgainAfterEveryFailureEverMoreSlowly(t *testing.T) {
	for name, c := range map[string]struct {
		spawns bool
		least  []float64
	}{
		"a command": {true, []float64{1, 2, 4, 8, 16, 30, 30, 30}},
		"a flush":   {false, []float64{1, 2, 4, 5, 5, 5, 5, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				broken := func(context.Context, job.Run) (job.Result, error) {
					return job.Result{}, errors.New("database is away")
				}
				n := lead(t, jobtest.NewLedger("me"), with(always(t, "flush", broken), func(j *job.Job) { j.Spawns = c.spawns }))
				after(10 * time.Minute)
				starts := n.starts("flush")
				for i, least := range c.least {
					if gap := starts[i+1] - starts[i]; gap < least || gap > 1.25*least {
						t.Errorf("pause %d: %v s, want %v s and a little", i+1, gap, least)
					}
				}
				n.end()
			})
		})
	}
}

func TestAlwaysThatLastedIsStartedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breaks := func(ctx context.Context, r job.Run) (job.Result, error) {
			_, _ = takes(time.Hour)(ctx, r)
			return job.Result{}, errors.New("connection reset")
		}
		n := lead(t, jobtest.NewLedger("me"), always(t, "flush", breaks))
		after(10*time.Hour + time.Minute)
		n.end()
		if starts := n.starts("flush"); len(starts) != 11 || starts[10] > 36_013 {
			t.Errorf("starts: %v", starts)
		}
	})
}

func TestAlwaysWaitsForALedgerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 0, 3*time.Minute, jobtest.Fault{Lost: true})
		n := lead(t, ledger, always(t, "flush", lasting))
		after(3*time.Minute + 3*time.Second)
		want(t, "granted", len(ledger.Granted()), 1)
		n.end()
	})
}

func TestAlwaysThatNeedsAnOperatorGoesOnWhenItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gap := func(context.Context, job.Run) (job.Result, error) {
			return job.Result{}, &job.PauseError{Err: errors.New("a gap in the stream")}
		}
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, always(t, "flush", gap))
		after(time.Hour)
		want(t, "starts", n.starts("flush"), []float64{0})
		want(t, "missed", n.misses(), map[job.Reason]int{})
		want(t, "told", n.logs.FilterMessageSnippet("paused until an operator").Len(), 1)
		ledger.Pause("flush", "")
		want(t, "told of the end", n.Paused(t.Context(), "flush", ""), nil)
		synctest.Wait()
		want(t, "starts", n.starts("flush"), []float64{0, 3600})
		n.end()
	})
}

func TestPauseEndsARunThatWouldNeverEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, always(t, "flush", lasting), every(t, "long", "1m", takes(50*time.Second)))
		after(70 * time.Second)
		for _, name := range []string{"flush", "long"} {
			ledger.Pause(name, "by alice: upgrade")
			for range 3 {
				want(t, "told", n.Paused(t.Context(), name, "by alice: upgrade"), nil)
			}
		}
		after(time.Minute + 40*time.Second)
		rec := n.records()
		want(t, "records", len(rec), 2)
		want(t, "why the one ended", rec[0].Error, "job: paused by alice: upgrade")
		want(t, "state of the other", rec[1].State, job.StateSucceeded)
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonPaused: 1})
		ledger.Pause("flush", "")
		want(t, "told of the end", n.Paused(t.Context(), "flush", ""), nil)
		want(t, "told once more", n.Paused(t.Context(), "flush", ""), nil)
		synctest.Wait()
		want(t, "starts", n.starts("flush"), []float64{0, 170})
		n.end()
	})
}

func TestManualRunIsStartedAtOnceAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, every(t, "report", "1h", takes(5*time.Second)))
		check := func(what string, got, expected error) {
			t.Helper()
			if !errors.Is(got, expected) {
				t.Errorf("%s: got %v, want %v", what, got, expected)
			}
		}
		after(10 * time.Second)
		check("what nobody asked for", n.RunNow(t.Context(), job.Manual{Job: "report", ID: "ask-1"}), job.ErrSlotTaken)
		ledger.Ask("report", "ask-1")
		check("what was asked for", n.RunNow(t.Context(), job.Manual{Job: "report", ID: "ask-1"}), nil)
		check("a running job", n.RunNow(t.Context(), job.Manual{Job: "report", ID: "ask-2"}), job.ErrRunning)
		after(6 * time.Second)
		check("the same again", n.RunNow(t.Context(), job.Manual{Job: "report", ID: "ask-1"}), job.ErrSlotTaken)
		check("an unknown job", n.RunNow(t.Context(), job.Manual{Job: "rapport", ID: "ask-3"}), job.ErrUnknown)
		ledger.Ask("report", "ask-4")
		ledger.Pause("report", "by alice")
		check("a paused job", n.RunNow(t.Context(), job.Manual{Job: "report", ID: "ask-4"}), job.ErrPaused)
		ledger.Pause("report", "")
		after(time.Hour)
		want(t, "starts", n.starts("report"), []float64{10, 3600})
		want(t, "missed", n.misses(), map[job.Reason]int{})
		rec := n.records()[0]
		want(t, "trigger", rec.Trigger, job.TriggerManual)
		want(t, "ID", rec.ID, "ask-1")
		n.end()
		check("after the term", n.RunNow(t.Context(), job.Manual{Job: "report", ID: "ask-5"}), job.ErrNotLeader)
	})
}

func TestManualRunIsNoSlotSoThatTheTermStillCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("report", time.Now().Add(-2*time.Hour))
		ledger.Disturb = during(jobtest.OpResumeStates, 0, 10*time.Second, jobtest.Fault{Lost: true})
		j := every(t, "report", "1h", nothing)
		j.CatchUp = plan.CatchUpLatest
		n := lead(t, ledger, j)
		ledger.Ask("report", "ask-1")
		want(t, "asked", n.RunNow(t.Context(), job.Manual{Job: "report", ID: "ask-1"}), nil)
		after(time.Minute)
		want(t, "starts", n.starts("report"), []float64{0, -5})
		n.end()
	})
}

func TestManualRunOfAJobThatWaitsToBeStartedAgainIsTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := false
		once := func(ctx context.Context, r job.Run) (job.Result, error) {
			if !failed {
				failed = true
				return job.Result{}, errors.New("database is away")
			}
			return lasting(ctx, r)
		}
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, always(t, "flush", once))
		ledger.Ask("flush", "ask-1")
		want(t, "asked", n.RunNow(t.Context(), job.Manual{Job: "flush", ID: "ask-1"}), nil)
		after(time.Minute)
		want(t, "running", len(n.Running()), 1)
		want(t, "granted", len(ledger.Granted()), 2)
		n.end()
	})
}

func TestALossOfAJobThatIsKeptRunningIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, j := range []job.Job{always(t, "flush", lasting), every(t, "flush", "10s", nothing)} {
			ledger := jobtest.NewLedger("me")
			ledger.SetOpen(job.Record{Run: job.Run{
				ID: "old", Job: "flush", Slot: time.Now().Add(-time.Minute), Trigger: job.TriggerSchedule,
				Attempt: 1, Term: job.Term{NodeID: "db0", Owner: "gone", Epoch: 41}}})
			n := lead(t, ledger, j)
			after(time.Second)
			n.end()
			rec := ledger.Records()[0]
			want(t, "the lost run", rec.ID, "old")
			want(t, "is no failure", rec.NoFailure, schedule.IsAlways(j.Schedule))
		}
	})
}
