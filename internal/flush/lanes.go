package flush

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pagesOf is how many pages of all shards may be with that many lanes: each lane has one that it writes, and with several lanes one that
// waits. A reader has one more in its hand.
func pagesOf(lanes int) int { return lanes + lanes*waitingOf(lanes) }

// waitingOf is how many pages wait for a lane: one that waits for its page must not hold up the
// others.
func waitingOf(lanes int) int { return min(1, lanes-1) }

// writing is the shared state of the lanes of one stage.
type writing struct {
	*run
	source    Source
	stage     Stage
	began     time.Time
	releasing sync.Mutex // a source's Done is called once at a time
}

// pages reads, converts and writes the pages, and releases them. One goroutine reads and another one converts; each lane has one that
// writes, and one that meanwhile takes the page before out of the stage. A lane has at most one page waiting; for the others see
// converting.take. All of them have ended when pages returns.
func (r *run) pages(ctx context.Context, source Source, stage Stage, began time.Time) error {
	going, stop := context.WithCancelCause(ctx) // ends with the first page that is not written
	defer stop(nil)
	lanes := make([]chan work, max(1, r.cfg.Lanes))
	for i := range lanes {
		lanes[i] = make(chan work, waitingOf(len(lanes)))
	}
	read := make(chan error, 1)
	go func() {
		err := r.read(going, source, stage, lanes)
		for _, works := range lanes {
			close(works)
		}
		read <- err
	}()
	var running sync.WaitGroup
	failures := make([]error, len(lanes))
	all := &writing{run: r, source: source, stage: stage, began: began}
	for i, works := range lanes {
		running.Go(func() { failures[i] = all.lane(ctx, going, stop, works) })
	}
	running.Wait()
	reading := <-read
	for _, failed := range failures {
		if failed != nil {
			return context.Cause(going) // the first failure; the reader gets it from there, too
		}
	}
	return reading
}

// lane writes the pages of one lane in their order. Once another lane has failed it
// begins no further one. It returns when works is closed.
func (r *writing) lane(ctx, going context.Context, stop context.CancelCauseFunc, works <-chan work) (failed error) {
	released := make(chan error, 1) // the result for the page before
	released <- nil
	for w := range works {
		if failed != nil || going.Err() != nil && ctx.Err() == nil {
			w.turn.end(context.Cause(going)) // the reader was faster than its cancellation
			w.turn.left(nil)
			<-r.underway
			continue
		}
		troubles := r.troubles.Load()
		failed = r.writeSafely(ctx, w)
		if troubles != r.troubles.Load() {
			w.space = nil // a broken connection may still read the memory of a failed attempt
		}
		<-r.underway
		if failed != nil {
			stop(failed) // before the batches that wait for this page's turn get the error
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
			err := r.release(ctx, w)
			r.reuse(w, err)
			w.turn.left(err)
			w.settle()
			released <- err
		}()
	}
	if err := <-released; failed == nil && err != nil {
		failed = err
		stop(failed)
	}
	return failed
}

// release takes a committed page out of its stage, after the page before.
func (r *writing) release(ctx context.Context, w work) (err error) {
	defer panicked(&err, "removing from", r.source)
	if err := w.turn.leave(); err != nil {
		return err
	}
	r.releasing.Lock()
	defer r.releasing.Unlock()
	if s, ok := r.source.(Releaser); ok {
		if err := s.Done(ctx, r.stage, w.page); err != nil {
			return failedSource(ctx, "remove the flushed records from", r.source, err)
		}
	}
	return nil
}

// reuse lets another page have the space of a page that has left its stage, if it is small. The rows of a page with a turn may still be
// compared with those of a later page.
func (r *writing) reuse(w work, err error) {
	if err == nil && w.space != nil && w.turn == nil && w.page.small() {
		r.spaces.Put(w.space)
		if w.page.Left != nil {
			w.page.Left()
		}
	}
}

// writeSafely is write in a goroutine of its own: a panic there would end the process.
func (r *writing) writeSafely(ctx context.Context, w work) (err error) {
	defer panicked(&err, "writing the records from", r.source)
	return r.write(ctx, w)
}

// write commits one batch.
func (r *writing) write(ctx context.Context, w work) error {
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
	err := r.applyInTurn(ctx, w)
	if err != nil && r.stop != nil {
		r.stop(err) // before another shard has the connection
	}
	return err
}

// applyInTurn commits a batch after those before it, if it has a turn. Ahead of its turn it writes the rows that no batch before it
// writes.
func (r *writing) applyInTurn(ctx context.Context, w work) error {
	if w.turn == nil || w.turn.before == nil {
		return r.commit(ctx, w)
	}
	if !r.ahead.try() {
		if err := w.turn.wait(ctx); err != nil {
			return err
		}
		return r.commit(ctx, w)
	}
	early := w.batch
	early.Rows, early.Late = w.turn.split()
	start := time.Now()
	early.Turn = func(ctx context.Context) error { return w.turn.waitAhead(ctx, time.Since(start)) }
	out, err := r.cfg.Sink.Apply(ctx, r.fence, r.m.Plan(), early)
	if errors.Is(err, ErrGaveWay) || errors.Is(err, ErrTransient) { // again, without writing ahead
		if err := w.turn.wait(ctx); err != nil {
			return err
		}
		return r.commit(ctx, w)
	}
	if err == nil {
		r.ahead.went()
	}
	return r.applied(r.source, early, out, err, start, r.began)
}

// commit writes a batch whose turn has come. If the database rolls it back again and again, the batches that were begun ahead may be the
// reason: the next run begins none ahead for a while.
func (r *writing) commit(ctx context.Context, w work) error {
	err := r.apply(ctx, r.source, w.batch, r.began)
	if w.turn != nil && errors.Is(err, ErrTransient) {
		r.ahead.gaveWay()
	}
	return err
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
