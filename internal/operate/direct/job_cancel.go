package direct

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/operate"
	"baton/internal/redisledger"
)

// cancelJob makes the leader end a run of a job. Without a run's ID the leader ends all runs, and drops waiting runs and retries. cancelJob
// returns when the leader has cancelled the runs, which may still be ending. It returns an error if no node leads, or if the job is not
// configured and has no run in progress.
func cancelJob(ctx context.Context, l session, o operate.Order) (operate.Outcome, error) {
	v, err := l.under(o.Job)
	if errors.Is(err, operate.ErrNoJob) {
		v, err = l.underWhichRuns(ctx, o.Job, err)
	}
	if err != nil {
		return operate.Outcome{}, err
	}
	operation, cancels, err := v.cancelOperation(ctx, o)
	if err != nil || cancels && o.RunID != "" {
		return operation, err
	}
	leader, err := v.leads(ctx)
	if err != nil {
		return operation, err
	}
	id, err := site.NewID()
	if err != nil {
		return operate.Outcome{}, err
	}
	order := redisledger.Cancel{Job: o.Job, ID: id, RunID: o.RunID, By: o.Signature()}
	ask, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	if err := v.Ledger.OrderCancel(ask, order, AskFor); err != nil {
		return operate.Outcome{}, err
	}
	answer, err := v.awaitCancelled(ctx, order, leader)
	if err != nil {
		return operate.Outcome{}, err
	}
	out := cancelled(o.Job, answer)
	if cancels {
		if out.Code == operate.CodeNothing {
			return operation, nil
		}
		out.Runs, out.Text = append(operation.Runs, out.Runs...), operation.Text+"; "+out.Text
	}
	return out, nil
}

// cancelled returns the outcome of a cancellation.
func cancelled(name string, answer redisledger.Cancelled) operate.Outcome {
	out := operate.Outcome{Code: operate.CodeDone, Runs: answer.Runs, Retry: answer.Retry}
	var texts []string
	for _, id := range out.Runs {
		texts = append(texts, "run "+id+" has the order to end")
	}
	if out.Retry > 0 {
		texts = append(texts, fmt.Sprintf("the pending attempt %d is dropped", out.Retry))
	}
	if out.Text = strings.Join(texts, "; "); out.Text == "" {
		out.Code, out.Text = operate.CodeNothing, fmt.Sprintf("job %q has no open run and no retry: nothing was cancelled", name)
	}
	return out
}

// underWhichRuns finds the election of a running job that is no longer in the configuration.
func (l session) underWhichRuns(ctx context.Context, name string, unknown error) (View, error) {
	for _, v := range l.views() {
		if s, err := v.state(ctx, name); err == nil && len(s.Running) > 0 {
			return v, nil
		}
	}
	return View{}, unknown
}

// awaitCancelled waits until the leader answers an order. After a time limit it withdraws the order.
func (v View) awaitCancelled(ctx context.Context, order redisledger.Cancel, leader string) (redisledger.Cancelled, error) {
	deadline := time.Now().Add(AskFor)
	for wait := glance; ; wait = min(2*wait, slowest) {
		s, err := v.state(ctx, order.Job)
		if answer := s.Cancelled; err == nil && answer.ID == order.ID {
			if answer.Error != "" {
				return answer, errors.New(answer.Error)
			}
			return answer, nil
		}
		if ctx.Err() == nil && time.Now().Before(deadline) {
			_ = rest(ctx, wait)
			continue
		}
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CommandTimeout)
		withdrawn, failed := v.Ledger.WithdrawCancel(back, order)
		cancel()
		switch {
		case failed != nil || !withdrawn:
			return redisledger.Cancelled{}, fmt.Errorf("it is not known which runs of job %q were cancelled; see baton job show %s: %w",
				order.Job, order.Job, errors.Join(err, failed, ctx.Err()))
		case ctx.Err() != nil:
			return redisledger.Cancelled{}, fmt.Errorf("the order was withdrawn before any run was cancelled: %w", ctx.Err())
		}
		return redisledger.Cancelled{}, notTaken(leader, "the order")
	}
}
