package job_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/job"
	"baton/internal/job/jobtest"
)

var errStoreFull = errors.New("the store is full")

// storeTrouble counts attempts, and recognises one error that is not the fault of any job.
type storeTrouble struct{ failed, answered atomic.Int64 }

func (s *storeTrouble) config(logs *zap.Logger) job.Config {
	return job.Config{
		Logger: logs,
		OnAttempt: func(_ string, err error) {
			if errors.Is(err, errStoreFull) {
				s.failed.Add(1)
			} else if err == nil {
				s.answered.Add(1)
			}
		},
		Shared: func(err error) bool { return errors.Is(err, errStoreFull) },
	}
}

// ledgerWithout answers only with an error as long as it is full.
type ledgerWithout struct {
	job.Ledger
	full atomic.Bool
}

func (l *ledgerWithout) Claim(ctx context.Context, r job.Run) error {
	if l.full.Load() {
		return fmt.Errorf("claim: %w", errStoreFull)
	}
	return l.Ledger.Claim(ctx, r)
}

func (l *ledgerWithout) Finish(ctx context.Context, r job.Record) error {
	if l.full.Load() {
		return fmt.Errorf("finish: %w", errStoreFull)
	}
	return l.Ledger.Finish(ctx, r)
}

func (l *ledgerWithout) Miss(ctx context.Context, t job.Term, m job.Missed) error {
	if l.full.Load() {
		return fmt.Errorf("miss: %w", errStoreFull)
	}
	return l.Ledger.Miss(ctx, t, m)
}

// If an error keeps the ledger from recording anything, the receiver of the attempts reports the error once. The log has no line about
// this error for each job, but still has the lines about a job's own errors.
func TestTroubleOfTheLedgersStoreIsNotToldOfEachJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &ledgerWithout{Ledger: jobtest.NewLedger("me")}
		core, logs := observer.New(zapcore.InfoLevel)
		trouble := &storeTrouble{}
		var ids atomic.Int64
		r := job.NewRunner(ledger, func() (string, error) { return fmt.Sprint("run-", ids.Add(1)), nil }, trouble.config(zap.New(core)))
		full := func(context.Context, job.Run) (job.Result, error) {
			if ledger.full.Load() {
				return job.Result{}, fmt.Errorf("stage: %w", errStoreFull)
			}
			return job.Result{}, nil
		}
		own := func(context.Context, job.Run) (job.Result, error) {
			return job.Result{}, errors.New("table is missing")
		}
		var jobs []job.Job
		for i := range 10 {
			jobs = append(jobs, every(t, fmt.Sprint("flush", i), "5s", full))
		}
		jobs = append(jobs, every(t, "broken", "7s", own))
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx, job.Term{NodeID: "db1", Owner: "me", Epoch: 42}, job.Workload{Jobs: jobs}) }()
		after(12 * time.Second)
		ledger.full.Store(true)
		after(45 * time.Second)
		if trouble.failed.Load() < 10 {
			t.Errorf("told of %d attempts that failed", trouble.failed.Load())
		}
		before := trouble.answered.Load()
		ledger.full.Store(false)
		after(75 * time.Second)
		if trouble.answered.Load() <= before {
			t.Error("not told that the ledger answers again")
		}
		stop(errors.New("stepped down"))
		if err := <-ended; err != nil {
			t.Log(err)
		}
		for _, l := range logs.All() {
			if l.Message != "the run failed" || l.ContextMap()["job"] != "broken" {
				t.Errorf("%s %s %v", l.Level, l.Message, l.ContextMap())
			}
		}
		if logs.Len() == 0 {
			t.Error("what is a job's own failure is not told")
		}
	})
}

// The end of runs in progress cannot be recorded when the trouble begins. The slots that wait for these records are missed for the same
// reason.
func TestSlotsThatWaitForTheRecordOfARunAreNotToldOfEachJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := &ledgerWithout{Ledger: jobtest.NewLedger("me")}
		core, logs := observer.New(zapcore.InfoLevel)
		var ids atomic.Int64
		r := job.NewRunner(ledger, func() (string, error) { return fmt.Sprint("run-", ids.Add(1)), nil },
			(&storeTrouble{}).config(zap.New(core)))
		var jobs []job.Job
		for i := range 3 {
			jobs = append(jobs, every(t, fmt.Sprint("flush", i), "1s", func(context.Context, job.Run) (job.Result, error) {
				time.Sleep(300 * time.Millisecond)
				return job.Result{}, nil
			}))
		}
		ctx, stop := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx, job.Term{NodeID: "db1", Owner: "me", Epoch: 42}, job.Workload{Jobs: jobs}) }()
		after(1100 * time.Millisecond)
		ledger.full.Store(true)
		after(8 * time.Second)
		ledger.full.Store(false)
		after(5 * time.Second)
		stop(errors.New("stepped down"))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, l := range logs.FilterLevelExact(zapcore.WarnLevel).All() {
			t.Errorf("%s %v", l.Message, l.ContextMap())
		}
	})
}

// All runs that the end of a term ends are one log line, however many they are. The runs of a lost leader are also one log line.
func TestTheEndOfATermIsALineForAllItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		long := func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			time.Sleep(1500 * time.Millisecond)
			return job.Result{}, ctx.Err()
		}
		var jobs []job.Job
		for i := range 20 {
			jobs = append(jobs, every(t, fmt.Sprint("job", i), "5s", long))
		}
		n := lead(t, ledger, jobs...)
		after(6 * time.Second)
		n.end()
		told := map[string]int{}
		for _, l := range n.logs.Filter(func(l observer.LoggedEntry) bool { return l.Level > zapcore.DebugLevel }).All() {
			told[l.Message]++
			if f := l.ContextMap(); l.Message == "runs were cancelled because the term ended" &&
				(f["runs"] != int64(20) || f["all_jobs"] != int64(20) || len(f["jobs"].([]any)) != 10) {
				t.Errorf("%v", f)
			}
		}
		if len(told) != 2 || told["runs were cancelled because the term ended"] != 1 ||
			told["term ended; waiting for these runs to return"] != 1 {
			t.Errorf("lines: %v", told)
		}
	})
}

func TestRunsThatWereLostWithTheirLeaderAreALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("gone")
		var jobs []job.Job
		for i := range 20 {
			jobs = append(jobs, every(t, fmt.Sprint("job", i), "5s", nothing))
			if err := ledger.Claim(t.Context(), job.Run{ID: fmt.Sprint("lost-", i), Job: fmt.Sprint("job", i),
				Slot:    bubbleStart().Add(-5 * time.Second).Truncate(5 * time.Second),
				Trigger: job.TriggerSchedule, Attempt: 1, Term: job.Term{NodeID: "db9", Owner: "gone", Epoch: 41}}); err != nil {
				t.Fatal(err)
			}
		}
		ledger.SetOwner("me")
		n := lead(t, ledger, jobs...)
		after(4 * time.Second)
		n.end()
		lost := n.logs.FilterMessage("runs were lost with their leader").All()
		if len(lost) != 1 || lost[0].ContextMap()["runs"] != int64(20) {
			t.Errorf("%v", lost)
		}
	})
}
