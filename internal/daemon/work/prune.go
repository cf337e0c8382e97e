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
	// ledgerKept is the age of the oldest snapshot that Redis may be restored from
	// without its discarded stages being added again.
	ledgerKept = 7 * 24 * time.Hour
	pruneFirst = time.Minute    // of a term: a handover has more urgent work
	pruneEvery = 24 * time.Hour // after that, for as long as the term lasts
	pruneAgain = time.Hour      // after a failure
)

// ledger is a database, reduced to its ledger.
type ledger interface {
	// Prune deletes entries older than that, if no batch can need them any more.
	Prune(ctx context.Context, olderThan time.Duration) (int64, error)
}

// ToPrune are the databases that jobs under the lock write; under the node's own lock all of
// them, so that none is left out.
func (w Load) ToPrune() site.Databases {
	ledgers := site.Databases{}
	for name, db := range w.Databases {
		if w.Staged != nil || slices.ContainsFunc(w.Tasks, func(t Task) bool { return t.Config.Flush.To.Database == name }) {
			ledgers[name] = db
		}
	}
	return ledgers
}

// pruneLedgers keeps the ledgers from growing until ctx ends. The leader does it, so that only one node does; any node could.
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
				log.Warn("the ledger could not be pruned, which only costs space",
					zap.String("database", name), zap.Duration("again_in", pruneAgain), zap.Error(err))
				wait = pruneAgain
			case deleted > 0:
				log.Info("pruned the ledger", zap.String("database", name), zap.Int64("entries", deleted))
			}
		}
	}
}
