package job_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"baton/internal/job"
	"baton/internal/job/jobtest"
	"baton/internal/job/schedule"
)

var errSteppedDown = errors.New("stepped down")

// bubbleStart is when the clock of a bubble starts.
func bubbleStart() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// node is a Runner in a bubble, with everything that the Runner has reported.
type node struct {
	*job.Runner
	t     testing.TB
	logs  *observer.ObservedLogs
	start time.Time
	owner string

	stop   context.CancelCauseFunc
	result chan error

	mu      sync.Mutex
	ids     int
	started []job.Run
	ended   []job.Record
	missed  []job.Missed
}

// lead starts a term of a new node. The owner of its lock is "me".
func lead(t testing.TB, ledger job.Ledger, jobs ...job.Job) *node {
	t.Helper()
	return leadAs(t, ledger, "me", job.Workload{Jobs: jobs}, nil)
}

// leadAs starts a term of a new node with any owner and any clock. No node has led before.
func leadAs(t testing.TB, ledger job.Ledger, owner string, w job.Workload, clock func() time.Time) *node {
	t.Helper()
	return leadSince(t, ledger, owner, w, clock, bubbleStart().AddDate(-100, 0, 0))
}

// leadSince starts a term before which no node has led since a given time.
func leadSince(t testing.TB, ledger job.Ledger, owner string, w job.Workload, clock func() time.Time, freeSince time.Time) *node {
	t.Helper()
	return leadWith(t, ledger, owner, w, job.Config{Clock: clock}, freeSince)
}

// leadWith starts a term with additional settings.
func leadWith(t testing.TB, ledger job.Ledger, owner string, w job.Workload, cfg job.Config, freeSince time.Time) *node {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	n := &node{t: t, logs: logs, owner: owner, start: time.Now(), result: make(chan error, 1)}
	cfg.Logger = zap.New(core)
	cfg.OnStart = func(r job.Run) { n.note(func() { n.started = append(n.started, r) }) }
	cfg.OnFinish = func(r job.Record) { n.note(func() { n.ended = append(n.ended, r) }) }
	cfg.OnMissed = func(m job.Missed) { n.note(func() { n.missed = append(n.missed, m) }) }
	n.Runner = job.NewRunner(ledger, n.newID, cfg)
	ctx, stop := context.WithCancelCause(context.Background())
	n.stop = stop
	go func() {
		n.result <- n.Run(ctx, job.Term{NodeID: "db1", Owner: owner, Epoch: 42, FreeSince: freeSince}, w)
	}()
	synctest.Wait()
	return n
}

func (n *node) newID() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids++
	if n.owner != "me" {
		return fmt.Sprintf("%s-%d", n.owner, n.ids), nil
	}
	return fmt.Sprintf("run-%d", n.ids), nil
}

func (n *node) note(add func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	add()
}

// end steps down and returns how long this took.
func (n *node) end() time.Duration {
	n.t.Helper()
	began := time.Now()
	n.stop(errSteppedDown)
	if err := <-n.result; err != nil {
		n.t.Errorf("Run after stepping down: got %v, want nil", err)
	}
	return time.Since(began)
}

// starts returns the slots that were started, in seconds from the start of the term.
func (n *node) starts(name string) []float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := []float64{}
	for _, r := range n.started {
		if r.Job == name {
			list = append(list, r.Slot.Sub(n.start).Seconds())
		}
	}
	return list
}

// misses sums the missed slots by reason.
func (n *node) misses() map[job.Reason]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := map[job.Reason]int{}
	for _, m := range n.missed {
		if m.Count > 0 {
			sum[m.Reason] += m.Count
		}
	}
	return sum
}

func (n *node) records() []job.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.ended)
}

func after(d time.Duration) {
	time.Sleep(d) // of the bubble's time
	synctest.Wait()
}

func every(t testing.TB, name, interval string, work job.Func) job.Job {
	t.Helper()
	s, err := schedule.Parse("@every "+interval, nil)
	if err != nil {
		t.Fatal(err)
	}
	return job.Job{Name: name, Schedule: s, Run: work}
}

func nothing(context.Context, job.Run) (job.Result, error) { return job.Result{Rows: 3}, nil }

// takes returns work that lasts d, and returns earlier if its context ends.
func takes(d time.Duration) job.Func {
	return func(ctx context.Context, _ job.Run) (job.Result, error) {
		select {
		case <-time.After(d):
			return job.Result{}, nil
		case <-ctx.Done():
			return job.Result{}, ctx.Err()
		}
	}
}

func want[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestSlotsStartAtTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * time.Second) // so that terms do not begin at a slot
		var delays []time.Duration
		work := func(_ context.Context, r job.Run) (job.Result, error) {
			delays = append(delays, time.Since(r.Slot))
			return job.Result{Rows: 3}, nil
		}
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, every(t, "flush", "5s", work), every(t, "report", "1m", nothing))
		if next, ok := n.Next("report"); !ok || !next.Equal(n.start.Add(58*time.Second)) {
			t.Errorf("next slot of report: got %v, %v", next, ok)
		}
		after(20 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{3, 8, 13, 18})
		want(t, "start delays", delays, []time.Duration{0, 0, 0, 0})
		n.end()

		first := ledger.Records()[0]
		want(t, "the record", first, job.Record{
			Run: job.Run{ID: "run-1", Job: "flush", Slot: first.Slot, Trigger: job.TriggerSchedule, Attempt: 1,
				Term: job.Term{NodeID: "db1", Owner: "me", Epoch: 42}},
			State: job.StateSucceeded, Started: first.Slot, Finished: first.Slot, Result: job.Result{Rows: 3},
		})
		if _, ok := n.Next("report"); ok {
			t.Error("a term that has ended still has a next slot")
		}
	})
}

func TestOverlappingSlotIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "5s", takes(12*time.Second)))
		after(31 * time.Second)
		want(t, "starts", n.starts("flush"), []float64{5, 20})
		want(t, "missed", n.misses(), map[job.Reason]int{job.ReasonOverlap: 4})
		active := n.Running()
		if len(active) != 1 || active[0].Job != "flush" || !active[0].Started.Equal(n.start.Add(20*time.Second)) {
			t.Errorf("running: got %v", active)
		}
		n.end()
		if active = n.Running(); len(active) != 0 {
			t.Errorf("running after the term: got %v", active)
		}
	})
}

func TestRunThatTakesTooLongTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		j := every(t, "flush", "5s", func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return job.Result{}, fmt.Errorf("write batch: %w", ctx.Err())
		})
		j.Timeout = 2 * time.Second
		n := lead(t, jobtest.NewLedger("me"), j)
		after(8 * time.Second)
		n.end()
		rec := n.records()[0]
		want(t, "state", rec.State, job.StateTimedOut)
		want(t, "error", rec.Error, "timed out after 2s: write batch: context deadline exceeded")
		want(t, "duration", rec.Finished.Sub(rec.Started), 2*time.Second)
		if !errors.Is(cause, job.ErrTimeout) {
			t.Errorf("cause: got %v, want %v", cause, job.ErrTimeout)
		}
	})
}

func explode(context.Context, job.Run) (job.Result, error) { panic("out of cheese") }

func TestPanicIsAFailedRunWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "bad", "5s", explode), every(t, "good", "5s", nothing))
		after(11 * time.Second)
		want(t, "starts of the bad job", n.starts("bad"), []float64{5, 10})
		want(t, "starts of the good job", n.starts("good"), []float64{5, 10})
		n.end()
		for _, rec := range n.records() {
			if rec.Job != "bad" {
				continue
			}
			lines := strings.Split(rec.Error, "\n")
			if rec.State != job.StateFailed || lines[0] != "panic: out of cheese" || !strings.Contains(lines[1], "explode") {
				t.Errorf("record of a panic: got %s, %q", rec.State, rec.Error)
			}
		}
	})
}

func TestPanicOfARunThatWasToldToStopIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := every(t, "flush", "5s", func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			panic("while cleaning up")
		})
		j.Timeout = time.Second
		n := lead(t, jobtest.NewLedger("me"), j)
		after(7 * time.Second)
		n.end()
		want(t, "state", n.records()[0].State, job.StateFailed)
	})
}

func TestEndOfTermCancelsRunsAndWaitsForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, _ job.Run) (job.Result, error) {
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			return job.Result{}, errors.New("rolled back")
		}
		ledger := jobtest.NewLedger("me")
		n := lead(t, ledger, every(t, "slow", "5s", slow), every(t, "quick", "1s", nothing))
		after(5500 * time.Millisecond)
		ledger.SetOwner("the next leader's") // the end is still recorded
		want(t, "time to step down", n.end(), 3*time.Second)
		want(t, "starts while draining", n.starts("quick"), []float64{1, 2, 3, 4, 5})
		records := ledger.Records()
		last := records[len(records)-1]
		want(t, "state", last.State, job.StateCancelled)
		want(t, "error", last.Error, "stepped down: rolled back")
		want(t, "warnings", n.logs.FilterMessageSnippet("waiting for these runs").Len(), 1)
	})
}

func TestACancelledRunSaysOnceWhyItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			said func(cause error) error
			want string
		}{
			{func(cause error) error { return cause }, "stepped down"},
			{func(cause error) error { return fmt.Errorf("%w: at row 3", cause) }, "stepped down: at row 3"},
			{func(cause error) error { return fmt.Errorf("read: %w", cause) }, "stepped down: read: stepped down"},
			{func(error) error { return errors.New("stepped down the stairs") }, "stepped down: stepped down the stairs"},
		} {
			work := func(ctx context.Context, _ job.Run) (job.Result, error) {
				<-ctx.Done()
				return job.Result{}, c.said(context.Cause(ctx))
			}
			n := lead(t, jobtest.NewLedger("me"), every(t, "slow", "5s", work))
			after(5500 * time.Millisecond)
			n.end()
			want(t, "error", n.records()[0].Error, c.want)
		}
	})
}

func TestWorkThatIsDoneCountsEvenIfTheTermEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn := func(context.Context, job.Run) (job.Result, error) {
			time.Sleep(3 * time.Second)
			return job.Result{Rows: 9}, nil
		}
		n := lead(t, jobtest.NewLedger("me"), every(t, "flush", "5s", stubborn))
		after(6 * time.Second)
		n.end()
		want(t, "state", n.records()[0].State, job.StateSucceeded)
	})
}

func TestIdleNodeStepsDownAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := lead(t, jobtest.NewLedger("me"), every(t, "report", "1h", nothing))
		after(time.Minute)
		if got := n.SinceProgress(); got > 10*time.Second {
			t.Errorf("the loop last went round %v ago", got)
		}
		want(t, "time to step down", n.end(), 0)
		want(t, "progress between terms", n.SinceProgress(), 0)
	})
}

func TestIdleJobsHaveNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		jobs := make([]job.Job, 500)
		for i := range jobs {
			jobs[i] = every(t, fmt.Sprint("job", i), "1h", nothing)
		}
		n := lead(t, jobtest.NewLedger("me"), jobs...)
		if more := runtime.NumGoroutine() - before; more > 10 {
			t.Errorf("500 idle jobs have %d goroutines", more)
		}
		n.end()
	})
}

func TestJobsThatCannotBeToldApartAreRefused(t *testing.T) {
	r := job.NewRunner(jobtest.NewLedger("me"), nil, job.Config{})
	twice := every(t, "flush", "5s", nothing)
	for _, c := range []struct {
		jobs []job.Job
		want string
	}{
		{[]job.Job{twice, twice}, `duplicate job "flush"`},
		{[]job.Job{{Name: "flush"}}, "are required"},
	} {
		err := r.Run(t.Context(), job.Term{}, job.Workload{Jobs: c.jobs})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

func TestRunWithoutAnIDIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var missed []job.Missed
		r := job.NewRunner(jobtest.NewLedger("me"), func() (string, error) { return "", errors.New("no randomness") },
			job.Config{OnMissed: func(m job.Missed) {
				if m.Reason != job.ReasonUnknown {
					missed = append(missed, m)
				}
			}})
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()
		if err := r.Run(ctx, job.Term{Owner: "me"}, job.Workload{Jobs: []job.Job{every(t, "flush", "5s", nothing)}}); err != nil {
			t.Error(err)
		}
		if len(missed) != 1 || missed[0].Reason != job.ReasonLedger || !strings.Contains(missed[0].Err.Error(), "no randomness") {
			t.Errorf("missed: got %v", missed)
		}
	})
}
