package job_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/plan"
)

// during disturbs calls of one kind between two times from now.
func during(op jobtest.Op, from, to time.Duration, fault jobtest.Fault) func(jobtest.Op, job.Run) jobtest.Fault {
	begin, end := time.Now().Add(from), time.Now().Add(to)
	return func(called jobtest.Op, _ job.Run) jobtest.Fault {
		if now := time.Now(); called == op && !now.Before(begin) && now.Before(end) {
			return fault
		}
		return jobtest.Fault{}
	}
}

func TestSlotThatWasStartedElsewhereIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("flush", time.Now().Add(12*time.Second)) // claimed by a leader whose clock was ahead
		n := lead(t, ledger, every(t, "flush", "5s", nothing))
		after(16 * time.Second)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{15})
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

func TestLedgerAheadOfTheClockIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("flush", time.Now().Add(time.Hour))
		n := lead(t, ledger, every(t, "flush", "5s", nothing))
		n.end()
		want(t, "warnings", n.logs.FilterMessageSnippet("in the future by this node's clock").Len(), 1)
	})
}

func TestTermEndsWhenTheLedgerSaysNotLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		long := func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return job.Result{}, ctx.Err()
		}
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, every(t, "long", "5s", long), every(t, "flush", "8s", nothing))
		after(6 * time.Second)
		ledger.SetOwner("somebody else")
		after(2 * time.Second)
		if err := <-n.result; !errors.Is(err, job.ErrNotLeader) {
			t.Errorf("Run: got %v, want %v", err, job.ErrNotLeader)
		}
		if !errors.Is(cause, job.ErrNotLeader) {
			t.Errorf("cause for the other run: got %v", cause)
		}
		want(t, "starts", n.starts("flush"), []float64{})
		want(t, "state of the other run", n.records()[0].State, job.StateCancelled)
		want(t, "error of the other run, told once", n.records()[0].Error,
			`claim a slot of job "flush": claim: job: this node no longer leads`)
	})
}

func TestTermEndsWhenTheWorkMeetsANewerLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fenced := func(context.Context, job.Run) (job.Result, error) {
			return job.Result{}, fmt.Errorf("fenced by epoch 43: %w", job.ErrNotLeader)
		}
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "5s", fenced))
		after(6 * time.Second)
		if err := <-n.result; !errors.Is(err, job.ErrNotLeader) {
			t.Errorf("Run: got %v, want %v", err, job.ErrNotLeader)
		}
		want(t, "state", n.records()[0].State, job.StateFailed)
	})
}

func TestSlotSurvivesAShortOutageOfTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []jobtest.Fault{{Lost: true}, {Lost: true, Delay: time.Hour}, {ReplyLost: true}} {
			ledger := jobtest.NewLedger("me")
			ledger.Disturb = during(jobtest.OpClaim, 0, 62*time.Second, fault)
			n := lead(t, ledger, every(t, "report", "1m", nothing))
			after(70 * time.Second)
			n.end()
			want(t, "starts", len(n.starts("report")), 1)
			want(t, "missed", n.misses(), map[job.Reason]int{})
		}
	})
}

func TestSlotWhoseClaimGotNoAnswerIsNeverRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Forgetful = true // the ledger does not know that the second claim comes from the same run
		ledger.Disturb = during(jobtest.OpClaim, 0, 61*time.Second, jobtest.Fault{ReplyLost: true})
		n := lead(t, ledger, every(t, "report", "1m", nothing))
		after(70 * time.Second)
		n.end()
		want(t, "granted", len(ledger.Granted()), 1)
		want(t, "starts", n.starts("report"), []float64{})
		// The history contains the slot once, and this node reports it once.
		want(t, "missed", n.misses(), map[job.Reason]int{})
		for _, ended := range [][]job.Record{n.records(), ledger.Records()} {
			if len(ended) != 1 || ended[0].State != job.StateLost {
				t.Errorf("runs that ended: got %+v, want one that was lost", ended)
			}
		}
	})
}

func TestSlotsOfAnOutageAreMissedAndTheNextOneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 4*time.Second, 22*time.Second, jobtest.Fault{Lost: true, Delay: time.Hour})
		n := lead(t, ledger, every(t, "flush", "5s", nothing))
		after(26 * time.Second)
		n.end()
		want(t, "starts", n.starts("flush"), []float64{20, 25}) // the claim of 20 was repeated until 22
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonLedger: 3})
		want(t, "warnings", n.logs.FilterMessage("slots were not run").FilterLevelExact(zapcore.WarnLevel).Len(), 1)
	})
}

func TestALossIsOneLineForTheSlotsOfAllJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 4*time.Second, 22*time.Second, jobtest.Fault{Lost: true, Delay: time.Hour})
		const jobs = 16
		var all []job.Job
		for i := range jobs {
			all = append(all, every(t, fmt.Sprint("flush-", i), "5s", nothing))
		}
		n := lead(t, ledger, all...)
		after(26 * time.Second)
		n.end()
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonLedger: 3 * jobs})
		lines := n.logs.FilterMessage("slots were not run").FilterLevelExact(zapcore.WarnLevel).All() // the other lines say the same again
		if len(lines) != 1 {
			t.Fatalf("%d lines: %v", len(lines), lines)
		}
		if f := lines[0].ContextMap(); f["all_jobs"] != int64(jobs) || f["slots"] != int64(jobs) || f["reason"] != "ledger" {
			t.Errorf("told %v", f)
		}
	})
}

func TestClaimIsNotAskedForBeyondTheStartingDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 0, 70*time.Second, jobtest.Fault{Lost: true})
		j := every(t, "report", "1m", nothing)
		j.StartingDeadline = 5 * time.Second
		n := lead(t, ledger, j)
		after(80 * time.Second)
		n.end()
		want(t, "starts", n.starts("report"), []float64{})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonLedger: 1})
	})
}

func TestHangingClaimHoldsUpNoOtherJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = claimsOf("stuck", jobtest.Fault{Lost: true, Delay: time.Hour})
		n := lead(t, ledger, every(t, "stuck", "1s", nothing), every(t, "flush", "1s", nothing))
		after(4500 * time.Millisecond)
		want(t, "starts", n.starts("flush"), []float64{1, 2, 3, 4})
		want(t, "time to step down", n.end(), 0)
	})
}

func claimsOf(name string, fault jobtest.Fault) func(jobtest.Op, job.Run) jobtest.Fault {
	return func(op jobtest.Op, r job.Run) jobtest.Fault {
		if op == jobtest.OpClaim && r.Job == name {
			return fault
		}
		return jobtest.Fault{}
	}
}

// afterClaim is a ledger that does something after it has granted a claim, before the caller receives the answer.
type afterClaim struct {
	job.Ledger
	do func()
}

func (a afterClaim) Claim(ctx context.Context, r job.Run) error {
	err := a.Ledger.Claim(ctx, r)
	a.do()
	return err
}

func TestSlotClaimedAsTheTermEndsIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		var leading atomic.Pointer[node]
		n := lead(t, afterClaim{ledger, func() { leading.Load().stop(errSteppedDown) }}, every(t, "flush", "5s", nothing))
		leading.Store(n)
		after(6 * time.Second)
		n.end()
		want(t, "granted", len(ledger.Granted()), 1)
		want(t, "starts", n.starts("flush"), []float64{})
		want(t, "state", ledger.Records()[0].State, job.StateCancelled)
		want(t, "error", ledger.Records()[0].Error, "not started: stepped down")
	})
}

func TestEndOfARunIsRecordedOnceAfterTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpFinish, 0, 5500*time.Millisecond, jobtest.Fault{ReplyLost: true})
		n := lead(t, ledger, every(t, "flush", "5s", nothing))
		after(6 * time.Second)
		n.end()
		want(t, "records", len(ledger.Records()), 1)
		want(t, "warnings", n.logs.FilterLevelExact(zapcore.WarnLevel).Len(), 0)
	})
}

func TestHangingRecordHoldsUpSteppingDownForItsTimeoutOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpFinish, 0, time.Hour, jobtest.Fault{Lost: true, Delay: time.Hour})
		n := lead(t, ledger, every(t, "flush", "5s", takes(time.Minute)))
		after(6 * time.Second)
		want(t, "time to step down", n.end(), time.Second)
		want(t, "told", n.logs.FilterMessageSnippet("cannot record a run's result").Len(), 1)
	})
}

func TestTermCatchesUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy plan.CatchUp
		limit  time.Duration // starting deadline
		last   time.Duration // before the start of the term; 0: no last slot is known
		runs   []float64     // slots until 65 s later
		missed map[job.Reason]int
	}{
		{"OnTheLatestSlot", plan.CatchUpLatest, 0, 10 * time.Minute, []float64{-5, 55}, map[job.Reason]int{job.ReasonNoLeader: 9}},
		{"OnNothingThatWasRun", plan.CatchUpLatest, 0, 5 * time.Second, []float64{55}, map[job.Reason]int{}},
		{
			"OnNothingBeyondTheDeadline", plan.CatchUpLatest, 3 * time.Second, 2 * time.Minute,
			[]float64{55}, map[job.Reason]int{job.ReasonNoLeader: 2},
		},
		{"OnNothingIfNotAskedTo", plan.CatchUpNone, 0, 2 * time.Minute, []float64{55}, map[job.Reason]int{job.ReasonNoLeader: 2}},
		{"OnNothingIfTheLedgerKnowsNothing", plan.CatchUpLatest, 0, 0, []float64{55}, map[job.Reason]int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(5 * time.Second)
				ledger := jobtest.NewLedger("me")
				if c.last > 0 {
					ledger.SetLast("report", time.Now().Add(-c.last))
				}
				j := every(t, "report", "1m", nothing)
				j.CatchUp, j.StartingDeadline = c.policy, c.limit
				n := lead(t, ledger, j)
				after(65 * time.Second)
				n.end()
				want(t, "runs", n.starts("report"), c.runs)
				want(t, "missed", n.misses(), c.missed)
				if len(c.runs) == 2 {
					want(t, "trigger", n.records()[0].Trigger, job.TriggerCatchUp)
				}
			})
		})
	}
}

func TestTermCatchesUpWhenTheLedgerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * time.Second)
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("early", time.Now().Add(-2*time.Minute))
		ledger.SetLast("late", time.Now().Add(-2*time.Minute))
		ledger.Disturb = during(jobtest.OpResumeStates, 0, 20*time.Second, jobtest.Fault{Lost: true})
		early, late := every(t, "early", "10s", nothing), every(t, "late", "1m", nothing)
		early.CatchUp, late.CatchUp = plan.CatchUpLatest, plan.CatchUpLatest
		n := lead(t, ledger, early, late)
		after(24 * time.Second)
		n.end()
		// The slots of this term have waited, because the first would have barred all earlier slots.
		want(t, "starts of the one", n.starts("early"), []float64{15})
		want(t, "starts of the other", n.starts("late"), []float64{-5})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonNoLeader: 13, job.ReasonLedger: 1})
		want(t, "warnings", n.logs.FilterMessageSnippet("cannot read the last slots").Len(), 1)
	})
}

func TestCatchUpDoesNotGoBehindASlotOfThisTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(9500 * time.Millisecond)
		ledger := jobtest.NewLedger("me")
		ledger.SetLast("report", time.Now().Add(-40*time.Second))
		begin := time.Now()
		ledger.Disturb = func(op jobtest.Op, _ job.Run) jobtest.Fault {
			passed := time.Since(begin)
			return jobtest.Fault{Lost: op == jobtest.OpResumeStates && passed < 600*time.Millisecond ||
				op == jobtest.OpClaim && passed < 3*time.Second}
		}
		j := every(t, "report", "10s", nothing)
		j.CatchUp = plan.CatchUpLatest
		n := lead(t, ledger, j)
		after(5 * time.Second)
		n.end()
		want(t, "starts", n.starts("report"), []float64{0.5})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonNoLeader: 4})
	})
}

func TestEverySlotBehindASlowClaimIsAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 0, time.Hour, jobtest.Fault{Delay: 700 * time.Millisecond})
		n := lead(t, ledger, every(t, "flush", "500ms", takes(750*time.Millisecond)))
		after(5900 * time.Millisecond) // the claim of 5 is answered at 5.7, so 5.5 was behind a run
		n.end()
		want(t, "starts", n.starts("flush"), []float64{0.5, 2, 3.5, 5})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 7})
	})
}

func TestEverySlotBehindAHangingClaimIsAccountedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpClaim, 0, 3*time.Second, jobtest.Fault{Lost: true, Delay: time.Hour})
		n := lead(t, ledger, every(t, "flush", "300ms", nothing))
		after(6100 * time.Millisecond) // the slots from 0.3 to 6.0
		n.end()
		started, missed := len(n.starts("flush")), n.misses()[job.ReasonLedger]
		want(t, "started and missed", started+missed, 20)
		if missed < 8 {
			t.Errorf("missed %d slots in 3 s of an outage", missed)
		}
	})
}

func TestLogTellsTroubleOnceAndItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := func(_ context.Context, r job.Run) (job.Result, error) {
			if r.Slot.Sub(bubbleStart()) <= 30*time.Second {
				return job.Result{}, errors.New("database is away")
			}
			return job.Result{}, nil
		}
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "5s", broken))
		after(42 * time.Second)
		n.end()
		loud := n.logs.Filter(func(e observer.LoggedEntry) bool { return e.Level > zapcore.DebugLevel }).All()
		if len(loud) != 2 || loud[0].Message != "the run failed" || loud[1].Message != "the job succeeds again" {
			t.Fatalf("loud lines: got %v", loud)
		}
		fields := loud[1].ContextMap()
		want(t, "failures", fields["failures"], any(int64(6)))
		for _, key := range []string{"node_id", "epoch", "job", "run_id", "attempt"} {
			if _, ok := fields[key]; !ok {
				t.Errorf("the line lacks %q: %v", key, fields)
			}
		}
	})
}

func TestLogRepeatsTroubleThatLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := func(context.Context, job.Run) (job.Result, error) {
			return job.Result{}, errors.New("database is away")
		}
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "5s", broken))
		after(182 * time.Second)
		n.end()
		want(t, "warnings", n.logs.FilterLevelExact(zapcore.WarnLevel).Len(), 3)
	})
}
