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
)

const (
	// tellAfter is when a run begins to tell how far it is: most are over by then.
	tellAfter = 100 * time.Millisecond
	// tellEvery is how often it does, if there is anything new.
	tellEvery = 500 * time.Millisecond
	// tellTimeout bounds how long Redis may take over it; nobody waits for it, but for a
	// run that has ended meanwhile.
	tellTimeout = 250 * time.Millisecond
)

// tally counts what a run has done so far. Batches come from several goroutines.
type tally struct {
	rows, dead, batches atomic.Int64
	flushes             atomic.Int64 // that left nothing undone
}

func (t *tally) add(b flush.BatchStats) {
	t.rows.Add(b.Rows)
	t.dead.Add(b.Dead)
	t.batches.Add(1)
}

func (t *tally) reset() {
	for _, n := range []*atomic.Int64{&t.rows, &t.dead, &t.batches, &t.flushes} {
		n.Store(0)
	}
}

// tell tells others how far a run is until it is stopped: the gauges of this node, and
// in Redis whoever watches. It never holds the run up, and says little while there is
// nothing new: of a run that goes on and on that it is up to date.
func (f *flushJob) tell(ctx context.Context, r job.Run) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if Rest(ctx, tellAfter) != nil {
			return
		}
		backlog := int64(-1) // of a run that goes on and on it is not known how much is to come
		if !schedule.IsAlways(f.Schedule) {
			if n, err := f.Backlog(ctx); err == nil {
				backlog = n
			}
		}
		told := redisledger.Progress{Backlog: -2} // nothing yet
		fresh, at := false, time.Now()
		for ctx.Err() == nil {
			p := redisledger.Progress{Rows: f.done.rows.Load(), Dead: f.done.dead.Load(), Batches: f.done.batches.Load(), Backlog: backlog}
			done := f.done.flushes.Load() > 0
			again := schedule.IsAlways(f.Schedule) && time.Since(at) >= GaugeEvery
			if (p != told || done != fresh || again) && f.tellOnce(ctx, r, p, done) {
				told, fresh, at = p, done, time.Now()
			}
			_ = Rest(ctx, tellEvery)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

func (f *flushJob) tellOnce(ctx context.Context, r job.Run, p redisledger.Progress, done bool) bool {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	f.measure(ctx)
	var fresh time.Time
	if done && schedule.IsAlways(f.Schedule) {
		fresh = time.UnixMilli(f.fresh.Load())
	}
	_, err := f.ledger.Progress(ctx, r, p, fresh)
	return err == nil
}
