package sql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/flush"
)

// TakeOver makes f the job's fence: see flush.Sink. The first call of a process
// also creates or migrates baton's tables.
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

// takeFence waits for the holder of the fence's row: an older leader that has passed its check, or
// another taker.
func (s *Store) takeFence(ctx context.Context, tx Session, f flush.Fence) error {
	// If another taker inserts or raises the row between two of our statements, we try again. Its
	// epoch is higher each time, so this ends.
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
			return nil // an earlier call did it, and its reply was lost
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

// ErrFenceMoved means that the fence to be replaced is not there any more.
var ErrFenceMoved = errors.New("another node has taken the fence meanwhile")

// ResetFence replaces a fence with an invalid epoch, also by a lower one. Every batch checks owner and epoch, so a holder of the old
// fence can no longer write. Only the holder of the job's lock may call it, when no earlier leader trusts its lease any longer.
// ErrFenceMoved if the fence is not old.
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

// checkFence locks the fence's row and requires it to be exactly f's. From its answer to the end of
// the transaction no other node can take over.
//
// A cluster that certifies transactions has no locks between servers. There the check is a write: if the check and a take-over on another
// server meet, the later one cannot commit.
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
	case certified: // it came between the two statements, and a read proves nothing here
		return fmt.Errorf("the server lags behind the take-over: %w", flush.ErrTransient)
	}
	return nil
}

// readFence reads the job's fence with the query of that name.
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
