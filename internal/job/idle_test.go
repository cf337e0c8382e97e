package job_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// worked counts the runs that did work.
func worked(n *atomic.Int64) job.Func {
	return func(context.Context, job.Run) (job.Result, error) {
		n.Add(1)
		return job.Result{Rows: 3}, nil
	}
}

// mayIdle returns the job as a job that may have nothing to do.
func mayIdle(j job.Job) job.Job {
	j.MayIdle = true
	return j
}

// onceKnown starts a term after the ledger knows the jobs, so that only the records of the test are made.
func onceKnown(t *testing.T, ledger *jobtest.Ledger, w job.Workload) *node {
	t.Helper()
	for _, j := range w.Jobs {
		ledger.SetLast(j.Name, time.Now())
	}
	return leadAs(t, ledger, "me", w, nil)
}

func TestRunsThatHaveNothingToDoAreRecordedTogetherAndNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var idle, busy, other atomic.Int64
		var asked [][]string
		ledger := jobtest.NewLedger("me")
		n := onceKnown(t, ledger, job.Workload{
			Jobs: []job.Job{
				mayIdle(every(t, "a", "1s", worked(&idle))), mayIdle(every(t, "b", "1s", worked(&busy))),
				mayIdle(every(t, "c", "1s", worked(&idle))), every(t, "d", "1s", worked(&other)),
			},
			Idle: func(_ context.Context, jobs []string) []bool {
				asked = append(asked, slices.Sorted(slices.Values(jobs)))
				answer := make([]bool, len(jobs))
				for i, name := range jobs {
					answer[i] = name != "b"
				}
				return answer
			},
		})
		after(2500 * time.Millisecond)
		n.end()
		want(t, "asked", asked, [][]string{{"a", "b", "c"}, {"a", "b", "c"}})
		want(t, "runs with nothing to do that were begun", idle.Load(), 0)
		want(t, "runs with work", busy.Load(), 2)
		want(t, "runs of a job that always has some", other.Load(), 2)
		for _, name := range []string{"a", "b", "c", "d"} {
			want(t, "starts of "+name, n.starts(name), []float64{1, 2})
		}
		var ended int
		for _, rec := range n.records() {
			ended++
			if rec.State != job.StateSucceeded || !rec.Finished.Equal(rec.Slot) || rec.Attempt != 1 || rec.Trigger != job.TriggerSchedule {
				t.Errorf("ended: %+v", rec)
			}
		}
		want(t, "ends that are told", ended, 8)
		want(t, "ends on record", len(ledger.Records()), 8)
		want(t, "of them without work", len(ledger.Idle()), 4)
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

func allIdle(_ context.Context, jobs []string) []bool {
	answer := make([]bool, len(jobs))
	for i := range answer {
		answer[i] = true
	}
	return answer
}

func TestAnIdleRunWhoseAnswerIsLostIsRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fault jobtest.Fault
		works int64
	}{
		"the answer is lost":      {jobtest.Fault{ReplyLost: true}, 0},
		"the answer is late":      {jobtest.Fault{Delay: 1100 * time.Millisecond}, 1}, // the claim that is requested meanwhile comes first
		"the claim is lost":       {jobtest.Fault{Lost: true}, 1},
		"the claim is lost, late": {jobtest.Fault{Lost: true, Delay: 2 * time.Second}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var works atomic.Int64
				ledger := jobtest.NewLedger("me")
				ledger.Disturb = during(jobtest.OpClaimIdle, 4*time.Second, 6*time.Second, c.fault)
				n := onceKnown(t, ledger, job.Workload{Jobs: []job.Job{mayIdle(every(t, "a", "5s", worked(&works)))}, Idle: allIdle})
				after(12 * time.Second)
				n.end()
				want(t, "starts", n.starts("a"), []float64{5, 10})
				want(t, "work", works.Load(), c.works)
				want(t, "ends that are told", len(n.records()), 2)
				want(t, "ends on record", len(ledger.Records()), 2)
				want(t, "missed", n.misses(), map[job.Reason]int{})
			})
		})
	}
}

func TestARunIsBegunWhereItCannotBeLookedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Int64
		ledger := jobtest.NewLedger("me")
		n := onceKnown(t, ledger, job.Workload{
			Jobs: []job.Job{mayIdle(every(t, "a", "5s", worked(&works)))},
			Idle: func(ctx context.Context, jobs []string) []bool {
				<-ctx.Done()
				return make([]bool, len(jobs))
			},
		})
		after(6 * time.Second)
		n.end()
		want(t, "starts", n.starts("a"), []float64{5})
		want(t, "work", works.Load(), 1)
	})
}

func TestAnIdleRunIsRefusedLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Int64
		ledger := jobtest.NewLedger("me")
		n := onceKnown(t, ledger, job.Workload{Jobs: []job.Job{mayIdle(every(t, "a", "5s", worked(&works)))}, Idle: allIdle})
		ledger.Pause("a", "by alice")
		after(6 * time.Second)
		want(t, "missed while it is paused", n.misses(), map[job.Reason]int{job.ReasonPaused: 1})
		ledger.Pause("a", "")
		after(5 * time.Second)
		want(t, "starts", n.starts("a"), []float64{10})
		ledger.SetOwner("somebody else")
		after(5 * time.Second)
		if err := <-n.result; !errors.Is(err, job.ErrNotLeader) {
			t.Errorf("Run: got %v, want %v", err, job.ErrNotLeader)
		}
		want(t, "work", works.Load(), 0)
		want(t, "starts in all", n.starts("a"), []float64{10})
	})
}

// A retry, or a run that an operator requested, is always begun, whatever there is to do.
func TestOnlyFirstAttemptsOfSlotsAreSeenToHaveNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []job.Trigger
		fails := func(_ context.Context, r job.Run) (job.Result, error) {
			runs = append(runs, r.Trigger)
			return job.Result{}, errors.New("no table")
		}
		idle := false
		j := mayIdle(every(t, "a", "10s", fails))
		j.Retry = plan.Retry{Limit: 1, Delay: time.Second, MaxDelay: time.Second}
		ledger := jobtest.NewLedger("me")
		n := onceKnown(t, ledger, job.Workload{Jobs: []job.Job{j}, Idle: func(_ context.Context, jobs []string) []bool {
			return slices.Repeat([]bool{idle}, len(jobs))
		}})
		after(10 * time.Second)
		idle = true
		after(5 * time.Second)
		ledger.Ask("a", "m1")
		if err := n.RunNow(t.Context(), job.Manual{Job: "a", ID: "m1"}); err != nil {
			t.Error(err)
		}
		after(6 * time.Second)
		n.end()
		want(t, "work", runs, []job.Trigger{job.TriggerSchedule, job.TriggerRetry, job.TriggerManual})
		want(t, "idle", len(ledger.Idle()), 1)
	})
}

// A term that ends between the check and the claim leaves the slot to the next term.
func TestATermThatEndsWhileItLooksLeavesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Int64
		ledger := jobtest.NewLedger("me")
		n := onceKnown(t, ledger, job.Workload{
			Jobs: []job.Job{mayIdle(every(t, "a", "5s", worked(&works)))},
			Idle: func(ctx context.Context, jobs []string) []bool {
				time.Sleep(100 * time.Millisecond)
				return allIdle(ctx, jobs)
			},
		})
		after(5050 * time.Millisecond)
		n.end()
		want(t, "claims", len(ledger.Granted()), 0)
		want(t, "work", works.Load(), 0)
	})
}
