package job_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
)

// Of a hundred jobs that are due at once only a few begin at the same time. The other jobs are not claimed before their turn, so that
// they belong to the next leader if the lead is lost.
func TestFewProcessesBeginAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := max(4, 2*runtime.GOMAXPROCS(0))
		ledger := jobtest.NewLedger("me")
		var jobs []job.Job
		for i := range 100 {
			jobs = append(jobs, with(every(t, fmt.Sprint("j", i), "1h", func(ctx context.Context, _ job.Run) (job.Result, error) {
				time.Sleep(time.Second)
				job.Begun(ctx)
				<-ctx.Done()
				return job.Result{}, ctx.Err()
			}), func(j *job.Job) { j.Spawns = true }))
		}
		n := lead(t, ledger, jobs...)
		for second := range 5 {
			after(time.Hour - time.Duration(min(second, 1))*(time.Hour-time.Second))
			want(t, "claimed", len(ledger.Granted()), (second+1)*most)
		}
		n.end()
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

// Processes that hang before they have begun delay no flush, and delay other processes only for a short time.
func TestAProcessThatHangsAtItsBeginningHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := max(4, 2*runtime.GOMAXPROCS(0))
		var flushed, ran atomic.Int64
		var jobs []job.Job
		for i := range most {
			jobs = append(jobs, with(every(t, fmt.Sprint("hangs", i), "1h", func(ctx context.Context, _ job.Run) (job.Result, error) {
				<-ctx.Done()
				return job.Result{}, ctx.Err()
			}), func(j *job.Job) { j.Spawns = true }))
		}
		count := func(n *atomic.Int64) job.Func {
			return func(context.Context, job.Run) (job.Result, error) { n.Add(1); return job.Result{}, nil }
		}
		command := with(every(t, "command", "1s", count(&ran)), func(j *job.Job) { j.Spawns = true })
		jobs = append(jobs, every(t, "flush", "1s", count(&flushed)), command)
		n := lead(t, jobtest.NewLedger("me"), jobs...)
		after(time.Hour + 500*time.Millisecond)
		flushedBefore, ranBefore := flushed.Load(), ran.Load()
		after(3 * time.Second)
		want(t, "flushed beside those that hang", flushed.Load()-flushedBefore, 3)
		want(t, "commands that ran beside those that hang", ran.Load()-ranBefore, 0)
		after(4 * time.Second)
		if ran.Load() == ranBefore {
			t.Error("no command runs while others hang")
		}
		n.end()
	})
}

// While Hold is true, no slot is claimed, and a slot that waits too long is late.
func TestNothingBeginsWhileTheLeaseGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		var hold atomic.Bool
		hold.Store(true)
		var missed []job.Missed
		var heldBack atomic.Int64
		r := job.NewRunner(ledger, func() (string, error) { return time.Now().String(), nil }, job.Config{
			Hold: hold.Load, OnMissed: func(m job.Missed) { missed = append(missed, m) },
			OnAttempt: func(name string, err error) {
				if errors.Is(err, job.ErrHeldBack) && name == "flush" {
					heldBack.Add(1)
				}
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- r.Run(ctx, job.Term{Owner: "me"}, job.Workload{Jobs: []job.Job{every(t, "flush", "10s", nothing)}})
		}()
		after(35 * time.Second)
		want(t, "claimed while it was held back", len(ledger.Granted()), 0)
		hold.Store(false)
		after(time.Second)
		want(t, "claimed then", len(ledger.Granted()), 1)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		late := 0
		for _, m := range missed {
			if m.Count > 0 {
				want(t, "the reason", m.Reason, job.ReasonLate)
				want(t, "the error", errors.Is(m.Err, job.ErrHeldBack), true)
			}
			late += m.Count
		}
		want(t, "missed", late, 2)
		want(t, "attempts that were held back", heldBack.Load(), 2)
		want(t, "recorded runs", len(ledger.Records()), 1)
	})
}

// A node that is about to hand its lock over lets no run begin, and learns which runs it would cut off.
func TestNothingBeginsWhileStartsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, every(t, "flush", "10s", nothing), every(t, "report", "15s", takes(time.Second)))
		after(10500 * time.Millisecond)
		open, _ := n.HoldStarts(8 * time.Second) // until 18.5
		want(t, "open between the runs", open, nil)
		after(7500 * time.Millisecond) // 18
		want(t, "reports that began while starts were held", len(n.starts("report")), 0)
		want(t, "reports that may begin", n.Open(), []string{"report"})
		after(time.Second) // 19
		want(t, "reports after the hold", n.starts("report"), []float64{15})
		_, release := n.HoldStarts(time.Hour)
		after(6 * time.Second) // 25
		want(t, "flushes that began while starts were held", n.starts("flush"), []float64{10})
		release()
		after(time.Second)
		want(t, "flushes after the release", n.starts("flush"), []float64{10, 20})
		n.end()
	})
}

// A handover may be refused because its term has just ended. The next term must not wait for the rest of a lease.
func TestStartsAreNotHeldInTheNextTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "10s", nothing))
		_, _ = n.HoldStarts(time.Hour)
		n.end()
		_, _ = n.HoldStarts(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- n.Run(ctx, job.Term{Owner: "me"}, job.Workload{Jobs: []job.Job{every(t, "flush", "10s", nothing)}})
		}()
		after(10500 * time.Millisecond)
		want(t, "flushes of the next term", n.starts("flush"), []float64{10})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A run whose claim is on its way may begin at any moment, and so it is open. It stays open until its result is recorded.
func TestARunIsOpenFromItsClaimToItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = func(op jobtest.Op, _ job.Run) jobtest.Fault {
			if op == jobtest.OpClaim || op == jobtest.OpFinish {
				return jobtest.Fault{Delay: 500 * time.Millisecond}
			}
			return jobtest.Fault{}
		}
		n := lead(t, ledger, every(t, "flush", "10s", takes(time.Second)))
		after(9900 * time.Millisecond)
		want(t, "open before the slot", n.Open(), nil)
		for _, what := range []string{"claimed", "in progress", "in progress", "recorded"} {
			after(500 * time.Millisecond)
			want(t, "open while it is "+what, n.Open(), []string{"flush"})
		}
		after(500 * time.Millisecond)
		want(t, "open after the record", n.Open(), nil)
		n.end()
	})
}
