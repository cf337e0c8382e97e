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

// GaugeEvery is the pause between two counts of the backlogs. The counts concern the jobs that have no run in progress.
const GaugeEvery = 5 * time.Second

// gauges keeps the metrics of a term's jobs current.
type gauges struct {
	ledger  *redisledger.Ledger
	runner  *job.Runner
	metrics *metrics.Metrics
	owner   string // of the term
	jobs    []boundTask
	sampler *sampler
	watch   *Watch
}

// keep updates the gauges of all jobs repeatedly while the term lasts, including jobs that run only once a night.
func (g gauges) keep(ctx context.Context) {
	var asked time.Time // zero: the jobs may differ from the jobs before
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

// measure measures all jobs. It measures the jobs of different stores at the same time.
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
			g.watch.show(g.metrics, b.task, Leader{Owner: g.owner})
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
