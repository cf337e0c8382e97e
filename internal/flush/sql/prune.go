package sql

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"
)

// pruneChunk is how many rows the query "prune" deletes at most.
const pruneChunk = 1000

// Prune deletes ledger entries that are no longer needed and returns their number: those older than olderThan, except for each shard's
// newest batch.
//
// The entries of a stage must outlive the stage: otherwise rows that are in the table already would be added again. And a stage may lie
// in Redis for any time: while nodes are down, or after its job or its shard was taken out of the configuration. But a shard has one
// stage at a time, and gets a new one only after the old one was discarded. So all batches of a shard except the newest are gone from
// Redis, and the database can tell that alone. olderThan is for a Redis restored from a snapshot, together with stages that had been
// discarded: the snapshot must not be older than that.
//
// Each chunk is a transaction of its own; it may end with ctx between any two.
func (s *Store) Prune(ctx context.Context, olderThan time.Duration) (deleted int64, err error) {
	if err := s.Migrate(ctx); err != nil {
		return 0, err
	}
	for {
		var touched int64
		err := s.transact(ctx, "prune the ledger", func(tx Session) error {
			err := tx.Run(ctx, Task{Query: "begin"}, Task{
				Query: "prune", Args: []any{int64(olderThan.Seconds()), s.lockKey},
				Then: func(n int64) error { touched = n; return nil },
			})
			if err != nil {
				return err
			}
			return tx.Commit(ctx)
		})
		if err != nil {
			return deleted, err
		}
		deleted += touched
		if touched < pruneChunk {
			return deleted, nil
		}
	}
}

// newestKey names a shard of a job.
type newestKey struct{ job, shard string }

// shardName is the name of a shard of sums in the table of positions: it fits the column, and
// differs for different shards in every collation.
func shardName(shard string) string { return inTable("stage of ", shard) }

// positionName is the name of a shard that has its position there.
func positionName(shard string) string { return inTable("place in ", shard) }

// markName is the name of a counter in the table of marks.
func markName(name string) string { return inTable("", name) }

func inTable(kind, shard string) string {
	name := kind + strconv.QuoteToASCII(shard)
	if len(name) <= 200 {
		return name
	}
	return fmt.Sprintf("%s... %x", name[:100], sha256.Sum256([]byte(shard)))
}
