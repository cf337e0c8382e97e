package work

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"baton/internal/alert"
	"baton/internal/daemon/storehealth"
	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
	"baton/internal/status/metrics"
	"baton/internal/trace"
)

// nothingCame is how long a flush without slots rests after it was woken for work and found none: a false wake-up must not keep it busy.
const nothingCame = 100 * time.Millisecond

// flushJob is a task in one term: it flushes under the term's fencing token.
type flushJob struct {
	Task
	term    *elector.Term
	metrics *metrics.Metrics
	elected *metrics.Election
	notes   *alert.Notifications
	ledger  *redisledger.Ledger
	watch   *Watch
	stores  *storehealth.Health
	traces  *trace.Tracer
	running atomic.Int32 // runs of it
	noted   atomic.Int64 // tally.waits, as it was reported
	fresh   atomic.Int64 // everything before this time, in ns, has been flushed, as far as is known; 0: unknown
	flushed atomic.Int64 // the same by a run, which reads everything from its source
}

// run flushes once; or until the term ends, if that is the job's schedule.
func (f *flushJob) run(ctx context.Context, r job.Run) (job.Result, error) {
	end := f.Begin()
	defer end()
	f.running.Add(1)
	defer f.running.Add(-1)
	if err := f.stores.Away(f.store()); err != nil {
		return job.Result{}, &storehealth.Error{Store: f.store(), Err: err} // to wait would take a place from other jobs
	}
	f.done.reset()
	f.traceBatches(r)
	stop := f.report(ctx, r)
	defer stop()
	err := f.once(ctx, r)
	for err == nil && schedule.IsAlways(f.Schedule) {
		if err = f.pipeline.Wait(ctx); err != nil {
			break
		}
		before := f.done.batches.Load()
		if err = f.once(ctx, r); err == nil && f.done.batches.Load() == before {
			err = Rest(ctx, nothingCame)
		}
	}
	f.measure(ctx)
	return job.Result{Rows: f.done.rows.Load(), Deleted: f.done.deleted.Load(), Dead: f.done.dead.Load()}, f.judge(err)
}

func (f *flushJob) once(ctx context.Context, r job.Run) error {
	began := time.Now()
	traced := f.traceRound(ctx, r)
	_, err := f.pipeline.Run(ctx, f.term)
	traced(err)
	f.noteWaits(ctx)
	if err == nil {
		f.ran(began)
		f.done.flushes.Add(1)
	}
	f.elected.Epoch(f.term.Epoch()) // taking over a fence may have raised it
	return err
}

// noteWaits reports how many rows wait to be accepted as the job's, if that has changed.
func (f *flushJob) noteWaits(ctx context.Context) {
	waits := f.done.waits.Load()
	if waits == 0 || waits == f.noted.Load() {
		return
	}
	f.metrics.FlushUnaccepted(f.Config.Name, waits-1)
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if f.ledger.NoteUnaccepted(ctx, f.Config.Name, waits-1) == nil { // otherwise after the next run
		f.noted.Store(waits)
	}
}

// ran notes that a run which began at that time has flushed everything older.
func (f *flushJob) ran(at time.Time) {
	latest(&f.flushed, at)
	latest(&f.fresh, at)
}

// latest moves a time, in ns, forwards only.
func latest(of *atomic.Int64, at time.Time) {
	for ns := at.UnixNano(); ; {
		if old := of.Load(); old >= ns || of.CompareAndSwap(old, ns) {
			return
		}
	}
}

// hasFlushed reports whether everything older has been flushed by a run.
func (f *flushJob) hasFlushed(at time.Time) bool { return f.flushed.Load() >= at.UnixNano() }

// flushWithin is the longest wait for a run; await does not wait for a job that is due later.
const flushWithin = 2 * time.Minute

// await waits until a run has written everything that was there at a time; false: no run will soon. A job that waits for work begins a
// run for it. It calls alive again and again meanwhile.
func (f *flushJob) await(ctx context.Context, since time.Time, alive func(context.Context) error) (bool, error) {
	within := flushWithin
	if schedule.IsAlways(f.Schedule) {
		f.pipeline.Wake()
	} else {
		next := f.Next(time.Now())
		if next.IsZero() || time.Until(next) > flushWithin/2 {
			return false, nil
		}
		within = min(time.Until(next)+10*time.Second+2*schedule.Interval(f.Schedule), flushWithin)
	}
	const often = 20 * time.Millisecond
	for end := time.Now().Add(within); time.Now().Before(end); {
		if f.hasFlushed(since) {
			return true, nil
		}
		if err := Rest(ctx, often); err != nil {
			return false, err
		}
		if err := alive(ctx); err != nil {
			return false, err
		}
	}
	return false, nil
}

// judge translates an error of a flush into its meaning for the term and the job, for the runner.
func (f *flushJob) judge(err error) error {
	switch {
	case errors.Is(err, elector.ErrEpoch):
		return err // we lead; the fence has an epoch that no term can follow
	case errors.Is(err, flush.ErrFenced):
		f.metrics.FlushFenced(f.Config.Name)
		return fmt.Errorf("%w: %w", job.ErrNotLeader, err)
	case errors.Is(err, flush.ErrTooManyDead), errors.Is(err, flush.ErrGap), errors.Is(err, flush.ErrEmptied):
		return &job.PauseError{Err: err}
	}
	if vanished, ok := errors.AsType[*flush.TooManyVanishedError](err); ok && vanished.Again {
		return &job.PauseError{Err: err}
	}
	return f.stores.Blame(f.store(), err)
}

// store is the name of the store that the job reads.
func (f *flushJob) store() string { return f.Config.Flush.From.Store }

// measure updates the gauges of the job, and returns how far it is behind; ok is false if that is unknown.
func (f *flushJob) measure(ctx context.Context) (level redisledger.Level, ok bool) {
	if f.stores.Away(f.store()) != nil {
		return level, false
	}
	began := time.Now()
	backlog, err := f.Backlog(ctx)
	uncounted, ok := errors.AsType[*flush.UncountedError](err)
	if ok && uncounted.ByRun {
		return f.behind(0, began), true
	}
	if ok {
		f.watch.uncounted(f.Task)
		f.metrics.FlushUncounted(f.Config.Name)
	}
	if err != nil {
		return level, false
	}
	if backlog == 0 && f.Countable() && schedule.IsAlways(f.Schedule) {
		latest(&f.fresh, began) // it rests until there is work: new changes have not waited since the last work
	}
	return f.behind(backlog, began), true
}

// showBehind sets the gauges of a flush. Where only a run finds the changes, a backlog of zero would claim that there are none.
func showBehind(m *metrics.Metrics, t Task, backlog int64, lag time.Duration) {
	if !t.Countable() {
		m.FlushAge(t.Config.Name, lag)
		return
	}
	m.FlushBehind(t.Config.Name, backlog, lag)
}

// behind sets the gauges of the job to a backlog counted at a time.
func (f *flushJob) behind(backlog int64, at time.Time) redisledger.Level {
	var fresh time.Time
	if ns := f.fresh.Load(); ns > 0 {
		fresh = time.Unix(0, ns)
	}
	lag := f.watch.measured(f.Task, backlog, fresh, at)
	showBehind(f.metrics, f.Task, backlog, lag)
	f.notes.Lagged(f.Config.Name, lag)
	return redisledger.Level{Lag: lag, Backlog: backlog, Rows: f.done.written.Load()}
}
