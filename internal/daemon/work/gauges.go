package work

import (
	"context"
	"sync"
	"time"

	"baton/internal/daemon/tasks"
	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/status/metrics"
)

// GaugeEvery is how often the leader counts the backlogs of jobs that do not run.
const GaugeEvery = 5 * time.Second

// gauges are the metrics of a term's jobs that keep updates.
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
	var asked time.Time // zero: the jobs may be others than before
	for ctx.Err() == nil {
		if len(g.jobs) > 0 && time.Since(asked) > standEvery-GaugeEvery/2 {
			if g.watch.recall(ctx, g.ledger, g.names()) == nil {
				asked = time.Now()
			}
		}
		g.sampler.take(ctx, g.measure(ctx))
		_ = Rest(ctx, GaugeEvery)
	}
}

// measure measures all jobs, those of different stores at the same time.
func (g gauges) measure(ctx context.Context) map[string]redisledger.Level {
	var mu sync.Mutex
	levels := map[string]redisledger.Level{}
	tasks.ByStore(g.jobs, func(b boundTask) *redisconn.Store { return b.task.Store }, func(some []boundTask) {
		for _, b := range some {
			if next, ok := g.runner.Next(b.job.Name); ok {
				g.metrics.JobNext(b.job.Name, next)
			}
			if b.flush != nil {
				if level, ok := b.flush.measure(ctx); ok {
					mu.Lock()
					levels[b.job.Name] = level
					mu.Unlock()
				}
			}
			g.watch.show(g.metrics, b.task, Led{Owner: g.owner})
		}
	})
	return levels
}

func (g gauges) names() []string {
	names := make([]string, len(g.jobs))
	for i, b := range g.jobs {
		names[i] = b.job.Name
	}
	return names
}
