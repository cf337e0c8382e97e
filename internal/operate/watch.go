package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

const (
	stateRunning = "running"
	// StateQueued is the state of a run that waits for another one to end.
	StateQueued = "queued"
	// watchEvery is how often WatchRun reads the state of a run.
	watchEvery = 200 * time.Millisecond
	// lostAfter is how long a run may have no leader before it is given up for lost: the
	// leader of a term that has ended records how its runs ended, if it can.
	lostAfter = 5 * time.Second
)

// WatchRun calls show with the state of a run, again and again until the run has ended, and returns its last state. It goes on trying
// while the node or the server is away. [ErrRunLost] means that the run will never end, since its leader has gone without recording it.
func WatchRun(ctx context.Context, runs Operator, name, id string, show func(JobRun)) (JobRun, error) {
	var lost time.Time // since when the run has no leader
	const often = 3    // a run that was queued may begin between two readings
	for unknown := 0; ; {
		run, err := runs.Run(ctx, name, id)
		switch {
		case ctx.Err() != nil:
			return JobRun{}, ctx.Err()
		case errors.Is(err, ErrNoRun) && unknown < often:
			unknown++
		case errors.Is(err, ErrNoRun):
			return JobRun{}, fmt.Errorf("%w: it is not in the history; redis may have lost its data", lostRun(name, id))
		case final(err):
			return JobRun{}, err
		case err != nil: // it will be back
		case !run.Queued && run.Run.State != stateRunning:
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
				const rest = "its commits are in the database, and the next run does the rest"
				return JobRun{}, fmt.Errorf("%w: %s ran it and no longer leads; %s", lostRun(name, id), run.Run.NodeID, rest)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
}

// final reports whether the same question would get the same error again.
func final(err error) bool {
	var answer *problem
	var coded *Coded
	return errors.As(err, &answer) && !answer.away || errors.As(err, &coded) || errors.Is(err, ErrNoJob)
}

// Ended reports whether an error of WatchRun means that only the watching has ended.
func Ended(err error) bool { return errors.Is(err, context.Canceled) }

// closest is how many letters a name may be away from one that there is; mostNames is how many an error lists.
const closest, mostNames = 2, 10

// NoJob says which jobs there are instead. It is an [ErrNoJob].
func NoJob(name string, have []string) error {
	if len(have) == 0 {
		return fmt.Errorf("%w: %q: the configuration has no jobs; is --config right?", ErrNoJob, name)
	}
	if like := alike(name, have); len(like) > 0 {
		return fmt.Errorf("%w: %q: did you mean %s?", ErrNoJob, name, text.Names(like, mostNames))
	}
	return fmt.Errorf("%w: %q: the configuration has %s: see baton job list", ErrNoJob, name, text.Names(have, mostNames))
}

// alike are the names that contain name, or else those that are the fewest letters away from it.
func alike(name string, have []string) (like []string) {
	least := closest
	for _, one := range have {
		away := text.Edits(one, name)
		if strings.Contains(one, name) {
			away = 0
		}
		switch {
		case len(name) <= closest || away > least:
		case away < least:
			least, like = away, []string{one}
		default:
			like = append(like, one)
		}
	}
	return like
}

// JobOf is how one job stands.
func JobOf(ctx context.Context, o Operator, name string) (diagnose.Job, error) {
	s, err := o.Snapshot(ctx)
	if err != nil {
		return diagnose.Job{}, err
	}
	at := slices.IndexFunc(s.Jobs, func(j diagnose.Job) bool { return j.Name == name })
	if at < 0 {
		return diagnose.Job{}, NoJob(name, names(s.Jobs))
	}
	return s.Jobs[at], nil
}

// LastRun is the id of the run of a job that goes on, or else of the last one.
func LastRun(j diagnose.Job) (id string, err error) {
	switch {
	case j.Running != nil:
		return j.Running.ID, nil
	case j.LastRun != nil:
		return j.LastRun.ID, nil
	}
	return "", fmt.Errorf("job %q has not run yet", j.Name)
}

// Runs are the last n finished runs of a job, the newest first.
func Runs(ctx context.Context, a Answers, job string, n int) (runs []diagnose.Run, err error) {
	for before := ""; ; {
		entries, err := a.History(ctx, job, before, n)
		for _, e := range entries {
			if e.Run != nil && len(runs) < n {
				runs = append(runs, *e.Run)
			}
		}
		if err != nil || len(runs) == n || len(entries) < n {
			return runs, err
		}
		before = entries[n-1].ID
	}
}

// Vacant is why no node leads the election that a job runs under, as far as there is a
// reason, and the key of its lock.
func Vacant(ctx context.Context, o Operator, job string) (lockKey, why string) {
	s, err := o.Election(ctx)
	if err != nil {
		return s.LockKey, ""
	}
	for _, j := range o.Configured(ctx) {
		for _, l := range s.Locks {
			if j.Name == job && j.Lock == l.Key {
				return l.Key, l.Vacancy
			}
		}
	}
	return s.LockKey, s.Vacancy
}

func lostRun(name, id string) error { return fmt.Errorf("run %s of job %q: %w", id, name, ErrRunLost) }

// WatchOperation calls show with the state of a verification or backfill until that is over, and returns its last state. It goes on
// trying while no node leads, or the node or the server is away.
func WatchOperation(ctx context.Context, o Operator, name, id string, show func(diagnose.Operation)) (diagnose.Operation, error) {
	for {
		j, err := JobOf(ctx, o, name)
		now := j.Operation
		switch {
		case ctx.Err() != nil:
			return diagnose.Operation{}, ctx.Err()
		case final(err):
			return diagnose.Operation{}, err
		case err != nil || now == nil || now.ID != id: // it has not begun yet, or the server will be back
		case now.State != stateRunning:
			return *now, nil
		default:
			show(*now)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchEvery):
		}
	}
}
