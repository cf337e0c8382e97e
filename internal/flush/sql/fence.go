package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/flush"
)

// TakeOver implements flush.Sink. It makes f the job's fence. The first call of a process also creates or migrates baton's tables.
func (s *Store) TakeOver(ctx context.Context, f flush.Fence) error {
	if err := s.Migrate(ctx); err != nil {
		return err
	}
	return s.transact(ctx, fmt.Sprintf("take over job %q", f.Job), func(tx Session) error {
		if err := tx.Run(ctx, Task{Query: "begin"}); err != nil {
			return err
		}
		if err := s.takeFence(ctx, tx, f); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}

// takeFence makes f the job's fence. It waits for a transaction that holds a lock on the fence's row: a batch of an older leader that has
// passed its check, or the takeover of another node.
func (s *Store) takeFence(ctx context.Context, tx Session, f flush.Fence) error {
	// If another node inserts the row, or raises its epoch, between two of our statements, the loop tries again. The row's epoch is higher
	// each time, so the loop ends.
	for {
		taken := false
		note := func(touched int64) error { taken = touched > 0; return nil }
		err := tx.Run(ctx, Task{
			Query: "fence_take",
			Args:  []any{f.Epoch, f.Owner, f.NodeID, f.Lease.Milliseconds(), s.lockKey, f.Job, f.Epoch, s.lockKey},
			Then:  note,
		})
		if err != nil || taken {
			return err
		}
		if err := s.ownFence(ctx, tx, f.Job); err != nil {
			return err
		}
		held, found, err := s.readFence(ctx, tx, "fence_read", f.Job)
		switch {
		case err != nil:
			return err
		case found && held.Epoch == f.Epoch && held.Owner == f.Owner:
			return nil // an earlier call claimed the fence, and its reply was lost
		case found && held.Epoch >= f.Epoch:
			return &flush.FencedError{Job: f.Job, Epoch: held.Epoch, Owner: held.Owner}
		case found:
			continue
		}
		err = tx.Run(ctx, Task{
			Query: "fence_insert", Once: true, Then: note,
			Args: []any{f.Job, f.Epoch, f.Owner, f.NodeID, f.Lease.Milliseconds(), s.lockKey},
		})
		if err != nil || taken {
			return err
		}
	}
}

// ErrFenceMoved means that the fence to be replaced has changed.
var ErrFenceMoved = errors.New("another node has taken the fence in the meantime")

// ResetFence replaces a fence whose epoch is invalid. The new epoch may be lower than the invalid epoch. Every batch checks owner and
// epoch, so a holder of the old fence can no longer write. Only the holder of the job's lock may call ResetFence, and only when no earlier
// leader still trusts its lease. ResetFence returns ErrFenceMoved if the job's fence is not the argument old.
func (s *Store) ResetFence(ctx context.Context, old, f flush.Fence) error {
	return s.transact(ctx, fmt.Sprintf("reset the fence of job %q", f.Job), func(tx Session) error {
		if err := tx.Run(ctx, Task{Query: "begin"}); err != nil {
			return err
		}
		replaced := false
		err := tx.Run(ctx, Task{
			Query: "fence_reset", Args: []any{f.Epoch, f.Owner, f.NodeID, f.Lease.Milliseconds(), f.Job, old.Epoch, old.Owner},
			Then: func(touched int64) error { replaced = touched > 0; return nil },
		})
		switch {
		case err != nil:
			return err
		case !replaced:
			return ErrFenceMoved
		}
		return tx.Commit(ctx)
	})
}

// checkFence locks the fence's row, and returns an error if the fence is not f. After checkFence, no other node can take over the fence
// until the transaction ends.
//
// A cluster that certifies transactions has no locks between servers. On such a cluster the check is a write. If the check conflicts with a
// takeover on another server, only the transaction that is certified first can commit.
func (s *Store) checkFence(ctx context.Context, tx Session, f flush.Fence, query string) error {
	certified, written := s.database.Certified(), false
	if certified {
		err := tx.Run(ctx, Task{
			Query: "fence_write", Args: []any{f.Job, f.Epoch, f.Owner},
			Then: func(touched int64) error { written = touched > 0; return nil },
		})
		if err != nil || written {
			return err
		}
	}
	held, _, err := s.readFence(ctx, tx, query, f.Job)
	switch {
	case err != nil:
		return err
	case held.Epoch != f.Epoch || held.Owner != f.Owner:
		return &flush.FencedError{Job: f.Job, Epoch: held.Epoch, Owner: held.Owner}
	case certified: // the row changed between the two statements, and a read proves nothing on a cluster
		return fmt.Errorf("the server does not have the last take-over yet: %w", flush.ErrTransient)
	}
	return nil
}

// readFence reads the job's fence. The argument query is the name of the query.
func (s *Store) readFence(ctx context.Context, tx Session, query, job string) (f flush.Fence, found bool, err error) {
	f.Job = job
	err = tx.Read(ctx, s.queries[query], []any{job}, func(row []any) error {
		epoch, err := integer(row[0])
		leaseMS, leaseErr := integer(row[2])
		f.Epoch, f.Owner, f.Lease, found = epoch, Text(row[1]), time.Duration(leaseMS)*time.Millisecond, true
		return errors.Join(err, leaseErr)
	})
	return f, found && err == nil, err
}
