package direct

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/diagnose"
	"baton/internal/job"
	"baton/internal/operate"
	"baton/internal/redisledger"
)

// runJob makes the leader run a job now. It returns when the run has begun, or when the run waits for another run because of the job's
// overlap. It returns an error if no node leads, or if the job is unknown or paused. It also returns an error if the job is running, its
// overlap forbids a second run, and force is not set. The job runs at most once, even if the leader changes at the same time.
func runJob(ctx context.Context, l session, o operate.Order) (operate.Outcome, error) {
	v, err := l.under(o.Job)
	if err != nil {
		return operate.Outcome{}, err
	}
	id := o.RunID
	if id == "" {
		id, err = site.NewID()
	} else if run, known, found := v.requested(ctx, o); known {
		return startedOf(o.Job, run), found
	}
	if err != nil {
		return operate.Outcome{}, err
	}
	request := redisledger.Request{Job: o.Job, ID: id, By: o.Signature(), Force: o.Force}
	leader, err := v.leads(ctx)
	if err != nil && (o.RunID == "" || !errors.Is(err, operate.ErrNoLeader) || !v.waits(ctx, request)) {
		return operate.Outcome{}, err // otherwise the next leader may take the request, and "nothing is done" would be false
	}
	ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	paused := new(job.PausedError)
	switch err := v.Ledger.Request(ask, request, AskFor); {
	case errors.As(err, &paused):
		return operate.Outcome{}, v.paused(ctx, o.Job, paused.Reason)
	case err != nil:
		return operate.Outcome{}, err
	}
	run, err := v.awaitStart(ctx, request, leader)
	if err != nil {
		return operate.Outcome{}, err
	}
	return startedOf(o.Job, run), nil
}

// requested finds the run of an earlier order whose reply was lost. If two equal orders arrive at the same time, the ledger accepts only
// one of them. requested does not find a run that is no longer in the history.
func (v View) requested(ctx context.Context, o operate.Order) (run operate.JobRun, known bool, err error) {
	if !runID.MatchString(o.RunID) {
		return run, true, fmt.Errorf("%w: run_id %q: write a new UUID in lower case, or no run_id", operate.ErrInvalid, o.RunID)
	}
	rec, refused, err := v.findRun(ctx, o.Job, o.RunID, searched)
	switch {
	case err != nil:
		return run, true, err
	case refused != "":
		return run, true, errors.New(refused)
	case rec == nil:
		return run, false, nil
	}
	return operate.JobRun{Job: o.Job, Run: *rec}, true, nil
}

// runID matches a UUID in the form that baton and other programs use.
var runID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// startedOf returns the outcome of an order to run a job. It returns the zero Outcome if there is no run.
func startedOf(name string, run operate.JobRun) operate.Outcome {
	if run.Run.ID == "" {
		return operate.Outcome{}
	}
	out := operate.Outcome{RunID: run.Run.ID, NodeID: run.Run.NodeID, Epoch: run.Run.Epoch, Queued: run.Queued, Run: &run.Run}
	if run.Queued {
		out.Code, out.Text = operate.CodeAsked, fmt.Sprintf("run %s of job %q waits for another one to end", run.Run.ID, name)
		return out
	}
	out.Code, out.Text = operate.CodeDone, fmt.Sprintf("run %s of job %q has begun on %s", run.Run.ID, name, run.Run.NodeID)
	return out
}

// paused returns the error for a run of a paused job. The error says how to end the pause.
func (v View) paused(ctx context.Context, name string, reason string) error {
	which := name
	if s, err := v.state(ctx, name); err == nil && s.Paused != nil && s.Paused.All {
		which = "--all"
	}
	return fmt.Errorf("job %q is paused %s; baton job resume %s ends the pause", name, reason, which)
}

// awaitStart waits until the leader answers a request. After a time limit it withdraws the request.
func (v View) awaitStart(ctx context.Context, request redisledger.Request, leader string) (operate.JobRun, error) {
	deadline := time.Now().Add(AskFor)
	for wait := glance; ; wait = min(2*wait, slowest) {
		rec, refused, err := v.findRun(ctx, request.Job, request.ID, latest)
		switch {
		case err == nil && refused != "":
			return operate.JobRun{}, errors.New(refused)
		case err == nil && rec != nil:
			return operate.JobRun{Job: request.Job, Run: *rec}, nil
		case err == nil && v.queued(ctx, request):
			run := diagnose.Run{ID: request.ID, State: operate.StateQueued, By: request.By, NodeID: leader}
			return operate.JobRun{Job: request.Job, Run: run, Queued: true}, nil
		}
		if ctx.Err() == nil && time.Now().Before(deadline) {
			_ = rest(ctx, wait)
			continue
		}
		return v.withdraw(ctx, request, leader, err)
	}
}

// withdraw withdraws a request that was not answered in time, or returns the answer if there is one.
func (v View) withdraw(ctx context.Context, request redisledger.Request, leader string, unread error) (operate.JobRun, error) {
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CommandTimeout)
	defer cancel()
	withdrawn, failed := v.Ledger.Withdraw(back, request)
	if failed == nil && !withdrawn {
		// The leader has answered the request at this moment, or another attempt with the same order has already withdrawn the request.
		rec, refused, err := v.findRun(back, request.Job, request.ID, latest)
		switch {
		case err == nil && refused != "":
			return operate.JobRun{}, errors.New(refused)
		case err == nil && rec != nil:
			return operate.JobRun{Job: request.Job, Run: *rec}, ctx.Err()
		}
		failed = err
	}
	switch {
	case failed != nil:
		return operate.JobRun{}, fmt.Errorf("run %s was requested, and it is not known whether it began: %w",
			request.ID, errors.Join(unread, failed))
	case ctx.Err() != nil:
		return operate.JobRun{}, fmt.Errorf("the request was withdrawn before the run began: %w", ctx.Err())
	case leader == "":
		return operate.JobRun{}, fmt.Errorf("the request was withdrawn after %v: %w", AskFor, operate.ErrNoLeader)
	}
	return operate.JobRun{}, notTaken(leader, "the request")
}

// notTaken returns the error of an order that the leader has not taken in time.
func notTaken(leader, order string) error {
	const why = "that node may be stepping down, or cut off from redis; see baton status"
	return fmt.Errorf("%s did not accept %s within %v, so it was withdrawn: %s", leader, order, AskFor, why)
}

// queued reports whether the leader has taken the request and waits for another run to end.
func (v View) queued(ctx context.Context, request redisledger.Request) bool {
	r, ok := v.waiting(ctx, request)
	return ok && r.Queued
}

// waits reports whether no leader has taken the request yet.
func (v View) waits(ctx context.Context, request redisledger.Request) bool {
	_, ok := v.waiting(ctx, request)
	return ok
}

func (v View) waiting(ctx context.Context, request redisledger.Request) (r redisledger.Request, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	o, err := v.Ledger.Orders(ctx, nil)
	at := slices.IndexFunc(o.Requests, func(r redisledger.Request) bool { return r.ID == request.ID })
	if err != nil || at < 0 {
		return r, false
	}
	return o.Requests[at], true
}

// findRun looks for a run by its ID among the runs in progress and the last entries of the history. It returns nil if there is no such run.
// If the run was refused, it also returns the reason.
func (v View) findRun(ctx context.Context, name, id string, among int) (run *diagnose.Run, refused string, err error) {
	s, err := v.state(ctx, name)
	if err != nil {
		return nil, "", err
	}
	j := diagnose.Job{}
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
	rec, err := v.Ledger.FindRun(ctx, name, id, among)
	switch {
	case rec != nil:
		return runOf(rec), "", nil // the history entry has the output, which the last result does not contain
	case j.LastRun.ID == id:
		return j.LastRun, "", err
	}
	return nil, "", err
}
