package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/job"
	"baton/internal/redisledger"
	"baton/internal/status"
)

// WatchRun calls show with a run as it stands, again and again until it has ended, and
// returns it as it ended. While Redis is away it goes on trying. [ErrRunLost] if the run
// will not end any more, since its leader has gone without telling of it.
func (r *Remote) WatchRun(ctx context.Context, name, id string, show func(JobRun)) (JobRun, error) {
	v, err := r.under(name)
	if err != nil {
		return JobRun{}, err
	}
	var lost time.Time // since when the run has no leader
	const often = 3    // a run that was queued may begin between two looks
	for unknown := 0; ; {
		run, refused, err := v.findRun(ctx, name, id, latest)
		switch {
		case ctx.Err() != nil:
			return JobRun{}, ctx.Err()
		case err != nil: // it will be back
		case refused != "": // it was queued
			return JobRun{}, errors.New(refused)
		case run == nil && v.queued(ctx, redisledger.Request{ID: id}):
			show(JobRun{Job: name, Run: status.Run{ID: id, State: stateQueued}, Queued: true})
			unknown = 0
		case run == nil && unknown < often:
			unknown++
		case run == nil:
			return JobRun{}, fmt.Errorf("run %s of job %q: %w: the history does not know it; redis may have lost its data", id, name, ErrRunLost)
		case run.State != string(job.StateRunning):
			return JobRun{Job: name, Run: *run}, nil
		default:
			show(JobRun{Job: name, Run: *run})
			if err := v.watchLeader(ctx, *run, &lost); err != nil {
				return JobRun{}, fmt.Errorf("run %s of job %q: %w", id, name, err)
			}
		}
		_ = rest(ctx, watchEvery)
	}
}

// runNow is how a run stands, also one that waits for another.
func (r *Remote) runNow(ctx context.Context, name, id string) (JobRun, error) {
	v, err := r.under(name)
	if err != nil {
		return JobRun{}, err
	}
	run, refused, err := v.findRun(ctx, name, id, latest)
	if run == nil && refused == "" && err == nil {
		if v.queued(ctx, redisledger.Request{ID: id}) {
			return JobRun{Job: name, Run: status.Run{ID: id, State: stateQueued}, Queued: true}, nil
		}
		run, refused, err = v.findRun(ctx, name, id, searched)
	}
	switch {
	case err != nil:
		return JobRun{}, err
	case refused != "":
		return JobRun{}, &status.Coded{Code: "run_refused", Kind: status.ErrRefused, Err: errors.New(refused)}
	case run == nil:
		return JobRun{}, fmt.Errorf("%w: the history of job %q does not know run %s", ErrNoRun, name, id)
	}
	now := JobRun{Job: name, Run: *run}
	if run.State == string(job.StateRunning) {
		p, err := v.picture(ctx)
		now.Leaderless = err == nil && p.Owner != run.Owner
	}
	return now, nil
}

// watchLeader gives a run up for lost when its leader has not led for a while.
func (v view) watchLeader(ctx context.Context, run status.Run, since *time.Time) error {
	p, err := v.picture(ctx)
	if err != nil {
		return nil //nolint:nilerr // redis will be back
	}
	switch {
	case p.Owner == run.Owner:
		*since = time.Time{}
	case since.IsZero():
		*since = time.Now()
	case time.Since(*since) > lostAfter:
		return fmt.Errorf("%w: %s ran it and no longer leads; what it had committed is in the database, and the next run does the rest", ErrRunLost, run.NodeID)
	}
	return nil
}

// Ended reports whether an error of WatchRun means that only the watching has ended.
func Ended(err error) bool { return errors.Is(err, context.Canceled) }
