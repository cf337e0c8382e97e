package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// Errors of commands about jobs, matched by errors.Is.
var (
	// ErrNoJob: the configuration has no such job.
	ErrNoJob = errors.New("no such job")
	// ErrRunLost: nobody can tell how a run ended.
	ErrRunLost = errors.New("nobody can tell how the run ended")
)

const (
	// askFor is how long a request for a manual run is good: a leader that comes later
	// shall not do what nobody expects any more.
	askFor = 15 * time.Second
	// watchEvery is how often a watched run is looked at.
	watchEvery = 200 * time.Millisecond
	// lostAfter is how long a run may have no leader before it is given up for lost: the
	// leader of a term that has ended tells how its runs ended, if it can.
	lostAfter = 5 * time.Second
	// searched is how many finished runs a run is looked for among.
	searched = 100
)

// JobRun is a run as those see it who have asked for it, or watch it.
type JobRun struct {
	Job string     `json:"job"`
	Run status.Run `json:"run"`
}

// Succeeded reports whether the run has ended well.
func (r JobRun) Succeeded() bool { return r.Run.State == string(job.StateSucceeded) }

// JobPause is what the pause or the resumption of a job came to.
type JobPause struct {
	Job    string `json:"job"`
	Reason string `json:"reason,omitzero"`
	// Was is the pause that there was before; null if there was none.
	Was *status.Pause `json:"was"`
}

// known refuses a job that the configuration does not have.
func (r *Remote) known(name string) error {
	var have []string
	for _, t := range r.tasks {
		if t.config.Name == name {
			return nil
		}
		have = append(have, t.config.Name)
	}
	if len(have) == 0 {
		return fmt.Errorf("%w: %q: the configuration has no jobs; is --config right?", ErrNoJob, name)
	}
	return fmt.Errorf("%w: %q: the configuration has %s", ErrNoJob, name, strings.Join(have, ", "))
}

// Job is how one job stands.
func (r *Remote) Job(ctx context.Context, name string) (status.Job, error) {
	if err := r.known(name); err != nil {
		return status.Job{}, err
	}
	s, err := r.Snapshot(ctx)
	if err != nil {
		return status.Job{}, err
	}
	i := slices.IndexFunc(s.Jobs, func(j status.Job) bool { return j.Name == name })
	return s.Jobs[i], nil
}

// JobRuns are the last n finished runs of a job, the newest first.
func (r *Remote) JobRuns(ctx context.Context, name string, n int) ([]status.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	records, err := r.ledger.Runs(ctx, name, n)
	runs := make([]status.Run, len(records))
	for i := range records {
		runs[i] = *runOf(&records[i])
	}
	return runs, err
}

// PauseJob has nobody run a job until ResumeJob, whoever leads.
func (r *Remote) PauseJob(ctx context.Context, name, reason string) (JobPause, error) {
	return r.pauseJob(ctx, name, reason, func(ctx context.Context) (*redisstore.JobPause, error) {
		return r.ledger.Pause(ctx, name, reason, time.Time{})
	})
}

// ResumeJob ends the pause of a job.
func (r *Remote) ResumeJob(ctx context.Context, name string) (JobPause, error) {
	return r.pauseJob(ctx, name, "", func(ctx context.Context) (*redisstore.JobPause, error) { return r.ledger.Resume(ctx, name) })
}

func (r *Remote) pauseJob(ctx context.Context, name, reason string, do func(context.Context) (*redisstore.JobPause, error)) (JobPause, error) {
	if err := r.known(name); err != nil {
		return JobPause{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	was, err := do(ctx)
	done := JobPause{Job: name, Reason: reason}
	if was != nil {
		done.Was = jobPauseOf(was)
	}
	return done, err
}

// RunJob has the leader run a job now, and returns when it has begun. It is refused if
// nobody leads ([ErrNoLeader]), or if the job is unknown ([ErrNoJob]), paused or
// running. Whatever happens to leaders meanwhile, the job is run once, or not at all.
func (r *Remote) RunJob(ctx context.Context, name, by string) (JobRun, error) {
	if err := r.known(name); err != nil {
		return JobRun{}, err
	}
	p, err := r.picture(ctx)
	switch {
	case err != nil:
		return JobRun{}, err
	case p.Owner == "":
		return JobRun{}, ErrNoLeader
	case p.Leader == "":
		return JobRun{}, fmt.Errorf("lock %q is held by a client that is not baton (owner %s): it runs no jobs", r.config.Election.LockKey, p.Owner)
	}
	id, err := newID()
	if err != nil {
		return JobRun{}, err
	}
	request := redisstore.Request{Job: name, ID: id, By: by}
	ask, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	switch err := r.ledger.Request(ask, request, askFor); {
	case errors.Is(err, job.ErrPaused):
		return JobRun{}, fmt.Errorf("job %q is paused%s; baton job resume %s ends that", name, strings.TrimPrefix(err.Error(), job.ErrPaused.Error()), name)
	case err != nil:
		return JobRun{}, err
	}
	return r.awaitStart(ctx, request, p.Leader)
}

// awaitStart waits until a request is answered, or takes it back.
func (r *Remote) awaitStart(ctx context.Context, request redisstore.Request, leader string) (JobRun, error) {
	deadline := time.Now().Add(askFor)
	for wait := glance; ; wait = min(2*wait, watchEvery) {
		rec, refused, err := r.findRun(ctx, request.Job, request.ID)
		switch {
		case err == nil && refused != "":
			return JobRun{}, errors.New(refused)
		case err == nil && rec != nil:
			return JobRun{Job: request.Job, Run: *rec}, nil
		}
		if ctx.Err() == nil && time.Now().Before(deadline) {
			_ = rest(ctx, wait)
			continue
		}
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
		withdrawn, failed := r.ledger.Withdraw(back, request)
		cancel()
		switch {
		case failed != nil:
			return JobRun{}, fmt.Errorf("run %s was asked for, and it is not known whether it began: %w", request.ID, errors.Join(err, failed))
		case !withdrawn:
			return JobRun{Job: request.Job, Run: status.Run{ID: request.ID, State: string(job.StateRunning)}}, ctx.Err()
		case ctx.Err() != nil:
			return JobRun{}, fmt.Errorf("taken back before it began: %w", ctx.Err())
		}
		return JobRun{}, fmt.Errorf("%s has not taken the request within %v, so it was taken back: it may be on its way out, or cut off from redis; see baton status", leader, askFor)
	}
}

// findRun looks for a run by its ID: among those that go on, and those that have ended.
// It is nil if there is none; then, maybe, the reason why it was refused.
func (r *Remote) findRun(ctx context.Context, name, id string) (run *status.Run, refused string, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	states, err := r.ledger.Jobs(ctx, []string{name})
	if err != nil {
		return nil, "", err
	}
	j := status.Job{}
	fillJob(&j, states[0])
	switch {
	case j.Running != nil && j.Running.ID == id:
		return j.Running, "", nil
	case j.LastRun != nil && j.LastRun.ID == id:
		return j.LastRun, "", nil
	case states[0].Refused.ID == id:
		return nil, states[0].Refused.Reason, nil
	case j.LastRun == nil:
		return nil, "", nil
	}
	runs, err := r.JobRuns(ctx, name, searched)
	for i := range runs {
		if runs[i].ID == id {
			return &runs[i], "", err
		}
	}
	return nil, "", err
}
