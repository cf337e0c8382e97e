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
)

// nothingCame is how long a flush that goes on and on rests if there was work, and then
// it was none: what it waits for may be false, and must not keep it busy.
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
	running atomic.Int32 // runs of it
	fresh   atomic.Int64 // what was there before, in ms, has been flushed; 0: not known
}

// run flushes once; or until the term ends, if that is the job's schedule.
func (f *flushJob) run(ctx context.Context, r job.Run) (job.Result, error) {
	end := f.Begin()
	defer end()
	f.running.Add(1)
	defer f.running.Add(-1)
	if err := f.stores.Away(f.store()); err != nil {
		return job.Result{}, &storehealth.Error{Store: f.store(), Err: err} // without waiting for it, which would take a place from others
	}
	f.done.reset()
	stop := f.report(ctx, r)
	defer stop()
	err := f.once(ctx)
	for err == nil && schedule.IsAlways(f.Schedule) {
		if err = f.pipeline.Wait(ctx); err != nil {
			break
		}
		before := f.done.batches.Load()
		if err = f.once(ctx); err == nil && f.done.batches.Load() == before {
			err = Rest(ctx, nothingCame)
		}
	}
	f.measure(ctx)
	return job.Result{Rows: f.done.rows.Load(), Dead: f.done.dead.Load()}, f.judge(err)
}

func (f *flushJob) once(ctx context.Context) error {
	began := time.Now()
	_, err := f.pipeline.Run(ctx, f.term)
	if err == nil {
		f.freshen(began) // everything older has been flushed
		f.done.flushes.Add(1)
	}
	f.elected.Epoch(f.term.Epoch()) // taking over a fence may have raised it
	return err
}

// freshen notes that what was there at a time has been flushed.
func (f *flushJob) freshen(at time.Time) {
	for ms := at.UnixMilli(); ; {
		if old := f.fresh.Load(); old >= ms || f.fresh.CompareAndSwap(old, ms) {
			return
		}
	}
}

// judge translates an error of a flush for the runner: what it means to the term and to the job.
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

// store is the name of the store that it reads.
func (f *flushJob) store() string { return f.Config.Flush.From.Store }

// measure brings the gauges of the job up to date, and returns how far it is behind; ok is
// false if that is not known.
func (f *flushJob) measure(ctx context.Context) (level redisledger.Level, ok bool) {
	if f.stores.Away(f.store()) != nil {
		return level, false
	}
	began := time.Now()
	backlog, err := f.Backlog(ctx)
	if err != nil {
		return level, false
	}
	if backlog == 0 && f.Countable() && schedule.IsAlways(f.Schedule) {
		f.freshen(began) // it rests until there is work: what comes now has not waited since the last work
	}
	return f.behind(backlog, began), true
}

// behind sets the gauges of the job to a backlog that was counted at a time.
func (f *flushJob) behind(backlog int64, at time.Time) redisledger.Level {
	var fresh time.Time
	if ms := f.fresh.Load(); ms > 0 {
		fresh = time.UnixMilli(ms)
	}
	lag := f.watch.measured(f.Task, backlog, fresh, at)
	f.metrics.FlushBehind(f.Config.Name, backlog, lag)
	f.notes.Lagged(f.Config.Name, lag)
	return redisledger.Level{Lag: lag, Backlog: backlog}
}
