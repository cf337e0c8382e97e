package job_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// with returns a job after a change.
func with(j job.Job, change func(*job.Job)) job.Job {
	change(&j)
	return j
}

func overlapping(t testing.TB, how plan.Overlap, interval string, work job.Func) job.Job {
	t.Helper()
	return with(every(t, "flush", interval, work), func(j *job.Job) { j.Overlap = how })
}

// states returns the states in which runs ended, in order.
func (n *node) states() []job.State {
	list := []job.State{}
	for _, rec := range n.records() {
		list = append(list, rec.State)
	}
	return list
}

func TestOfSlotsThatWaitTheLatestIsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, overlapping(t, plan.OverlapQueueOne, "5s", takes(12*time.Second)))
		after(34 * time.Second)
		// The run of 5 lasts until 17, then the run of 15 until 29, then 25 runs.
		want(t, "starts", n.starts("flush"), []float64{5, 15, 25})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 2}) // 10, 20; 30 waits
		n.end()
		missed := ledger.Missed()
		want(t, "the slot before the one missed", missed[len(missed)-1].After.Sub(n.start), 15*time.Second)
	})
}

func TestSlotThatWaitsPastItsDeadlineIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := overlapping(t, plan.OverlapQueueOne, "1m", takes(90*time.Second))
		j.StartingDeadline = 20 * time.Second
		n := lead(t, jobtest.NewLedger("me"), j)
		after(141 * time.Second)
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 1})
		after(60 * time.Second)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{60, 180})
	})
}

func TestLaterRunTakesTheEarlierOnesPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slowToStop := func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			return job.Result{}, ctx.Err()
		}
		n := lead(t, jobtest.NewLedger("me"), overlapping(t, plan.OverlapReplace, "5s", slowToStop))
		after(12 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{5, 10})
		want(t, "running", len(n.Running()), 1)
		want(t, "when it began", n.Running()[0].Started.Sub(n.start), 11*time.Second)
		rec := n.records()[0]
		want(t, "state", rec.State, job.StateCancelled)
		want(t, "error", rec.Error, "replaced by a later run")
		n.end()
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

func TestRunsMayGoOnAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), overlapping(t, plan.OverlapAllow, "5s", takes(12*time.Second)))
		after(21 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{5, 10, 15, 20})
		want(t, "running", len(n.Running()), 3)
		n.end()
		want(t, "states", n.states(), []job.State{job.StateSucceeded, job.StateCancelled, job.StateCancelled, job.StateCancelled})
	})
}

func bounded(t testing.TB, most int, work job.Func) job.Job {
	t.Helper()
	return with(overlapping(t, plan.OverlapAllow, "5s", work), func(j *job.Job) { j.MaxOverlap = most })
}

func TestNoMoreRunsGoOnThanMayOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), bounded(t, 2, lasting))
		after(16 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{5, 10})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 1}) // 15
		if _, err := n.Cancel(t.Context(), "flush", n.Running()[0].ID, "by alice"); err != nil {
			t.Error(err)
		}
		after(10 * time.Second) // 20 runs, 25 is missed
		want(t, "starts", n.starts("flush"), []float64{5, 10, 20})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 2})
		n.end()
	})
}

func TestUpdateThatLowersHowManyMayOverlapLetsThoseGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), bounded(t, 4, takes(22*time.Second)))
		after(21 * time.Second) // 5, 10, 15, 20
		n.update(bounded(t, 2, takes(22*time.Second)))
		want(t, "running", len(n.Running()), 4)
		after(20 * time.Second) // 25, 30, 35 are missed: 5 ends at 27, 10 at 32, 15 at 37; 40 runs
		want(t, "starts", n.starts("flush"), []float64{5, 10, 15, 20, 40})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 3})
		n.end()
		for _, state := range n.states()[:3] {
			want(t, "state", state, job.StateSucceeded)
		}
	})
}

func TestManualRunIsRefusedWhereNoMoreMayOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, bounded(t, 2, lasting))
		after(11 * time.Second)
		if err := <-ask(t, ledger, n, "ask-1", false); !errors.Is(err, job.ErrRunning) {
			t.Errorf("got %v", err)
		}
		if err := <-ask(t, ledger, n, "ask-2", true); err != nil {
			t.Errorf("forced: %v", err)
		}
		want(t, "running", len(n.Running()), 3)
		n.end()
	})
}

// If the claim of a later slot overtakes a claim, the earlier claim is refused, and its slot is lost.
func TestRunsThatMayOverlapClaimOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		slow := true
		ledger.Disturb = func(op jobtest.Op, _ job.Run) jobtest.Fault {
			if op == jobtest.OpClaim && slow {
				slow = false
				return jobtest.Fault{Delay: 900 * time.Millisecond}
			}
			return jobtest.Fault{}
		}
		n := lead(t, ledger, overlapping(t, plan.OverlapAllow, "500ms", takes(3*time.Second)))
		after(2100 * time.Millisecond)
		claimed := []float64{}
		for _, r := range ledger.Granted() {
			claimed = append(claimed, r.Slot.Sub(n.start).Seconds())
		}
		want(t, "claimed", claimed, []float64{0.5, 1, 1.5, 2})
		starts := n.starts("flush") // the order in the reports of two simultaneous starts is random
		slices.Sort(starts)
		want(t, "starts", starts, []float64{0.5, 1, 1.5, 2})
		n.end()
	})
}

func ask(t testing.TB, l *jobtest.Ledger, n *node, id string, force bool) chan error {
	t.Helper()
	l.Ask("flush", id)
	answer := make(chan error, 1)
	go func() {
		answer <- n.RunNow(t.Context(), job.Manual{Job: "flush", ID: id, By: "by alice", Force: force})
	}()
	synctest.Wait()
	return answer
}

func TestManualRunOverlapsAsSlotsDo(t *testing.T) {
	for _, c := range []struct {
		how     plan.Overlap
		force   bool
		err     error
		waits   bool
		running int
	}{
		{how: plan.OverlapForbid, err: job.ErrRunning, running: 1},
		{how: plan.OverlapForbid, force: true, running: 2},
		{how: plan.OverlapQueueOne, waits: true, running: 1},
		{how: plan.OverlapReplace, running: 1},
		{how: plan.OverlapAllow, running: 2},
	} {
		t.Run(string(c.how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := jobtest.NewLedger("me")
				n := lead(t, ledger, overlapping(t, c.how, "1h", takes(time.Minute)))
				after(time.Hour + 10*time.Second)
				answer := ask(t, ledger, n, "ask-1", c.force)
				want(t, "running", len(n.Running()), c.running)
				if c.waits {
					want(t, "answered", len(answer), 0)
					after(time.Minute)
					want(t, "running", n.Running()[0].ID, "ask-1")
				}
				if err := <-answer; !errors.Is(err, c.err) {
					t.Errorf("got %v, want %v", err, c.err)
				}
				if c.how == plan.OverlapReplace {
					want(t, "running", n.Running()[0].ID, "ask-1")
					want(t, "who asked", n.Running()[0].By, "by alice")
				}
				if c.force {
					want(t, "forced", ledger.Granted()[1].Forced, true)
				}
				n.end()
			})
		})
	}
}

// An operator's request is read repeatedly until it is answered.
func TestManualRunThatIsAskedForAgainIsTheSameOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, time.Hour+10*time.Second, 2*time.Hour, jobtest.Fault{Delay: 900 * time.Millisecond})
		n := lead(t, ledger, overlapping(t, plan.OverlapQueueOne, "1h", takes(time.Minute)))
		after(time.Hour + 10*time.Second)
		first := ask(t, ledger, n, "ask-1", false)
		second := ask(t, ledger, n, "ask-1", false)
		after(50*time.Second + 500*time.Millisecond)
		third := ask(t, ledger, n, "ask-1", false)
		after(time.Second)
		want(t, "granted", len(ledger.Granted()), 2)
		want(t, "answered", []int{len(first), len(second), len(third)}, []int{0, 1, 1})
		want(t, "while it runs", <-ask(t, ledger, n, "ask-1", false), nil)
		n.end()
		want(t, "starts", len(n.starts("flush")), 2)
	})
}

func TestManualRunThatNobodyWaitsForAnyMoreIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, overlapping(t, plan.OverlapQueueOne, "1h", takes(time.Minute)))
		after(time.Hour + 10*time.Second)
		ledger.Ask("flush", "ask-1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.RunNow(ctx, job.Manual{Job: "flush", ID: "ask-1"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		after(5 * time.Minute)
		want(t, "granted", len(ledger.Granted()), 1)
		n.end()
	})
}

func TestWhoWaitsForAManualRunIsToldThatTheTermHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, overlapping(t, plan.OverlapQueueOne, "1h", takes(time.Minute)))
		after(time.Hour + 10*time.Second)
		answer := ask(t, ledger, n, "ask-1", false)
		n.end()
		if err := <-answer; !errors.Is(err, job.ErrNotLeader) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOperatorCancelsWhatRunsAndWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		j := overlapping(t, plan.OverlapQueueOne, "1m", takes(90*time.Second))
		j.Retry = plan.Retry{Limit: 3, Delay: time.Second}
		n := lead(t, ledger, j)
		after(125 * time.Second)
		none, err := n.Cancel(t.Context(), "flush", "run-7", "by alice: wrong")
		want(t, "a run that is not there", none, job.Cancelled{})
		want(t, "its error", err, nil)
		ids, err := n.Cancel(t.Context(), "flush", "", "by alice: wrong input")
		want(t, "error", err, nil)
		want(t, "told", ids, job.Cancelled{Runs: []string{"run-1"}})
		after(50 * time.Second)
		rec := n.records()
		want(t, "states", n.states(), []job.State{job.StateCancelled})
		want(t, "error", rec[0].Error, "cancelled by alice: wrong input")
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 1})
		_, err = n.Cancel(t.Context(), "rapport", "", "")
		if !errors.Is(err, job.ErrUnknown) {
			t.Errorf("an unknown job: %v", err)
		}
		n.end()
		want(t, "starts", n.starts("flush"), []float64{60})
	})
}
