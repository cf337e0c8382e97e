package daemon

import (
	"context"
	"time"

	"baton/internal/redisstore"
)

// gaugeEvery is how often the leader counts what waits for jobs that do not run.
const gaugeEvery = 5 * time.Second

// keepGauges keeps the gauges of what waits up to date while the term goes on, also of
// jobs that run once a night. How far the last leader had come the ledger knows.
func keepGauges(ctx context.Context, ledger *redisstore.Ledger, flushes []*flushJob) {
	names := make([]string, len(flushes))
	for i, f := range flushes {
		names[i] = f.config.Name
	}
	known := len(flushes) == 0
	for ctx.Err() == nil {
		if !known {
			states, err := ledger.Jobs(ctx, names)
			for i, st := range states {
				if !st.Fresh.IsZero() {
					flushes[i].fresh.CompareAndSwap(0, st.Fresh.UnixMilli())
				}
				flushes[i].metrics.JobSucceeded(names[i], st.LastSuccess)
			}
			known = err == nil
		}
		for _, f := range flushes {
			f.measure(ctx)
		}
		_ = rest(ctx, gaugeEvery)
	}
}
