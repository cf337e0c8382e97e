package job_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/job"
	"baton/internal/job/jobtest"
)

func loud(e observer.LoggedEntry) bool { return e.Level > zapcore.DebugLevel }

func limited(most int, jobs ...job.Job) job.Workload {
	return job.Workload{Jobs: jobs, MaxConcurrent: most}
}

func TestRunsWaitForRoomTheLongestDueFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		w := limited(1, every(t, "a", "20s", takes(7*time.Second)), every(t, "b", "18s", takes(7*time.Second)),
			every(t, "c", "24s", takes(7*time.Second)), always(t, "loop", lasting))
		n := leadAs(t, ledger, "me", w, nil)
		after(35 * time.Second)
		want(t, "running", len(n.Running()), 2)
		order := []string{}
		for _, r := range ledger.Granted() {
			order = append(order, fmt.Sprint(r.Job, r.Slot.Sub(n.start).Seconds()))
		}
		want(t, "order", order, []string{"loop0", "b18", "a20", "c24"})
		n.end()
	})
}

func TestSlotThatFindsNoRoomGivesWayToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := limited(1, every(t, "long", "1m", takes(50*time.Second)), every(t, "flush", "15s", nothing))
		n := leadAs(t, jobtest.NewLedger("me"), "me", w, nil)
		after(111 * time.Second)
		n.end()
		starts := n.starts("flush")
		want(t, "the last start", starts[len(starts)-1], 105.0)
		want(t, "starts", starts[:3], []float64{15, 30, 45})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonConcurrency: 3})
	})
}

func TestSlotThatFindsNoRoomWithinItsDeadlineIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := every(t, "flush", "64s", nothing)
		j.StartingDeadline = 10 * time.Second
		n := leadAs(t, jobtest.NewLedger("me"), "me", limited(1, every(t, "long", "1m", takes(50*time.Second)), j), nil)
		after(75 * time.Second)
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonConcurrency: 1})
		after(40 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{})
		n.end()
	})
}

func TestManualRunWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := leadAs(t, ledger, "me", limited(1, every(t, "long", "1m", takes(50*time.Second)), every(t, "flush", "1h", nothing)), nil)
		after(70 * time.Second)
		answer := ask(t, ledger, n, "ask-1", true)
		want(t, "answered", len(answer), 0)
		after(41 * time.Second)
		want(t, "answer", <-answer, nil)
		n.end()
		want(t, "starts", len(n.starts("flush")), 1)
	})
}

func TestFailedClaimMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Pause("a", "by alice")
		n := leadAs(t, ledger, "me", limited(1, every(t, "a", "5s", nothing), every(t, "b", "5s", nothing)), nil)
		after(16 * time.Second)
		n.end()
		want(t, "starts", n.starts("b"), []float64{5, 10, 15})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonPaused: 3})
	})
}

func TestManyJobsAreNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		jobs := make([]job.Job, 2000)
		for i := range jobs {
			jobs[i] = every(t, fmt.Sprint("job", i), "1h", nothing)
		}
		n := leadAs(t, jobtest.NewLedger("me"), "me", limited(10, jobs...), nil)
		if more := runtime.NumGoroutine() - before; more > 12 {
			t.Errorf("2000 idle jobs have %d goroutines", more)
		}
		after(time.Hour) // all runs at once, ten at a time
		n.end()
		want(t, "runs", len(n.records()), 2000)
		want(t, "missed", n.misses(), map[job.Reason]int{})
	})
}

func TestMissesAreRecordedWhenTheLedgerComesBackAndJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpMiss, 6*time.Second, 10*time.Minute, jobtest.Fault{ReplyLost: true, Delay: time.Second})
		n := lead(t, ledger, every(t, "flush", "5s", takes(time.Hour)))
		after(9 * time.Minute)
		if got := len(ledger.Missed()); got != 2 {
			t.Errorf("%d on record while the ledger is away, want the mark and the first", got)
		}
		want(t, "told", n.misses(), map[job.Reason]int{job.ReasonOverlap: 107})
		after(2 * time.Minute)
		n.end()
		missed := ledger.Missed()
		want(t, "records", len(missed) < 40, true)
		sum, last := 0, n.start.Add(5*time.Second)
		for _, m := range missed[1:] {
			if !m.First.Equal(last.Add(5 * time.Second)) {
				t.Errorf("after %v comes %v", last, m.First)
			}
			sum, last = sum+m.Count, m.Slot
		}
		want(t, "slots", sum, n.misses()[job.ReasonOverlap])
	})
}

func TestEndOfTheTermWaitsForMissesForATimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		ledger.Disturb = during(jobtest.OpMiss, 6*time.Second, time.Hour, jobtest.Fault{Lost: true, Delay: time.Hour})
		n := lead(t, ledger, every(t, "flush", "5s", takes(time.Hour)))
		after(26 * time.Second)
		want(t, "time to step down", n.end(), time.Second)
		want(t, "told", n.logs.FilterMessageSnippet("term ended before all run results were recorded").Len(), 1)
	})
}

func TestAnEndOfTheTermThatTakesItsTimeIsRecordedInWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		slow := func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			after(900 * time.Millisecond)
			return job.Result{}, ctx.Err()
		}
		ledger.Disturb = during(jobtest.OpFinish, 0, time.Hour, jobtest.Fault{Lost: true, Delay: time.Hour})
		n := lead(t, ledger, every(t, "flush", "5s", slow))
		after(6 * time.Second)
		want(t, "time to step down", n.end(), 1150*time.Millisecond) // a quarter of a second is always left to report the end
	})
}

func TestTermEndsWhenAMissMeetsANewerLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, every(t, "flush", "5s", takes(time.Hour)))
		after(6 * time.Second)
		ledger.SetOwner("somebody else")
		after(5 * time.Second)
		if err := <-n.result; !errors.Is(err, job.ErrNotLeader) {
			t.Errorf("Run: got %v, want %v", err, job.ErrNotLeader)
		}
	})
}

func TestWorkThatEndsItsGoroutineIsAFailedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "5s", func(context.Context, job.Run) (job.Result, error) {
			runtime.Goexit()
			return job.Result{}, nil
		}))
		after(11 * time.Second)
		want(t, "running", len(n.Running()), 0)
		n.end()
		want(t, "states", n.states(), []job.State{job.StateFailed, job.StateFailed})
	})
}
