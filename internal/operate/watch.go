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
	// StateQueued is the state of a run that waits until another run ends.
	StateQueued = "queued"
	// watchEvery is how often WatchRun reads the state of a run.
	watchEvery = 200 * time.Millisecond
	// lostAfter is how long a run may have no leader before it counts as lost. The time is needed because a leader whose term has ended
	// still records how its runs ended, if it can.
	lostAfter = 5 * time.Second
)

// WatchRun calls the function show with the state of a run repeatedly until the run has ended, and returns the last state. It retries while
// the node or the server does not answer. [ErrRunLost] means that the end of the run will never be known, because the leader of the run has
// gone without recording the end.
func WatchRun(ctx context.Context, runs Operator, name, id string, show func(JobRun)) (JobRun, error) {
	var lost time.Time // the time since which the run has no leader
	const often = 3    // a queued run may begin between two reads
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
		case err != nil: // the server will answer again later
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

// final reports whether a repeated request would get the same error.
func final(err error) bool {
	var answer *problem
	var coded *Coded
	return errors.As(err, &answer) && !answer.away || errors.As(err, &coded) || errors.Is(err, ErrNoJob)
}

// Ended reports whether an error of WatchRun means that the caller's watching was ended, and not the run.
func Ended(err error) bool { return errors.Is(err, context.Canceled) }

// closest is the maximum distance between a name and a similar existing name, in letters. mostNames is the maximum number of names in an
// error.
const closest, mostNames = 2, 10

// NoJob returns an [ErrNoJob] that names existing jobs.
func NoJob(name string, have []string) error {
	if len(have) == 0 {
		return fmt.Errorf("%w: %q: the configuration has no jobs; is --config right?", ErrNoJob, name)
	}
	if like := alike(name, have); len(like) > 0 {
		return fmt.Errorf("%w: %q: did you mean %s?", ErrNoJob, name, text.Names(like, mostNames))
	}
	return fmt.Errorf("%w: %q: the configuration has %s: see baton job list", ErrNoJob, name, text.Names(have, mostNames))
}

// alike returns the names that contain name, or else the names with the smallest distance to name.
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

// JobOf returns the state of one job.
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

// LastRun returns the id of a job's run in progress, or else the id of its last run.
func LastRun(j diagnose.Job) (id string, err error) {
	switch {
	case j.Running != nil:
		return j.Running.ID, nil
	case j.LastRun != nil:
		return j.LastRun.ID, nil
	}
	return "", fmt.Errorf("job %q has not run yet", j.Name)
}

// Runs returns the last n finished runs of a job, the newest run first.
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

// Vacant returns the key of the job's lock. If no node leads under this lock, it also returns the reason.
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

// WatchOperation calls the function show with the state of a verification or backfill repeatedly until the operation has ended, and returns
// the last state. It retries while no node leads, and while the node or the server does not answer.
func WatchOperation(ctx context.Context, o Operator, name, id string, show func(diagnose.Operation)) (diagnose.Operation, error) {
	for {
		j, err := JobOf(ctx, o, name)
		now := j.Operation
		switch {
		case ctx.Err() != nil:
			return diagnose.Operation{}, ctx.Err()
		case final(err):
			return diagnose.Operation{}, err
		case err != nil || now == nil || now.ID != id: // the operation has not begun yet, or the server will answer again later
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
