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
)

// A command that takes long to end delays no flush.
func TestOtherJobsGoOnUntilThoseThatEndFirstHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		var cause error
		command := with(every(t, "command", "5s", func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(10 * time.Second) // its grace
			return job.Result{}, ctx.Err()
		}), func(j *job.Job) { j.EndsFirst, j.Overlap = true, plan.OverlapQueueOne })
		idle := with(every(t, "idle", "1s", nothing), func(j *job.Job) { j.EndsFirst = true })
		n := lead(t, ledger, command, idle, every(t, "flush", "1s", nothing))
		after(10500 * time.Millisecond) // the next run of the command waits
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // time of the bubble, because the jobs never end
		defer cancel()
		if err := n.EndFirst(ctx, errSteppedDown); err != nil || time.Since(began) != 10*time.Second {
			t.Errorf("the commands have ended after %v, %v", time.Since(began), err)
		}
		if err := n.RunNow(ctx, job.Manual{Job: "flush", ID: "by-hand"}); err == nil {
			t.Error("an order was taken by a term that is about to end")
		}
		after(100 * time.Millisecond) // a run that wrongly begins now is found below
		n.end()
		want(t, "it was told to end by the order", errors.Is(cause, errSteppedDown), true)
		want(t, "flushes", len(n.starts("flush")), 20)
		want(t, "commands", n.starts("command"), []float64{5})
		want(t, "other commands", len(n.starts("idle")), 10)
		want(t, "slots that are no longer the next leader's", n.misses(), map[job.Reason]int{})
		runs := 0
		for _, r := range ledger.Records() {
			if r.Job == "command" {
				runs++
				want(t, "state", r.State, job.StateCancelled)
			}
		}
		want(t, "runs of the command, also such as were claimed and not begun", runs, 1)
	})
}

// A term that is over does not wait.
func TestEndingFirstIsGivenUpWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		command := with(every(t, "command", "5s", takes(time.Hour)), func(j *job.Job) { j.EndsFirst = true })
		n := lead(t, jobtest.NewLedger("me"), command)
		after(6 * time.Second)
		n.end()
		if err := n.EndFirst(t.Context(), errSteppedDown); err == nil {
			t.Error("there is no term, and something of it has ended")
		}
	})
}
