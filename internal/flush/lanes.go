package flush

import (
	"context"
	"errors"
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
			w.turn.end(context.Cause(going)) // the reader was faster than its cancellation
			w.turn.left(nil)
			continue
		}
		failed = r.writeSafely(ctx, source, w, began)
		if failed != nil {
			stop(failed) // before those that wait for this page's turn hear of it
		}
		w.turn.end(failed)
		if err := <-released; failed == nil {
			failed = err
		}
		if failed != nil {
			stop(failed)
			w.turn.left(failed)
			released <- nil
			continue
		}
		go func() {
			err := r.release(ctx, source, stage, w)
			w.turn.left(err)
			released <- err
		}()
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

// write commits one batch.
func (r *run) write(ctx context.Context, source Source, w work, began time.Time) error {
	b := &w.batch
	if len(b.Rows)+len(b.Dead)+len(b.Marks) == 0 && b.Move == nil {
		return w.turn.wait(ctx)
	}
	if err := w.turn.begin(ctx); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect()
	w.turn.hasBegun()
	if w.turn == nil || w.turn.before == nil {
		return r.apply(ctx, source, w.batch, began)
	}
	return r.applyInTurn(ctx, source, w, began)
}

// applyInTurn commits a batch behind those before it, and writes ahead of its turn what none
// of them writes.
func (r *run) applyInTurn(ctx context.Context, source Source, w work, began time.Time) error {
	if !r.ahead.try() {
		if err := w.turn.wait(ctx); err != nil {
			return err
		}
		return r.apply(ctx, source, w.batch, began)
	}
	early := w.batch
	early.Rows, early.Late = w.turn.split()
	start := time.Now()
	early.Turn = func(ctx context.Context) error { return w.turn.waitAhead(ctx, time.Since(start)) }
	out, err := r.cfg.Sink.Apply(ctx, r.fence, r.m.Plan(), early)
	if errors.Is(err, ErrGaveWay) || errors.Is(err, ErrTransient) { // again, with nothing ahead
		if err := w.turn.wait(ctx); err != nil {
			return err
		}
		return r.apply(ctx, source, w.batch, began)
	}
	if err == nil {
		r.ahead.went()
	}
	return r.applied(source, out, err, start, began)
}

// connect waits for one of the connections that all shards of the job share.
func (r *run) connect(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err
	}
	select {
	case r.connections <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *run) disconnect() { <-r.connections }
