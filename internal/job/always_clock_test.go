package job_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
)

// Every start of a job that runs all the time has its own slot, and the ledger accepts only a slot after its last slot. This also holds
// if the clock was set back.
func TestAlwaysIsStartedAgainThoughTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger, clock := jobtest.NewLedger("me"), &wall{}
		failed := false
		once := func(ctx context.Context, r job.Run) (job.Result, error) {
			if failed {
				return lasting(ctx, r)
			}
			failed = true
			_, _ = takes(time.Minute)(ctx, r)
			return job.Result{}, errors.New("connection reset")
		}
		n := leadAs(t, ledger, "me", job.Workload{Jobs: []job.Job{always(t, "flush", once)}}, clock.now)
		after(30 * time.Second)
		clock.set(-2 * time.Hour)
		after(10 * time.Minute)
		want(t, "running", len(n.Running()), 1)
		want(t, "starts", n.starts("flush"), []float64{0, 0.001})
		n.end()
	})
}

func TestAlwaysIsStartedThoughTheLastLeadersClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("flush", time.Now().Add(45*time.Second))
		n := lead(t, ledger, always(t, "flush", lasting))
		after(10 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{45.001})
		n.end()
	})
}
