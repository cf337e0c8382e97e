package sql

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// pruneChunk is the maximum number of rows that one query "prune" or "kept_prune" deletes. After pruneTimeouts timeouts, inChunks ends, and
// the remaining rows wait for the next pruning. A statement that times out has worked for half a lease for nothing. After pruneTrust
// successes, inChunks asks again for numbers that have timed out, because a lock may have been the reason. Each timeout doubles pruneTrust.
const pruneChunk, pruneTimeouts, pruneTrust = 1000, 8, 100

// Prune deletes ledger entries that are no longer needed and returns their number. It deletes the entries that are older than the argument
// olderThan, except the entries of each shard's newest batch.
//
// The entries of a stage must exist longer than the stage, because otherwise rows that are in the table already would be added again. A
// stage may stay in Redis for any time: while nodes are down, or after its job or its shard was removed from the configuration. But a shard
// has only one stage at a time, and gets a new stage only after the old stage was discarded. So all batches of a shard except the newest
// batch have left Redis, and the database alone shows which batch is the newest. olderThan protects a Redis that was restored from a
// snapshot, together with stages that had been discarded. The snapshot must not be older than olderThan.
//
// Each chunk is a separate transaction, and Prune may end with ctx between two chunks.
func (s *Store) Prune(ctx context.Context, olderThan time.Duration) (deleted int64, err error) {
	if err := s.Migrate(ctx); err != nil {
		return 0, err
	}
	return s.inChunks(ctx, "prune the ledger", Task{Query: "prune", Args: []any{int64(olderThan.Seconds()), s.lockKey}})
}

// PruneKept deletes the kept rows that have been kept for long enough, and returns their number. It also deletes rows of removed jobs. Each
// chunk is a separate transaction.
func (s *Store) PruneKept(ctx context.Context) (deleted int64, err error) {
	if err := s.Migrate(ctx); err != nil {
		return 0, err
	}
	return s.inChunks(ctx, "prune the deleted rows that were kept", Task{Query: "kept_prune"})
}

// inChunks repeats a task whose last argument is the maximum number of rows to delete. It ends after the task has deleted fewer rows. If
// the deletion takes longer than a statement, the wait for a lock or a round trip may take, the number becomes a tenth. After each success
// it grows again, but it first stays below every number that has timed out.
func (s *Store) inChunks(ctx context.Context, doing string, task Task) (deleted int64, err error) {
	args, most, timeouts, successes := task.Args, int64(pruneChunk), 0, 0
	for size := most; ; {
		var touched int64
		task.Then = func(n int64) error { touched = n; return nil }
		task.Args = slices.Concat(args, []any{size})
		err := s.transact(ctx, doing, func(tx Session) error {
			if err := tx.Run(ctx, Task{Query: "begin"}, task); err != nil {
				return err
			}
			return tx.Commit(ctx)
		})
		if err == nil {
			deleted += touched
			if touched < size {
				return deleted, nil
			}
			if successes++; successes == pruneTrust<<timeouts {
				most, successes = min(pruneChunk, 2*most), 0
			}
			size = min(most, size+1+size/8)
			continue
		}
		timeout := s.dialect.TimedOut(err) || errors.Is(err, context.DeadlineExceeded)
		if timeouts++; ctx.Err() != nil || !timeout || neverConnected(err) {
			return deleted, err
		}
		switch {
		case size == 1:
			return deleted, fmt.Errorf("the oldest row could not be deleted, so it stays with all rows after it: another transaction "+
				"may hold a lock, or the deletion takes longer than the lease allows: %w", err)
		case timeouts == pruneTimeouts:
			return deleted, fmt.Errorf("%d statements have timed out, so the remaining rows stay for now: %w", timeouts, err)
		}
		most, size, successes = size-1, max(1, size/10), 0
	}
}

// newestKey identifies a shard of a job.
type newestKey struct{ job, shard string }

// shardName returns the name under which the table of positions contains the newest stage of a shard of sums. The name fits the column, and
// differs for different shards in every collation.
func shardName(shard string) string { return inTable("stage of ", shard) }

// positionName returns the name under which the table of positions contains a shard's position.
func positionName(shard string) string { return inTable("place in ", shard) }

// markName returns the name under which the table of marks contains a counter.
func markName(name string) string { return inTable("", name) }

func inTable(kind, shard string) string {
	name := kind + strconv.QuoteToASCII(shard)
	if len(name) <= 200 {
		return name
	}
	return fmt.Sprintf("%s... %x", name[:100], sha256.Sum256([]byte(shard)))
}
