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

// countedWithin is the age up to which the leader's count of a backlog counts as present: three samples.
const countedWithin = 3 * redisledger.SampleEvery

// Counts are the leader's last counts of backlogs. They are read when the first one is needed.
type Counts func() (map[string]redisledger.Level, error)

// LeaderCounts are the last counts under the lock of a ledger.
func LeaderCounts(ctx context.Context, ledger *redisledger.Ledger) Counts {
	return sync.OnceValues(func() (map[string]redisledger.Level, error) { return ledger.LatestLevels(ctx, countedWithin) })
}

// Backlog counts the changes that wait for a job. Where only its leader can count, it returns the leader's last count.
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
		why := fmt.Sprintf("no leader has counted it in the last %s", text.Duration(countedWithin))
		return 0, &flush.UncountedError{Why: why, Elsewhere: true}
	}
	return level.Backlog, nil
}
