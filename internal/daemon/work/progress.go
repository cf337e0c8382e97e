package work

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"baton/internal/flush"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
	"baton/internal/trace"
)

const (
	// reportAfter is how long a run must last before it begins to report its progress, because most runs end earlier.
	reportAfter = 100 * time.Millisecond
	// reportEvery is the interval between two reports of a run, if there is news.
	reportEvery = 500 * time.Millisecond
	// reportTimeout limits the time that Redis has for a report. Only a run that ends during the report waits for it.
	reportTimeout = 250 * time.Millisecond
)

// runTotals holds the results of a run so far. Several goroutines add the results of their batches to it.
type runTotals struct {
	rows, deleted, dead, batches atomic.Int64
	flushes                      atomic.Int64 // number of flushes that left nothing undone
	written                      atomic.Int64 // rows of all runs
	// waits is one more than the number of rows that wait to be accepted as rows of the job; 0 means unknown.
	waits  atomic.Int64
	during atomic.Pointer[trace.Context] // the span that is the parent of batches; nil: none
}

func (t *runTotals) add(b flush.BatchStats) {
	t.rows.Add(b.Rows)
	t.written.Add(b.Rows)
	t.deleted.Add(b.Deleted)
	t.dead.Add(b.Dead)
	t.batches.Add(1)
}

func (t *runTotals) reset() {
	for _, n := range []*atomic.Int64{&t.rows, &t.deleted, &t.dead, &t.batches, &t.flushes} {
		n.Store(0)
	}
}

// report reports the progress of a run until its caller calls stop. It reports in the gauges of this node, and in Redis for the other
// nodes. It never delays the run. If nothing has changed, it reports only for a run without an end, and then only that this run is up to
// date.
func (f *flushJob) report(ctx context.Context, r job.Run) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if Rest(ctx, reportAfter) != nil {
			return
		}
		backlog := int64(-1) // for a run without an end the rest of the work is unknown
		if !schedule.IsAlways(f.Schedule) {
			if n, err := f.Backlog(ctx); err == nil {
				backlog = n
			}
		}
		reported := redisledger.Progress{Backlog: -2} // nothing yet
		fresh, at := false, time.Now()
		for ctx.Err() == nil {
			p := redisledger.Progress{Rows: f.done.rows.Load(), Dead: f.done.dead.Load(), Batches: f.done.batches.Load(), Backlog: backlog}
			done := f.done.flushes.Load() > 0
			again := schedule.IsAlways(f.Schedule) && time.Since(at) >= GaugeEvery
			if (p != reported || done != fresh || again) && f.reportOnce(ctx, r, p, done) {
				reported, fresh, at = p, done, time.Now()
			}
			_ = Rest(ctx, reportEvery)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (f *flushJob) reportOnce(ctx context.Context, r job.Run, p redisledger.Progress, done bool) bool {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	f.measure(ctx)
	var fresh time.Time
	if done && schedule.IsAlways(f.Schedule) {
		fresh = time.Unix(0, f.fresh.Load())
	}
	_, err := f.ledger.Progress(ctx, r, p, fresh)
	return err == nil
}
