package work

import (
	"sync"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/flush"
	"baton/internal/status/metrics"
	"baton/internal/trace"
)

// Reports contains the receivers of the reports that a flush makes.
type Reports struct {
	Metrics *metrics.Metrics
	Notes   *alert.Notifications // nil: no notifications
	Traces  *trace.Tracer        // nil: no traces
	Log     *zap.Logger
}

// newPipeline returns the pipeline of a flush job. It does not connect yet.
func newPipeline(c flush.Config, nodeID string, sink flush.Sink, done *runTotals, to Reports,
	traces *tracedTarget,
) (*flush.Pipeline, error) {
	c.NodeID, c.Sink = nodeID, sink
	letters := &lettersLog{log: to.Log, job: c.Job}
	var deletes sync.Once
	c.OnBatch = func(b flush.BatchStats) {
		done.add(b)
		traces.batch(done.during.Load(), b)
		to.Metrics.FlushRows(c.Job, "written", b.Rows)
		to.Metrics.FlushRows(c.Job, "deleted", b.Deleted)
		to.Metrics.FlushRows(c.Job, "dead", b.Dead)
		to.Metrics.FlushBatch(c.Job, b.Took)
		if b.Deleted > 0 {
			deletes.Do(func() {
				to.Log.Info("the first rows of the table were deleted, since their keys are gone from Redis; later deletions are counted "+
					"in the history and in flush_rows_total", zap.String("job", c.Job), zap.String("table", c.Mapping.Table),
					zap.Int64("rows", b.Deleted))
			})
		}
		if b.Dead > 0 {
			letters.add(b.Dead)
			to.Notes.LettersPut(c.Job, b.Dead)
		}
	}
	c.Adopt.OnUnaccepted = func(w flush.Unaccepted) { done.waits.Store(w.Changes + w.Deletes + 1) }
	if c.Adopt.Differ == nil {
		c.Adopt.OnUnaccepted(flush.Unaccepted{}) // the name may have belonged to another job before
	}
	c.OnNote = func(text string) { to.Log.Warn(text, zap.String("job", c.Job)) }
	c.OnExpected = func(text string) { to.Log.Info(text, zap.String("job", c.Job)) }
	return flush.New(c)
}
