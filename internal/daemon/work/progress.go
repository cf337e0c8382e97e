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
	// reportAfter is when a run begins to report its progress: most runs are over by then.
	reportAfter = 100 * time.Millisecond
	// reportEvery is how often it does, if there is news.
	reportEvery = 500 * time.Millisecond
	// reportTimeout bounds Redis' time for a report; only a run that has ended meanwhile waits for it.
	reportTimeout = 250 * time.Millisecond
)

// tally counts the results of a run so far. Batches come from several goroutines.
type tally struct {
	rows, deleted, dead, batches atomic.Int64
	flushes                      atomic.Int64 // that left nothing undone
	written                      atomic.Int64 // rows of all runs
	// waits is one more than the number of rows that wait to be accepted as the job's; 0: unknown.
	waits  atomic.Int64
	during atomic.Pointer[trace.Context] // the span that batches belong to; nil: none
}

func (t *tally) add(b flush.BatchStats) {
	t.rows.Add(b.Rows)
	t.written.Add(b.Rows)
	t.deleted.Add(b.Deleted)
	t.dead.Add(b.Dead)
	t.batches.Add(1)
}

func (t *tally) reset() {
	for _, n := range []*atomic.Int64{&t.rows, &t.deleted, &t.dead, &t.batches, &t.flushes} {
		n.Store(0)
	}
}

// report reports the progress of a run until it is stopped: in the gauges of this node, and in Redis for others. It never holds the run
// up, and reports little without news: of a run without end only that it is up to date.
func (f *flushJob) report(ctx context.Context, r job.Run) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if Rest(ctx, reportAfter) != nil {
			return
		}
		backlog := int64(-1) // for a run without end the rest of its work is unknown
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
