package direct

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/redisledger"
	"baton/internal/text"
)

// countedWithin is the maximum age of a leader's count that can still be used. It is three times the interval between two counts.
const countedWithin = 3 * redisledger.SampleEvery

// Counts returns the leader's last counts of backlogs. The first call reads these counts from the ledger.
type Counts func() (map[string]redisledger.Level, error)

// LeaderCounts returns the last counts of the leader under the ledger's lock.
func LeaderCounts(ctx context.Context, ledger *redisledger.Ledger) Counts {
	return sync.OnceValues(func() (map[string]redisledger.Level, error) { return ledger.LatestLevels(ctx, countedWithin) })
}

// Backlog returns the number of changes that wait for a job. If only the job's leader can count the changes, it returns the leader's last
// count.
func (c Counts) Backlog(ctx context.Context, t tasks.Task) (int64, error) {
	n, err := t.Backlog(ctx)
	if uncounted, ok := errors.AsType[*flush.UncountedError](err); !ok || !uncounted.Elsewhere {
		return n, err
	}
	levels, err := c()
	if err != nil {
		return 0, &flush.UncountedError{Why: err.Error(), Elsewhere: true}
	}
	level, ok := levels[t.Config.Name]
	if !ok {
		why := fmt.Sprintf("no leader has counted the backlog in the last %s", text.Duration(countedWithin))
		return 0, &flush.UncountedError{Why: why, Elsewhere: true}
	}
	return level.Backlog, nil
}
