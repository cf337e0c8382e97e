package work

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/daemon/outage"
	"baton/internal/daemon/site"
	"baton/internal/daemon/storehealth"
	"baton/internal/job"
	"baton/internal/status/metrics"
	"baton/internal/trace"
)

// RunnerOptions configures the runner that starts the jobs under a lock.
type RunnerOptions struct {
	Drain   time.Duration
	Logger  *zap.Logger // has the node's name
	Metrics *metrics.Metrics
	Notes   *alert.Notifications
	Traces  *trace.Tracer // nil: no traces
	Clock   *Clock
	Outage  *outage.Outage       // of the Redis that has the ledger; nil: not watched
	Stores  *storehealth.Health  // errors of these stores do not count as errors of the Redis that has the ledger
	Hold    func() bool          // reports whether no run may begin now; nil: runs may always begin
	Idle    func() time.Duration // see job.Config
}

// NewRunner makes the runner that starts the jobs.
func NewRunner(ledger job.Ledger, o RunnerOptions) *job.Runner {
	return job.NewRunner(ledger, site.NewID, job.Config{
		Logger:        o.Logger.Named("job"),
		Clock:         o.Clock.Now,
		ClockSet:      o.Clock.WasSet(),
		CompareClocks: o.Clock.Compare,
		FinishTimeout: finishTimeout(o.Drain),
		OnStart:       func(r job.Run) { o.Metrics.JobStarted(r.Job, o.Clock.Now().Sub(r.Slot)) },
		OnFinish: func(r job.Record) {
			o.Metrics.JobFinished(r.Job, string(r.Trigger), string(r.State), r.Finished, r.Finished.Sub(r.Started))
			o.Notes.Finished(r)
			traceRun(o.Traces, r)
		},
		LogFields: func(r job.Run) []zap.Field {
			if of := trace.Of(r.ID); o.Traces.Sampled(of) {
				return []zap.Field{zap.String("trace_id", of.TraceID())}
			}
			return nil
		},
		Hold:   o.Hold,
		OnIdle: o.Idle,
		OnAttempt: func(name string, err error) {
			if e, ok := errors.AsType[*storehealth.Error](err); ok {
				o.Stores.Tried(name, e)
				return
			}
			o.Outage.Tried(name, err)
		},
		Shared: func(err error) bool {
			if e, ok := errors.AsType[*storehealth.Error](err); ok {
				return o.Stores.Explains(e)
			}
			return o.Outage.Explains(err) || errors.Is(err, job.ErrHeldBack) && o.Outage.Lasts()
		},
		OnMissed: func(m job.Missed) {
			o.Metrics.JobMissed(m.Job, string(m.Reason), m.Count)
			o.Notes.Missed(m)
		},
	})
}

// Rest waits for d, or until ctx ends.
func Rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// After returns a function that waits for d and then calls the function do, unless ctx ends first.
func After(ctx context.Context, d time.Duration, do func()) func() {
	return func() {
		if Rest(ctx, d) == nil {
			do()
		}
	}
}
