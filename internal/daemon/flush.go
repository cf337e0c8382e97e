package daemon

import (
	"go.uber.org/zap"

	"baton/internal/alert"
	"baton/internal/flush"
	"baton/internal/status"
)

// reports are whom flushes tell what they do.
type reports struct {
	metrics *status.Metrics
	notes   *alert.Notifications // nil: nobody is notified
	log     *zap.Logger
}

// newPipeline makes the pipeline of a flush job. It connects to nothing yet.
func newPipeline(c flush.Config, nodeID string, sink flush.Sink, done *tally, to reports) (*flush.Pipeline, error) {
	c.NodeID, c.Sink = nodeID, sink
	letters := &lettersLog{log: to.log, job: c.Job}
	c.OnBatch = func(b flush.BatchStats) {
		done.add(b)
		to.metrics.FlushRows(c.Job, "written", b.Rows)
		to.metrics.FlushRows(c.Job, "dead", b.Dead)
		to.metrics.FlushBatch(c.Job, b.Took)
		if b.Dead > 0 {
			letters.add(b.Dead)
			to.notes.LettersPut(c.Job, b.Dead)
		}
	}
	c.OnNote = func(text string) { to.log.Warn(text, zap.String("job", c.Job)) }
	return flush.New(c)
}
