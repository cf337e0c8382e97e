package job_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// open returns the runs that count as running in the ledger.
func open(t *testing.T, l *jobtest.Ledger, name string) []job.Record {
	t.Helper()
	standings, err := l.ResumeStates(t.Context(), []string{name})
	if err != nil {
		t.Error(err)
	}
	return standings[name].Open
}

// A slot that waits for its jitter when the first term ends belongs to the next term.
func TestSlotOnItsWayIsNotForgottenByTheTermAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		j := with(every(t, "flush", "1h", nothing), func(j *job.Job) { j.CatchUp, j.Jitter = plan.CatchUpLatest, 50*time.Minute })
		time.Sleep(time.Hour + j.Offset() - time.Minute) // the slot has come, but the job is not due yet
		n := lead(t, ledger, j)
		after(10 * time.Second)
		n.end()
		ledger.SetOwner("other")
		next := leadAs(t, ledger, "other", job.Workload{Jobs: []job.Job{j}}, nil)
		after(2 * time.Minute)
		next.end()
		want(t, "starts", len(next.starts("flush")), 1)
	})
}

// A job has slots only from its configuration on. The next term does not look for earlier slots.
func TestSlotsBeforeAJobCameAreNotCaughtUpByTheNextTerm(t *testing.T) {
	for name, before := range map[string][]string{"ANewJob": nil, "AnotherSchedule": {"24h"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := jobtest.NewLedger("me")
				var old []job.Job
				for _, interval := range before {
					old = append(old, catchingAllUp(t, interval, nothing))
				}
				n := lead(t, ledger, old...)
				after(10*time.Hour + 30*time.Second)
				j := catchingAllUp(t, "1m", nothing)
				n.update(j)
				after(10 * time.Second)
				n.end()
				ledger.SetOwner("other")
				next := leadAs(t, ledger, "other", job.Workload{Jobs: []job.Job{j}}, nil)
				after(time.Minute)
				next.end()
				want(t, "starts", len(next.starts("flush")), 1)
				want(t, "missed", next.misses(), map[job.Reason]int{})
				for _, m := range ledger.Missed() {
					want(t, "slots in the history", m.Count, 0)
				}
			})
		})
	}
}

// If a leader ends after the ledger's answer that the job is paused, but before the record of the miss, the slot belongs to the next
// leader.
func TestSlotOfAPauseIsNotForgottenWithItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpMiss, 10*time.Minute, 2*time.Hour, jobtest.Fault{Lost: true})
		j := every(t, "flush", "1h", nothing)
		n := lead(t, ledger, j)
		after(10 * time.Minute)
		ledger.Pause("flush", "by alice")
		after(51 * time.Minute)
		n.end()
		ledger.Disturb = nil
		ledger.SetOwner("other")
		next := leadAs(t, ledger, "other", job.Workload{Jobs: []job.Job{j}}, nil)
		after(time.Minute)
		next.end()
		slots := 0
		for _, m := range ledger.Missed() {
			slots += m.Count
		}
		want(t, "slots in the history", slots, 1)
	})
}

// A claim that is granted, but whose answer comes too late, does not make a run in progress.
func TestClaimThatWasGivenUpIsNotARunThatGoesOn(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *jobtest.Ledger, *node){
		"OfASlot":      func(*testing.T, *jobtest.Ledger, *node) { after(time.Minute) },
		"OfAManualRun": func(t *testing.T, l *jobtest.Ledger, n *node) { _ = ask(t, l, n, "ask-1", false) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ledger := jobtest.NewLedger("me")
				ledger.Disturb = during(jobtest.OpClaim, 0, 125*time.Second, jobtest.Fault{ReplyLost: true})
				n := lead(t, ledger, every(t, "flush", "1m", takes(time.Second)))
				begin(t, ledger, n)
				after(150 * time.Second)
				want(t, "open", len(open(t, ledger, "flush")), 0)
				for _, rec := range ledger.Records() {
					if rec.State == job.StateLost && rec.Error == "" {
						t.Errorf("it is lost, and nothing says why: %+v", rec)
					}
				}
				n.end()
			})
		})
	}
}

// A claim that arrives after its miss was recorded is not granted.
func TestClaimThatArrivesAfterItsSlotWasMissedIsNotGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 0, 3*time.Hour, jobtest.Fault{Delay: 3 * time.Minute})
		j := every(t, "flush", "1h", nothing)
		j.StartingDeadline = time.Minute
		n := lead(t, ledger, j)
		after(time.Hour + 10*time.Minute)
		want(t, "granted", len(ledger.Granted()), 0)
		want(t, "open", len(open(t, ledger, "flush")), 0)
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonLedger: 1})
		n.end()
	})
}

// A leader that was deposed before it had read the state of the jobs learns of its successor's runs.
func TestRunsOfALaterTermAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		run := job.Run{ID: "r1", Job: "flush", Slot: time.Now(), Trigger: job.TriggerSchedule, Attempt: 1}
		run.Term = job.Term{Owner: "other", Epoch: 43}
		ledger.SetOpen(job.Record{Run: run, State: job.StateRunning, Started: time.Now()})
		n := lead(t, ledger, with(every(t, "flush", "1h", nothing), func(j *job.Job) { j.OnLost = plan.OnLostRerun }))
		after(time.Second)
		n.end()
		want(t, "recorded", len(ledger.Records()), 0)
		want(t, "to be run again", ledger.Retry("flush") == nil, true)
	})
}

// slowLedger needs a while for every job in a request.
type slowLedger struct{ *jobtest.Ledger }

func (l slowLedger) ResumeStates(ctx context.Context, jobs []string) (map[string]job.ResumeState, error) {
	select {
	case <-time.After(time.Duration(len(jobs)) * time.Millisecond):
		return l.Ledger.ResumeStates(ctx, jobs)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestVeryManyJobsAreAskedAboutInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := make([]job.Job, 0, 2500)
		for i := range cap(jobs) {
			j := every(t, "flush", "1m", nothing)
			j.Name += string(rune('a'+i%26)) + time.Duration(i).String()
			jobs = append(jobs, j)
		}
		ledger := jobtest.NewLedger("me")
		n := lead(t, slowLedger{ledger}, jobs...)
		after(70 * time.Second)
		want(t, "starts", len(ledger.Granted()), len(jobs))
		n.end()
	})
}
