package work

import (
	"context"
	"time"

	"baton/internal/job"
	"baton/internal/redisledger"
	"baton/internal/status/metrics"
)

// GaugeEvery is how often the leader counts what waits for jobs that do not run.
const GaugeEvery = 5 * time.Second

// gauges are the metrics of a term's jobs that are kept up to date.
type gauges struct {
	ledger  *redisledger.Ledger
	runner  *job.Runner
	metrics *metrics.Metrics
	owner   string // of the term
	jobs    []boundTask
	sampler *sampler
	watch   *Watch
}

// keep keeps them while the term goes on, also those of jobs that run once a night.
func (g gauges) keep(ctx context.Context) {
	var asked time.Time // the jobs may be others than before
	for ctx.Err() == nil {
		if len(g.jobs) > 0 && time.Since(asked) > standEvery-GaugeEvery/2 {
			if g.watch.recall(ctx, g.ledger, g.names()) == nil {
				asked = time.Now()
			}
		}
		levels := map[string]redisledger.Level{}
		for _, b := range g.jobs {
			if next, ok := g.runner.Next(b.job.Name); ok {
				g.metrics.JobNext(b.job.Name, next)
			}
			if b.flush != nil {
				if level, ok := b.flush.measure(ctx); ok {
					levels[b.job.Name] = level
				}
			}
			g.watch.show(g.metrics, b.task, g.owner)
		}
		g.sampler.take(ctx, levels)
		_ = Rest(ctx, GaugeEvery)
	}
}

func (g gauges) names() []string {
	names := make([]string, len(g.jobs))
	for i, b := range g.jobs {
		names[i] = b.job.Name
	}
	return names
}
