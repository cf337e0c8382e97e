package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/job"
	"baton/internal/redisledger"
	"baton/internal/status"
)

// RunJob has the leader run a job now, and returns when it has begun, or waits for
// another run as the job's overlap has it. It is refused if nobody leads ([ErrNoLeader]),
// or if the job is unknown ([ErrNoJob]), paused, or running where its overlap forbids
// that and force is not set. Whatever happens to leaders meanwhile, the job is run once,
// or not at all.
func (r *Remote) RunJob(ctx context.Context, name, by string, force bool) (JobRun, error) {
	v, err := r.under(name)
	if err != nil {
		return JobRun{}, err
	}
	leader, err := v.leads(ctx)
	if err != nil {
		return JobRun{}, err
	}
	id, err := site.NewID()
	if err != nil {
		return JobRun{}, err
	}
	request := redisledger.Request{Job: name, ID: id, By: by, Force: force}
	ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	switch err := v.ledger.Request(ask, request, askFor); {
	case errors.Is(err, job.ErrPaused):
		return JobRun{}, v.paused(ctx, name, err)
	case err != nil:
		return JobRun{}, err
	}
	return v.awaitStart(ctx, request, leader)
}

// paused says how the pause that refuses a run is ended.
func (v view) paused(ctx context.Context, name string, refusal error) error {
	which := name
	if s, err := v.state(ctx, name); err == nil && s.Paused != nil && s.Paused.All {
		which = "--all"
	}
	return fmt.Errorf("job %q is paused%s; baton job resume %s ends that", name, strings.TrimPrefix(refusal.Error(), job.ErrPaused.Error()), which)
}

// awaitStart waits until a request is answered, or takes it back.
func (v view) awaitStart(ctx context.Context, request redisledger.Request, leader string) (JobRun, error) {
	deadline := time.Now().Add(askFor)
	for wait := glance; ; wait = min(2*wait, watchEvery) {
		rec, refused, err := v.findRun(ctx, request.Job, request.ID, latest)
		switch {
		case err == nil && refused != "":
			return JobRun{}, errors.New(refused)
		case err == nil && rec != nil:
			return JobRun{Job: request.Job, Run: *rec}, nil
		case err == nil && v.queued(ctx, request):
			return JobRun{Job: request.Job, Run: status.Run{ID: request.ID, State: stateQueued, By: request.By, NodeID: leader}, Queued: true}, nil
		}
		if ctx.Err() == nil && time.Now().Before(deadline) {
			_ = rest(ctx, wait)
			continue
		}
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CommandTimeout)
		withdrawn, failed := v.ledger.Withdraw(back, request)
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

// stateQueued is a run that waits for another one to end.
const stateQueued = "queued"

// queued reports whether a request waits at the leader.
func (v view) queued(ctx context.Context, request redisledger.Request) bool {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	o, err := v.ledger.Orders(ctx, nil)
	return err == nil && slices.ContainsFunc(o.Requests, func(r redisledger.Request) bool { return r.ID == request.ID && r.Queued })
}

// findRun looks for a run by its ID: among those that go on, and the last entries of the
// history. It is nil if there is none; then, maybe, the reason why it was refused.
func (v view) findRun(ctx context.Context, name, id string, among int) (run *status.Run, refused string, err error) {
	s, err := v.state(ctx, name)
	if err != nil {
		return nil, "", err
	}
	j := status.Job{}
	fillJob(&j, s)
	for i := range j.Open {
		if j.Open[i].ID == id {
			return &j.Open[i], "", nil
		}
	}
	switch {
	case j.Running != nil && j.Running.ID == id:
		return j.Running, "", nil
	case s.Refused.ID == id:
		return nil, s.Refused.Reason, nil
	case j.LastRun == nil:
		return nil, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	rec, err := v.ledger.FindRun(ctx, name, id, among)
	switch {
	case rec != nil:
		return runOf(rec), "", nil // with its output, which the last result has not
	case j.LastRun.ID == id:
		return j.LastRun, "", err
	}
	return nil, "", err
}
