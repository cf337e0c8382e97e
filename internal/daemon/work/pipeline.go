package work

import (
	"sync"

	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/flush"
	"baton/internal/status/metrics"
	"baton/internal/trace"
)

// Reports are the receivers of a flush's reports.
type Reports struct {
	Metrics *metrics.Metrics
	Notes   *alert.Notifications // nil: no notifications
	Traces  *trace.Tracer        // nil: no traces
	Log     *zap.Logger
}

// newPipeline makes the pipeline of a flush job. It connects to nothing yet.
func newPipeline(c flush.Config, nodeID string, sink flush.Sink, done *tally, to Reports, traces *tracedTarget) (*flush.Pipeline, error) {
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
	c.Adopt.OnWaits = func(w flush.Waits) { done.waits.Store(w.Changes + w.Deletes + 1) }
	if c.Adopt.Differ == nil {
		c.Adopt.OnWaits(flush.Waits{}) // the job may have been another one
	}
	c.OnNote = func(text string) { to.Log.Warn(text, zap.String("job", c.Job)) }
	c.OnExpected = func(text string) { to.Log.Info(text, zap.String("job", c.Job)) }
	return flush.New(c)
}
