package job_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

func catchingAllUp(t testing.TB, interval string, work job.Func) job.Job {
	t.Helper()
	return with(every(t, "flush", interval, work), func(j *job.Job) { j.CatchUp = plan.CatchUpAll })
}

func TestEverySlotThatPassedIsRunInTurn(t *testing.T) {
	for _, how := range []plan.Overlap{plan.OverlapForbid, plan.OverlapQueueOne, plan.OverlapReplace, plan.OverlapAllow} {
		t.Run(string(how), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(5 * time.Second)
				ledger := jobtest.NewLedger("me")
				ledger.SetLast("flush", time.Now().Add(-40*time.Second))
				var now, overlaps atomic.Int32
				j := catchingAllUp(t, "10s", func(ctx context.Context, r job.Run) (job.Result, error) {
					if now.Add(1) > 1 {
						overlaps.Add(1)
					}
					defer now.Add(-1)
					return takes(7*time.Second)(ctx, r)
				})
				j.Overlap = how
				ledger.Disturb = during(jobtest.OpResumeStates, 0, time.Second, jobtest.Fault{Lost: true})
				n := lead(t, ledger, j)
				after(65 * time.Second)
				n.end()
				// Each run takes 7 s, and begins when the previous run has ended, until the runs are on time again.
				want(t, "starts", n.starts("flush"), []float64{-35, -25, -15, -5, 5, 15, 25, 35, 45, 55})
				want(t, "missed", n.misses(), map[job.Reason]int{})
				want(t, "runs at a time", overlaps.Load(), 0)
				want(t, "first trigger", n.records()[0].Trigger, job.TriggerCatchUp)
				want(t, "last trigger", n.records()[9].Trigger, job.TriggerSchedule)
			})
		})
	}
}

func TestOnlySlotsWithinTheirDeadlineAreCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("flush", time.Now().Add(-100*time.Second))
		j := catchingAllUp(t, "10s", takes(8*time.Second))
		j.StartingDeadline = 26 * time.Second
		n := lead(t, ledger, j)
		after(9 * time.Second)
		// The run of -25 lasts until 3 and so on. Then the run of -15 would begin at 8, 23 s late, which is in time.
		want(t, "starts", n.starts("flush"), []float64{-25, -15})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonNoLeader: 7})
		first := ledger.Missed()[0]
		want(t, "the first of them", first.First.Sub(n.start), -95*time.Second)
		want(t, "the last of them", first.Slot.Sub(n.start), -35*time.Second)
		n.end()
	})
}

func TestSlotsOfAnOutageOfTheLedgerAreRunInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 0, 35*time.Second, jobtest.Fault{Lost: true})
		n := lead(t, ledger, catchingAllUp(t, "10s", takes(time.Second)))
		after(59 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{10, 20, 30, 40, 50})
		want(t, "missed", n.misses(), map[job.Reason]int{})
		n.end()
	})
}

func TestRestOfTheSlotsIsLeftToTheNextTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("flush", time.Now().Add(-60*time.Second))
		j := catchingAllUp(t, "10s", takes(10*time.Second))
		n := lead(t, ledger, j)
		after(11 * time.Second)
		n.end()
		ledger.SetOwner("other")
		second := leadAs(t, ledger, "other", job.Workload{Jobs: []job.Job{j}}, nil)
		after(200 * time.Second)
		second.end()
		want(t, "starts of the first", n.starts("flush"), []float64{-55, -45})
		want(t, "starts of the second", second.starts("flush")[:3], []float64{-46, -36, -26})
		want(t, "missed", second.misses(), map[job.Reason]int{})
	})
}

func TestJobThatNothingIsKnownOfIsPutOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger := jobtest.NewLedger("me")
		j := every(t, "flush", "1h", nothing)
		j.CatchUp = plan.CatchUpLatest
		n := lead(t, ledger, j, always(t, "loop", lasting))
		n.end()
		want(t, "recorded", ledger.Missed(), []job.Missed{
			{Job: "flush", Reason: job.ReasonUnknown, First: n.start.Round(0), Slot: n.start.Round(0)},
		})
		want(t, "told", len(n.missed), 1)
		want(t, "loud lines", n.logs.FilterMessageSnippet("nothing is known").Filter(loud).Len(), 0)
		time.Sleep(time.Hour)
		ledger.SetOwner("other")
		n = leadAs(t, ledger, "other", job.Workload{Jobs: []job.Job{j}}, nil)
		want(t, "what the next term catches up", len(n.starts("flush")), 1)
		n.end()
	})
}

// lost returns a run that a leader has left behind.
func lost(slot time.Time, trigger job.Trigger) job.Record {
	return job.Record{State: job.StateRunning, Started: slot, Run: job.Run{
		ID: "gone-1", Job: "flush", Slot: slot, Trigger: trigger, Attempt: 1,
		Term: job.Term{NodeID: "db0", Owner: "gone", Epoch: 41},
	}}
}

func TestRunThatWasLostWithItsLeader(t *testing.T) {
	for _, c := range []struct {
		name    string
		onLost  plan.OnLost
		trigger job.Trigger
		catchUp plan.CatchUp
		slot    time.Duration // from the start of the term; slots come every 10 s
		starts  []float64
		tries   []int
	}{
		{"IsRecorded", plan.OnLostSkip, job.TriggerSchedule, plan.CatchUpNone, -5 * time.Second, []float64{5}, []int{1}},
		{"IsRunAgain", plan.OnLostRerun, job.TriggerSchedule, plan.CatchUpNone, -5 * time.Second, []float64{-5, 5}, []int{2, 1}},
		{
			"IsRunAgainThoughLaterSlotsWereMissed", plan.OnLostRerun, job.TriggerCatchUp, plan.CatchUpNone, -25 * time.Second,
			[]float64{-25, 5}, []int{2, 1},
		},
		{
			"GivesWayToALaterSlotThatIsCaughtUp", plan.OnLostRerun, job.TriggerSchedule, plan.CatchUpLatest, -25 * time.Second,
			[]float64{-5, 5}, []int{1, 1},
		},
		{
			"GoesBeforeTheSlotsThatAreCaughtUp", plan.OnLostRerun, job.TriggerSchedule, plan.CatchUpAll, -25 * time.Second,
			[]float64{-25, -15, -5, 5}, []int{2, 1, 1, 1},
		},
		{"IsNotRunAgainIfItWasManual", plan.OnLostRerun, job.TriggerManual, plan.CatchUpNone, -5 * time.Second, []float64{5}, []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(5 * time.Second)
				ledger := jobtest.NewLedger("me")
				ledger.SetOpen(lost(time.Now().Add(c.slot).Round(0), c.trigger))
				ledger.Disturb = during(jobtest.OpFinish, 0, 2*time.Second, jobtest.Fault{ReplyLost: true})
				j := with(every(t, "flush", "10s", nothing), func(j *job.Job) { j.OnLost, j.CatchUp = c.onLost, c.catchUp })
				n := lead(t, ledger, j)
				after(9 * time.Second)
				n.end()
				want(t, "starts", n.starts("flush"), c.starts)
				tries := []int{}
				for _, r := range n.started {
					tries = append(tries, r.Attempt)
				}
				want(t, "attempts", tries, c.tries)
				var rec job.Record
				for _, r := range ledger.Records() {
					if r.ID == "gone-1" {
						rec = r
					}
				}
				want(t, "state", rec.State, job.StateLost)
				if !strings.Contains(rec.Error, `node "db0"`) || !strings.Contains(rec.Error, "epoch 41") {
					t.Errorf("error: %q", rec.Error)
				}
			})
		})
	}
}

func TestLostRunIsRecordedAndRunAgainWhenTheLedgerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger := jobtest.NewLedger("me")
		ledger.SetOpen(lost(time.Now().Add(-5*time.Second).Round(0), job.TriggerSchedule))
		ledger.Disturb = during(jobtest.OpFinish, 0, 8*time.Second, jobtest.Fault{Lost: true})
		n := lead(t, ledger, with(every(t, "flush", "10s", nothing), func(j *job.Job) { j.OnLost = plan.OnLostRerun }))
		after(20 * time.Second)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{-5, 5, 15})
	})
}

func TestRunOfAlwaysThatWasLostIsRecordedOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger := jobtest.NewLedger("me")
		ledger.SetOpen(lost(time.Now().Add(-time.Minute).Round(0), job.TriggerSchedule))
		n := lead(t, ledger, with(always(t, "flush", lasting), func(j *job.Job) { j.OnLost = plan.OnLostRerun }))
		after(time.Minute)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{0})
		want(t, "state", ledger.Records()[0].State, job.StateLost)
		want(t, "pending", ledger.Retry("flush") == nil, true)
	})
}

func TestCancelTakesARerunAwayBeforeItsLossIsOnRecord(t *testing.T) {
	for _, op := range []jobtest.Op{jobtest.OpFinish, jobtest.OpResumeStates} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(5 * time.Second)
			ledger := jobtest.NewLedger("me")
			ledger.SetOpen(lost(time.Now().Add(-5*time.Second).Round(0), job.TriggerSchedule))
			ledger.Disturb = during(op, 0, 2*time.Second, jobtest.Fault{Lost: true})
			n := lead(t, ledger, with(every(t, "flush", "10s", nothing), func(j *job.Job) { j.OnLost = plan.OnLostRerun }))
			after(time.Second)
			_, err := n.Cancel(t.Context(), "flush", "", "by alice: no use")
			want(t, "error", err, nil)
			after(8 * time.Second)
			want(t, string(op)+": pending", ledger.Retry("flush") == nil, true)
			n.end()
			want(t, string(op)+": starts", n.starts("flush"), []float64{5})
		})
	}
}

func TestCancelTakesARetrialOfAnEarlierTermAwayThatIsNotKnownYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 1, Delay: 10 * time.Minute}, failing))
		after(time.Hour + time.Minute)
		n.end()
		ledger.Disturb = during(jobtest.OpResumeStates, 0, 2*time.Second, jobtest.Fault{Lost: true})
		n = lead(t, ledger, retried(t, "1h", plan.Retry{Limit: 1, Delay: 10 * time.Minute}, nothing))
		after(time.Second)
		_, err := n.Cancel(t.Context(), "flush", "", "by alice: no use")
		want(t, "error", err, nil)
		after(30 * time.Minute)
		want(t, "pending", ledger.Retry("flush") == nil, true)
		n.end()
		want(t, "starts", len(n.starts("flush")), 0)
	})
}
