package daemon

import (
	"context"
	"time"

	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// gaugeEvery is how often the leader counts what waits for jobs that do not run.
const gaugeEvery = 5 * time.Second

// gauges are the metrics of a term's jobs that somebody has to keep up to date.
type gauges struct {
	ledger  *redisstore.Ledger
	runner  *job.Runner
	metrics *status.Metrics
	jobs    []boundTask
	sampler *sampler
	watch   *jobWatch
}

// keep keeps them while the term goes on, also those of jobs that run once a night.
func (g gauges) keep(ctx context.Context) {
	g.watch.asked = time.Time{} // the jobs may be others
	for ctx.Err() == nil {
		if len(g.jobs) > 0 && time.Since(g.watch.asked) > standEvery-gaugeEvery/2 {
			g.recall(ctx)
		}
		levels := map[string]redisstore.Level{}
		for _, b := range g.jobs {
			if next, ok := g.runner.Next(b.job.Name); ok {
				g.metrics.JobNext(b.job.Name, next)
			}
			var level redisstore.Level
			if b.flush != nil {
				var ok bool
				if level, ok = b.flush.measure(ctx); ok {
					levels[b.job.Name] = level
				}
			}
			g.stands(b, level.Lag)
		}
		g.sampler.take(ctx, levels)
		_ = rest(ctx, gaugeEvery)
	}
}
