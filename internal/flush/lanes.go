package flush

import (
	"context"
	"sync"
	"time"
)

// pages reads, converts, writes and lets go. One goroutine reads and converts; each
// lane has one that writes, and one that takes the page that was written last out of
// the stage meanwhile. A lane has at most one page waiting, and the reader one more.
// All of them have ended when pages returns.
func (r *run) pages(ctx context.Context, source Source, stage Stage, began time.Time) error {
	going, stop := context.WithCancelCause(ctx) // ends with the first page that is not written
	defer stop(nil)
	lanes := make([]chan work, max(1, r.cfg.Lanes))
	for i := range lanes {
		lanes[i] = make(chan work, min(1, len(lanes)-1)) // a lane that waits for its page must not hold up the others
	}
	read := make(chan error, 1)
	go func() {
		err := r.read(going, source, stage, lanes)
		for _, works := range lanes {
			close(works)
		}
		read <- err
	}()
	var writing sync.WaitGroup
	failures := make([]error, len(lanes))
	for i, works := range lanes {
		writing.Go(func() {
			failures[i] = r.lane(ctx, going, stop, source, stage, works, began)
		})
	}
	writing.Wait()
	reading := <-read
	for _, failed := range failures {
		if failed != nil {
			return context.Cause(going) // the first of them; the reader, too, has it from there
		}
	}
	return reading
}

// lane writes the pages of one lane in their order. Once another lane has failed it
// begins no further one. It returns when works is closed.
func (r *run) lane(
	ctx, going context.Context, stop context.CancelCauseFunc, source Source, stage Stage, works <-chan work, began time.Time,
) (failed error) {
	released := make(chan error, 1) // what came of the page before
	released <- nil
	for w := range works {
		if failed != nil || going.Err() != nil && ctx.Err() == nil {
			continue // the reader was faster than its cancellation
		}
		failed = r.writeSafely(ctx, source, w, began)
		if err := <-released; failed == nil {
			failed = err
		}
		if failed != nil {
			stop(failed)
			released <- nil
			continue
		}
		go func() { released <- r.release(ctx, source, stage, w.page) }()
	}
	if err := <-released; failed == nil && err != nil {
		failed = err
		stop(failed)
	}
	return failed
}

// writeSafely is write in a goroutine of its own: a panic there would end the process.
func (r *run) writeSafely(ctx context.Context, source Source, w work, began time.Time) (err error) {
	defer panicked(&err, "writing what was read from", source)
	return r.write(ctx, source, w, began)
}
