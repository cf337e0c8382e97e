package direct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/job"
	"baton/internal/operate"
	"baton/internal/redisledger"
)

// startOperation makes the leader verify or backfill a job, in parallel with the job's runs. It returns when the order is in Redis.
func startOperation(ctx context.Context, l session, o operate.Order) (operate.Outcome, error) {
	v, err := l.under(o.Job)
	if err != nil {
		return operate.Outcome{}, err
	}
	of := l.Config.Jobs[slices.IndexFunc(l.Config.Jobs, func(j config.Job) bool { return j.Name == o.Job })]
	out, err := checkOperation(of, o)
	if err != nil || out.Code != "" {
		return out, err
	}
	id := o.RunID
	if id == "" {
		if id, err = site.NewID(); err != nil {
			return operate.Outcome{}, err
		}
	} else if !runID.MatchString(id) {
		return operate.Outcome{}, fmt.Errorf("%w: run_id %q: write a new UUID in lower case, or no run_id", operate.ErrInvalid, id)
	}
	leader, err := v.leads(ctx)
	if err != nil {
		return operate.Outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	err = v.Ledger.AskOperation(ctx, redisledger.Operation{
		Job: o.Job, ID: id, Kind: string(o.Kind), By: o.Signature(), Trigger: string(job.TriggerManual), Asked: time.Now().UTC(),
		Sample: o.Sample, Rate: o.Rate, Repair: o.Repair, Examples: o.Examples,
	})
	if errors.Is(err, redisledger.ErrAsked) {
		return operate.Outcome{}, fmt.Errorf("%w; baton job show %s shows it, and baton job cancel %[2]s ends it", err, o.Job)
	}
	if err != nil {
		return operate.Outcome{}, err
	}
	return operate.Outcome{
		Code: operate.CodeAsked, RunID: id, NodeID: leader,
		Text: fmt.Sprintf("%s %s of job %q runs on the leader, %s", o.Kind, id, o.Job, leader),
	}, nil
}

// checkOperation returns an error for an order that cannot be carried out, and an outcome for an order with nothing to do.
func checkOperation(of config.Job, o operate.Order) (operate.Outcome, error) {
	err := tasks.CheckKeys(of)
	switch {
	case err != nil:
		return operate.Outcome{}, fmt.Errorf("%w: %w", operate.ErrInvalid, err)
	case o.Sample < 0 || o.Sample > 1:
		return operate.Outcome{}, fmt.Errorf("%w: sample: write a percentage of all keys, above 0 %% and up to 100 %%", operate.ErrInvalid)
	case o.Rate < 0:
		return operate.Outcome{}, fmt.Errorf("%w: rate: write a number of keys per second, or 0 for no limit", operate.ErrInvalid)
	case o.Examples < 0 || o.Examples > mostExamples:
		return operate.Outcome{}, fmt.Errorf("%w: examples: write at most %d", operate.ErrInvalid, mostExamples)
	case o.Kind == operate.KindBackfill && of.Flush.From.Kind().Looks:
		return operate.Outcome{Code: operate.CodeNothing, Text: fmt.Sprintf(
			"every run of job %q reads all keys, so there is nothing to mark: baton job run %[1]s flushes the present values", o.Job)}, nil
	}
	return operate.Outcome{}, nil
}

// mostExamples is the maximum number of examples that one verification keeps.
const mostExamples = 100

// cancelOperation cancels a verification or backfill in progress. It returns false if the order matches neither a verification nor a
// backfill.
func (v View) cancelOperation(ctx context.Context, o operate.Order) (operate.Outcome, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	orders, err := v.Ledger.Orders(ctx, nil)
	if err != nil {
		return operate.Outcome{}, false, err
	}
	at := slices.IndexFunc(orders.Operations, func(op redisledger.Operation) bool {
		return op.Job == o.Job && (o.RunID == "" || op.ID == o.RunID)
	})
	if at < 0 {
		return operate.Outcome{}, false, nil
	}
	op := orders.Operations[at]
	state := redisledger.OperationState{Operation: op, Started: op.Asked}
	if s, err := v.state(ctx, o.Job); err == nil && s.Operation != nil && s.Operation.ID == op.ID {
		state = *s.Operation
	}
	state.State, state.Finished, state.Error = job.StateCancelled, time.Now().UTC(), "cancelled "+o.Signature()
	if err := v.Ledger.EndOperation(ctx, state); err != nil && !errors.Is(err, redisledger.ErrOver) {
		return operate.Outcome{}, false, err
	}
	return operate.Outcome{
		Code: operate.CodeDone, Runs: []string{op.ID}, Text: fmt.Sprintf("%s %s of job %q is cancelled", op.Kind, op.ID, o.Job),
	}, true, nil
}

// operationOf returns the state of an operation. It returns nil if s is nil.
func operationOf(s *redisledger.OperationState) *diagnose.Operation {
	if s == nil {
		return nil
	}
	o := &diagnose.Operation{
		ID: s.ID, Kind: s.Kind, State: string(s.State), By: s.By, Trigger: s.Trigger, Sample: s.Sample, Repair: s.Repair,
		Started: s.Started, Updated: s.Updated, Finished: s.Finished, NodeID: s.NodeID, Epoch: s.Epoch, Error: s.Error,
	}
	_ = json.Unmarshal(s.Progress, &o.Progress) // another version may have written the progress; in that case it is not shown
	return o
}
