package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/job"
	"baton/internal/redisstore"

	"go.uber.org/zap"
)

// orders is how a leader learns what operators ask of its jobs.
type orders struct {
	log    *zap.Logger
	ledger *redisstore.Ledger
	runner *job.Runner
	always []string // jobs whose runs only a pause ends
}

// takeOrders carries out what operators ask of the jobs until ctx ends: at once upon a
// hint, and in any case every so often.
func takeOrders(ctx context.Context, log *zap.Logger, ledger *redisstore.Ledger, runner *job.Runner, jobs []job.Job, every time.Duration) {
	if len(jobs) == 0 {
		return
	}
	o := orders{log: log, ledger: ledger, runner: runner}
	for _, j := range jobs {
		if job.IsAlways(j.Schedule) {
			o.always = append(o.always, j.Name)
		}
	}
	ledger.Watch(ctx, every, func() { o.look(ctx) })
}

// look reads all orders and carries them out. What fails is done at the next look: the
// orders stay where they are until they are answered.
func (o orders) look(ctx context.Context) {
	given, err := o.ledger.Orders(ctx, o.always)
	if err != nil {
		o.log.Debug("cannot read what is asked of the jobs", zap.Error(err))
		return
	}
	for name, reason := range given.Paused {
		_ = o.runner.Paused(ctx, name, reason) // the term ends, or the job is gone
	}
	for _, r := range given.Requests {
		o.start(ctx, r)
	}
}

// passing is how long a manual run waits for a run that goes on: of a job that is due
// every second and takes a moment nobody shall be told that it is running already.
const passing = time.Second

// start starts a manual run, or says why not.
func (o orders) start(ctx context.Context, r redisstore.Request) {
	log := o.log.With(zap.String("job", r.Job), zap.String("run_id", r.ID), zap.String("by", r.By))
	err := o.runner.RunNow(ctx, job.Manual{Job: r.Job, ID: r.ID, By: r.By})
	for until := time.Now().Add(passing); errors.Is(err, job.ErrRunning) && !slices.Contains(o.always, r.Job) && time.Now().Before(until); {
		_ = rest(ctx, passing/20)
		err = o.runner.RunNow(ctx, job.Manual{Job: r.Job, ID: r.ID, By: r.By})
	}
	switch {
	case err == nil:
		log.Info("a run was asked for")
		return
	case errors.Is(err, job.ErrNotLeader) || ctx.Err() != nil:
		return // the next leader sees it
	case errors.Is(err, job.ErrUnknown):
		err = fmt.Errorf("the leader has no job %q in its configuration: is it older than yours? See baton status", r.Job)
	case errors.Is(err, job.ErrRunning):
		err = o.running(r.Job)
	}
	log.Info("a run was asked for, and is refused", zap.Error(err))
	if _, err := o.ledger.Refuse(ctx, r, err.Error()); err != nil {
		log.Debug("cannot refuse a run", zap.Error(err))
	}
}

// running says which run is in the way of another.
func (o orders) running(name string) error {
	for _, a := range o.runner.Running() {
		if a.Job == name {
			return fmt.Errorf("job %q is running already: run %s, for %v now", name, a.ID, brief(time.Since(a.Started)))
		}
	}
	return fmt.Errorf("job %q is running already", name)
}
