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
}

// keep keeps them while the term goes on, also those of jobs that run once a night.
func (g gauges) keep(ctx context.Context) {
	known := len(g.jobs) == 0
	for ctx.Err() == nil {
		levels := map[string]redisstore.Level{}
		known = known || g.recall(ctx) == nil
		for _, b := range g.jobs {
			if next, ok := g.runner.Next(b.job.Name); ok {
				g.metrics.JobNext(b.job.Name, next)
			}
			if b.flush != nil {
				if level, ok := b.flush.measure(ctx); ok {
					levels[b.job.Name] = level
				}
			}
		}
		g.sampler.take(ctx, levels)
		_ = rest(ctx, gaugeEvery)
	}
}

// recall learns from the ledger how far the last leader had come.
func (g gauges) recall(ctx context.Context) error {
	names := make([]string, len(g.jobs))
	for i, b := range g.jobs {
		names[i] = b.job.Name
	}
	states, err := g.ledger.Jobs(ctx, names)
	for i, st := range states {
		if b := g.jobs[i]; b.flush != nil && !st.Fresh.IsZero() {
			b.flush.fresh.CompareAndSwap(0, st.Fresh.UnixMilli())
		}
		g.metrics.JobSucceeded(names[i], st.LastSuccess)
	}
	return err
}
