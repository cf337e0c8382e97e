package sqlstore

import (
	"context"
	"fmt"

	"baton/internal/flush"
)

// TakeOver makes f the job's fence: see flush.Sink. The first call of a process
// also creates or migrates baton's tables.
func (s *Store) TakeOver(ctx context.Context, f flush.Fence) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	return s.transact(ctx, fmt.Sprintf("take over job %q", f.Job), func(tx session) error {
		if err := tx.run(ctx, task{query: "begin"}); err != nil {
			return err
		}
		if err := takeFence(ctx, tx, f); err != nil {
			return err
		}
		if err := s.at(StepTakeOverBeforeCommit); err != nil {
			return err
		}
		if err := tx.commit(ctx); err != nil {
			return err
		}
		return s.at(StepTakeOverAfterCommit)
	})
}

// takeFence waits for whoever holds the fence's row: an older leader that has
// passed its check, or another taker.
func takeFence(ctx context.Context, tx session, f flush.Fence) error {
	// A row that another taker inserts or raises between two of our statements
	// sends us round again. It has a higher epoch each time, so this ends.
	for {
		taken := false
		note := func(touched int64) error { taken = touched > 0; return nil }
		err := tx.run(ctx, task{query: "fence_take", args: []any{f.Epoch, f.Owner, f.NodeID, f.Job, f.Epoch}, then: note})
		if err != nil || taken {
			return err
		}
		held, found, err := tx.fence(ctx, "fence_read", f.Job)
		switch {
		case err != nil:
			return err
		case found && held.Epoch == f.Epoch && held.Owner == f.Owner:
			return nil // an earlier call did it, and its reply was lost
		case found && held.Epoch >= f.Epoch:
			return &flush.FencedError{Job: f.Job, Epoch: held.Epoch, Owner: held.Owner}
		case found:
			continue
		}
		err = tx.run(ctx, task{query: "fence_insert", args: []any{f.Job, f.Epoch, f.Owner, f.NodeID}, once: true, then: note})
		if err != nil || taken {
			return err
		}
	}
}

// checkFence locks the fence's row, as the query says, and wants it to be exactly f's. From
// its answer to the end of the transaction nobody can take over.
func checkFence(ctx context.Context, tx session, f flush.Fence, query string) error {
	held, _, err := tx.fence(ctx, query, f.Job)
	if err != nil {
		return err
	}
	if held.Epoch != f.Epoch || held.Owner != f.Owner {
		return &flush.FencedError{Job: f.Job, Epoch: held.Epoch, Owner: held.Owner}
	}
	return nil
}
