package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/redisledger"
)

// JobCancelled is what the cancellation of runs came to.
type JobCancelled struct {
	Job  string   `json:"job"`
	Runs []string `json:"runs"` // that were told to end
	// Retry is the attempt that will not be made; 0: none was to come.
	Retry int `json:"retry,omitzero"`
}

// Nothing reports whether there was nothing to cancel.
func (c JobCancelled) Nothing() bool { return len(c.Runs) == 0 && c.Retry == 0 }

// CancelJob has the leader end a run of a job, and with "" for its ID all of them and
// what waits or is to be tried again. It returns when they have been told; they have not
// ended yet. It is refused if nobody leads ([ErrNoLeader]) or the job is unknown ([ErrNoJob]):
// not configured, and without a run that goes on.
func (r *Remote) CancelJob(ctx context.Context, name, runID, by string) (JobCancelled, error) {
	v, err := r.under(name)
	if errors.Is(err, ErrNoJob) {
		v, err = r.underWhichRuns(ctx, name, err)
	}
	if err != nil {
		return JobCancelled{}, err
	}
	leader, err := v.leads(ctx)
	if err != nil {
		return JobCancelled{}, err
	}
	id, err := site.NewID()
	if err != nil {
		return JobCancelled{}, err
	}
	order := redisledger.Cancel{Job: name, ID: id, RunID: runID, By: by}
	ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	if err := v.ledger.OrderCancel(ask, order, askFor); err != nil {
		return JobCancelled{}, err
	}
	return v.awaitCancelled(ctx, order, leader)
}

// underWhichRuns finds a run of a job that the configuration no longer has.
func (r *Remote) underWhichRuns(ctx context.Context, name string, unknown error) (view, error) {
	for _, v := range r.views() {
		if s, err := v.state(ctx, name); err == nil && len(s.Running) > 0 {
			return v, nil
		}
	}
	return view{}, unknown
}

// awaitCancelled waits until an order is answered, or takes it back.
func (v view) awaitCancelled(ctx context.Context, order redisledger.Cancel, leader string) (JobCancelled, error) {
	deadline := time.Now().Add(askFor)
	for wait := glance; ; wait = min(2*wait, watchEvery) {
		s, err := v.state(ctx, order.Job)
		if answer := s.Cancelled; err == nil && answer.ID == order.ID {
			done := JobCancelled{Job: order.Job, Runs: answer.Runs, Retry: answer.Retry}
			if answer.Error != "" {
				return done, errors.New(answer.Error)
			}
			return done, nil
		}
		if ctx.Err() == nil && time.Now().Before(deadline) {
			_ = rest(ctx, wait)
			continue
		}
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CommandTimeout)
		withdrawn, failed := v.ledger.WithdrawCancel(back, order)
		cancel()
		switch {
		case failed != nil || !withdrawn:
			return JobCancelled{}, fmt.Errorf("it is not known what of job %q was cancelled; baton job show %s tells what runs: %w", order.Job, order.Job, errors.Join(err, failed, ctx.Err()))
		case ctx.Err() != nil:
			return JobCancelled{}, fmt.Errorf("taken back before anything was cancelled: %w", ctx.Err())
		}
		return JobCancelled{}, fmt.Errorf("%s has not taken the order within %v, so it was taken back: it may be on its way out, or cut off from redis; see baton status", leader, askFor)
	}
}
