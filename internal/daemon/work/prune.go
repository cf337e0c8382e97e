package work

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/site"
)

const (
	// ledgerKept is how long the entries of a database's ledger are kept. So Redis may be restored from a snapshot that is at most that
	// old. After a restore from an older snapshot, baton could add the stages in it to the tables a second time.
	ledgerKept = 7 * 24 * time.Hour
	pruneFirst = time.Minute    // after the beginning of a term, because a handover has more urgent work
	pruneEvery = 24 * time.Hour // after the first time, as long as the term lasts
	pruneAgain = time.Hour      // after a failure
)

// ledger is the part of a database that deletes old entries of the database's ledger.
type ledger interface {
	// Prune deletes entries whose age is more than the duration olderThan, if no batch can need them any more.
	Prune(ctx context.Context, olderThan time.Duration) (int64, error)
	// PruneKept removes the deleted rows that were kept for their whole time.
	PruneKept(ctx context.Context) (int64, error)
}

// ToPrune returns the databases whose ledgers are pruned under this lock: the databases that jobs under the lock write. Under the node's
// own lock these are all databases, so that no database is left out.
func (w Load) ToPrune() site.Databases {
	ledgers := site.Databases{}
	for name, db := range w.Databases {
		if w.Staged != nil || slices.ContainsFunc(w.Tasks, func(t Task) bool { return t.Config.Flush.To.Database == name }) {
			ledgers[name] = db
		}
	}
	return ledgers
}

// pruneLedgers deletes old entries from the ledgers repeatedly until ctx ends, because the ledgers would otherwise grow without a limit.
// Any node could do this, but only the leader does it, so that the work is done once.
func pruneLedgers[L ledger](ctx context.Context, log *zap.Logger, ledgers map[string]L) {
	for wait := pruneFirst; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = pruneEvery
		for _, name := range slices.Sorted(maps.Keys(ledgers)) {
			deleted, err := ledgers[name].Prune(ctx, ledgerKept)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Warn("the ledger could not be pruned: it only needs more space",
					zap.String("database", name), zap.Duration("again_in", pruneAgain), zap.Error(err))
				wait = pruneAgain
			case deleted > 0:
				log.Info("pruned the ledger", zap.String("database", name), zap.Int64("entries", deleted))
			}
			rows, err := ledgers[name].PruneKept(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Warn("deleted rows whose keep_deleted is over could not be removed from table baton_deleted, so they are kept longer",
					zap.String("database", name), zap.Int64("removed", rows), zap.Duration("again_in", pruneAgain), zap.Error(err))
				wait = pruneAgain
			case rows > 0:
				log.Info("removed deleted rows whose keep_deleted is over", zap.String("database", name), zap.Int64("rows", rows))
			}
		}
	}
}
