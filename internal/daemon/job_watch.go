package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/job"
	"baton/internal/operate"
	"baton/internal/redisledger"
	"baton/internal/status"
)

// WatchRun calls show with a run as it stands, again and again until it has ended, and
// returns it as it ended. While what it asks is away it goes on trying. [ErrRunLost] if the
// run will not end any more, since its leader has gone without telling of it.
func WatchRun(ctx context.Context, runs Runs, name, id string, show func(JobRun)) (JobRun, error) {
	var lost time.Time // since when the run has no leader
	const often = 3    // a run that was queued may begin between two looks
	for unknown := 0; ; {
		run, err := runs.Run(ctx, name, id)
		switch {
		case ctx.Err() != nil:
			return JobRun{}, ctx.Err()
		case errors.Is(err, ErrNoRun) && unknown < often:
			unknown++
		case errors.Is(err, ErrNoRun):
			return JobRun{}, fmt.Errorf("run %s of job %q: %w: the history does not know it; redis may have lost its data", id, name, ErrRunLost)
		case final(err):
			return JobRun{}, err
		case err != nil: // it will be back
		case !run.Queued && run.Run.State != string(job.StateRunning):
			return run, nil
		default:
			unknown = 0
			show(run)
			switch {
			case !run.Leaderless:
				lost = time.Time{}
			case lost.IsZero():
				lost = time.Now()
			case time.Since(lost) > lostAfter:
				return JobRun{}, fmt.Errorf("run %s of job %q: %w: %s ran it and no longer leads; what it had committed is in the database, and the next run does the rest", id, name, ErrRunLost, run.Run.NodeID)
			}
		}
		_ = rest(ctx, watchEvery)
	}
}

// final reports whether the same question would get the same error again.
func final(err error) bool {
	var answer *problem
	var coded *operate.Coded
	return errors.As(err, &answer) && !answer.away || errors.As(err, &coded) || errors.Is(err, ErrNoJob)
}

// Run is how a run stands, also one that waits for another. Without an ID it is the one that
// goes on, or else the last one.
func (r *Remote) Run(ctx context.Context, name, id string) (JobRun, error) {
	v, err := r.under(name)
	if err != nil {
		return JobRun{}, err
	}
	if id == "" {
		if id, err = v.lastRun(ctx, name); err != nil {
			return JobRun{}, err
		}
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
		return JobRun{}, &operate.Coded{Code: "run_refused", Kind: operate.ErrRefused, Err: errors.New(refused)}
	case run == nil:
		return JobRun{}, noRun(name, id)
	}
	now := JobRun{Job: name, Run: *run}
	if run.State == string(job.StateRunning) {
		p, err := v.picture(ctx)
		now.Leaderless = err == nil && p.Owner != run.Owner
	}
	return now, nil
}

// lastRun is the run that goes on, or else the last one.
func (v view) lastRun(ctx context.Context, name string) (id string, err error) {
	s, err := v.state(ctx, name)
	if err != nil {
		return "", err
	}
	j := status.Job{}
	fillJob(&j, s)
	return lastRunOf(name, j)
}

func lastRunOf(name string, j Job) (id string, err error) {
	switch {
	case j.Running != nil:
		return j.Running.ID, nil
	case j.LastRun != nil:
		return j.LastRun.ID, nil
	}
	return "", fmt.Errorf("job %q has not run yet", name)
}

// noRun says where runs are listed. It is an ErrNoRun.
func noRun(name, id string) error {
	return fmt.Errorf("%w: the history of job %q knows no run %s; baton job show %s lists the runs", ErrNoRun, name, id, name)
}

// Ended reports whether an error of WatchRun means that only the watching has ended.
func Ended(err error) bool { return errors.Is(err, context.Canceled) }
