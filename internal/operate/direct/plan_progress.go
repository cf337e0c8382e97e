package direct

import (
	"context"
	"fmt"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/flush"
	"baton/internal/flush/verify"
	"baton/internal/job"
	"baton/internal/operate/direct/progress"
	"baton/internal/redisledger"
)

// openProgress returns the progress of a new plan, and the first state of the plan. With Resume, this is the recorded state of an
// interrupted plan of the same keys and rows.
func openProgress(
	ctx context.Context, f openedFlush, flushed flush.Config, nodeID string, o PlanOptions,
) (g *progress.Progress, from verify.State, err error) {
	flushed.NodeID, flushed.Sink = nodeID, f.database
	pipeline, err := flush.New(flushed)
	if err != nil {
		return g, from, err
	}
	id, err := pipeline.Digest(ctx)
	if err != nil {
		return g, from, err
	}
	plan, err := pipeline.Plan(ctx)
	if err != nil {
		return g, from, err
	}
	v, err := f.site.session().under(f.job.Name)
	if err != nil {
		return g, from, err
	}
	g = progress.New(v.Ledger, redisledger.OperationState{
		Operation: redisledger.Operation{
			Job: f.job.Name, ID: fmt.Sprintf("%s %s %s/%d", id, plan.Table.Identity, f.store.Host(), f.store.Database()),
			Kind: redisledger.KindPreview, Trigger: string(job.TriggerManual), Asked: time.Now().UTC(),
		},
		Started: time.Now().UTC(), State: job.StateRunning, NodeID: nodeID,
	})
	ctx, cancel := context.WithTimeout(ctx, site.CommandTimeout)
	defer cancel()
	was, err := v.Ledger.Preview(ctx, f.job.Name)
	if err != nil && o.Resume {
		return g, from, fmt.Errorf("%w: without this record the preview cannot be continued", err)
	}
	return g, g.Begin(was, o.Resume, o.Examples), nil
}
