package daemon

import (
	"context"
	"errors"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/redisledger"
	"baton/internal/status"
)

// JobPause is what the pause or the resumption of a job, or of all, came to.
type JobPause struct {
	Job    string    `json:"job,omitzero"` // "": all
	Reason string    `json:"reason,omitzero"`
	Until  time.Time `json:"until,omitzero"` // when the pause ends by itself
	// Was is the pause that there was before; null if there was none.
	Was *status.Pause `json:"was"`
	// Still is the pause that goes on: that of all jobs, where one job was resumed.
	Still *status.Pause `json:"still,omitempty"`
}

// PauseJob has nobody run a job, or with "" any job, until ResumeJob, or until a time if
// that is not zero, whoever leads.
func (r *Remote) PauseJob(ctx context.Context, name, reason string, until time.Time) (JobPause, error) {
	done, _, err := r.pauseJob(ctx, name, func(ctx context.Context, l *redisledger.Ledger) (*redisledger.JobPause, error) {
		return l.Pause(ctx, name, reason, until)
	})
	done.Reason, done.Until = reason, until
	return done, err
}

// ResumeJob ends the pause of a job, or with "" the one of all. Neither ends the other. by
// is for the log of a node that is asked: Redis keeps nothing of a pause that is over.
func (r *Remote) ResumeJob(ctx context.Context, name, _ string) (JobPause, error) {
	done, views, err := r.pauseJob(ctx, name, func(ctx context.Context, l *redisledger.Ledger) (*redisledger.JobPause, error) {
		return l.Resume(ctx, name)
	})
	if err != nil || name == "" {
		return done, err
	}
	if s, err := views[0].state(ctx, name); err == nil {
		done.Still = jobPauseOf(s.Paused)
	}
	return done, nil
}

// pauseJob does something to the pause of a job, or to that of all in every election
// that has jobs.
func (r *Remote) pauseJob(ctx context.Context, name string, do func(context.Context, *redisledger.Ledger) (*redisledger.JobPause, error)) (JobPause, []view, error) {
	views := r.views()
	if name != "" {
		v, err := r.under(name)
		if err != nil {
			return JobPause{}, nil, err
		}
		views = []view{v}
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	done := JobPause{Job: name}
	var problems []error
	for _, v := range views {
		was, err := do(ctx, v.ledger)
		if err != nil {
			problems = append(problems, err)
		}
		if was != nil {
			done.Was = jobPauseOf(was)
		}
	}
	return done, views, errors.Join(problems...)
}
