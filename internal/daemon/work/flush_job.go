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

// nothingCame is how long a flush without slots rests after a wake-up that found no work. Without this rest, false wake-ups could keep the
// flush busy.
const nothingCame = 100 * time.Millisecond

// flushJob is a flush task in one term. It flushes under the term's fencing token.
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
	running atomic.Int32 // the number of the job's runs in progress
	noted   atomic.Int64 // the last reported value of runTotals.waits
	fresh   atomic.Int64 // all changes before this time, in ns, have been flushed, as far as is known; 0: unknown
	flushed atomic.Int64 // like fresh, but only for runs, which read everything from their source
}

// run flushes once. If the job has no slots, it flushes until the term ends.
func (f *flushJob) run(ctx context.Context, r job.Run) (job.Result, error) {
	end := f.Begin()
	defer end()
	f.running.Add(1)
	defer f.running.Add(-1)
	if err := f.stores.Away(f.store()); err != nil {
		return job.Result{}, &storehealth.Error{Store: f.store(), Err: err} // a run that waits would use a place that other jobs need
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
	f.elected.Epoch(f.term.Epoch()) // the takeover of a fence may have raised the epoch
	return err
}

// noteWaits reports how many rows of the table wait until an operator accepts them as rows of the job. It does so only if this number has
// changed.
func (f *flushJob) noteWaits(ctx context.Context) {
	waits := f.done.waits.Load()
	if waits == 0 || waits == f.noted.Load() {
		return
	}
	f.metrics.FlushUnaccepted(f.Config.Name, waits-1)
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if f.ledger.NoteUnaccepted(ctx, f.Config.Name, waits-1) == nil { // otherwise it is reported after the next run
		f.noted.Store(waits)
	}
}

// ran records that all changes from before the time in the argument at are flushed. A run that began at this time has flushed them.
func (f *flushJob) ran(at time.Time) {
	latest(&f.flushed, at)
	latest(&f.fresh, at)
}

// latest stores the time at in the argument of, in nanoseconds. If of already contains a later time, it stays unchanged.
func latest(of *atomic.Int64, at time.Time) {
	for ns := at.UnixNano(); ; {
		if old := of.Load(); old >= ns || of.CompareAndSwap(old, ns) {
			return
		}
	}
}

// hasFlushed reports whether a run has flushed all changes from before the time in the argument at.
func (f *flushJob) hasFlushed(at time.Time) bool { return f.flushed.Load() >= at.UnixNano() }

// flushWithin limits how long await waits for a run. If the job is due later, await does not wait at all.
const flushWithin = 2 * time.Minute

// await waits until a run has written everything that existed at the time in the argument since. It returns false if no run will do so
// soon. If the job has no slots but waits for work, await starts a run. await calls the function alive repeatedly while it waits.
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

// judge translates an error of a flush into an error of package job: ErrNotLeader ends the term, and a PauseError pauses the job.
func (f *flushJob) judge(err error) error {
	switch {
	case errors.Is(err, elector.ErrEpoch):
		return err // this node leads, but the fence has an epoch that no term can follow
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

// store returns the name of the store that the job reads.
func (f *flushJob) store() string { return f.Config.Flush.From.Store }

// measure updates the gauges of the job, and returns how far the job's table is behind Redis. The result ok is false if that is unknown.
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
		latest(&f.fresh, began) // it rests until there is work, so new changes have not waited since the last work
	}
	return f.behind(backlog, began), true
}

// showBehind sets the gauges that show how far a flush is behind. For a job whose changes only a run can find, it sets no backlog, because
// the value 0 would mean that there are no changes.
func showBehind(m *metrics.Metrics, t Task, backlog int64, lag time.Duration) {
	if !t.Countable() {
		m.FlushAge(t.Config.Name, lag)
		return
	}
	m.FlushBehind(t.Config.Name, backlog, lag)
}

// behind sets the gauges of the job from a backlog that was counted at the time in the argument at.
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
