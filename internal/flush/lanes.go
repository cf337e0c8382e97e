package flush

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pagesOf returns the maximum number of pages that all shards together hold in this number of lanes. Each lane writes one page. With
// several lanes, one more page waits for each lane. A reader holds one further page, which is not counted here.
func pagesOf(lanes int) int { return lanes + lanes*waitingOf(lanes) }

// waitingOf returns the number of pages that may wait for each lane. With several lanes, one page may wait for each lane, so that a busy
// lane does not delay the pages of the other lanes.
func waitingOf(lanes int) int { return min(1, lanes-1) }

// writing is the shared state of the lanes of one stage.
type writing struct {
	*run
	source    Source
	stage     Stage
	began     time.Time
	releasing sync.Mutex // the source's Done must not run twice at a time
}

// pages reads, converts and writes the pages, and removes them from the stage. One goroutine reads, and another converts. Each lane has one
// goroutine that writes a page. At the same time, another goroutine of the lane removes the lane's previous page from the stage. At most
// one page waits for a lane; converting.take limits the other pages. All goroutines have ended when pages returns.
func (r *run) pages(ctx context.Context, source Source, stage Stage, began time.Time) error {
	going, stop := context.WithCancelCause(ctx) // ends when the first page cannot be written
	defer stop(nil)
	lanes := make([]chan pendingPage, max(1, r.cfg.Lanes))
	for i := range lanes {
		lanes[i] = make(chan pendingPage, waitingOf(len(lanes)))
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
			return context.Cause(going) // the first failure, which also the reader has received from going
		}
	}
	return reading
}

// lane writes the pages of one lane in their order. Once another lane has failed, lane begins no further page. The method lane returns when
// the channel works is closed.
func (r *writing) lane(ctx, going context.Context, stop context.CancelCauseFunc, works <-chan pendingPage) (failed error) {
	released := make(chan error, 1) // the result for the previous page
	released <- nil
	for w := range works {
		if failed != nil || going.Err() != nil && ctx.Err() == nil {
			w.queued.end(context.Cause(going)) // the reader sent the page before it saw its cancellation
			w.queued.left(nil)
			<-r.underway
			continue
		}
		troubles := r.troubles.Load()
		failed = r.writeSafely(ctx, w)
		if troubles != r.troubles.Load() {
			w.space = nil // a connection that broke may still read the memory of a failed attempt
		}
		<-r.underway
		if failed != nil {
			stop(failed) // before end, so that the batches that wait for this page find the error
		}
		w.queued.end(failed)
		if err := <-released; failed == nil {
			failed = err
		}
		if failed != nil {
			stop(failed)
			w.queued.left(failed)
			released <- nil
			continue
		}
		go func() {
			err := r.release(ctx, w)
			r.reuse(w, err)
			w.queued.left(err)
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

// release waits until the previous page has been removed from the stage, and then removes this page, which has been committed.
func (r *writing) release(ctx context.Context, w pendingPage) (err error) {
	defer panicked(&err, "removing from", r.source)
	if err := w.queued.leave(); err != nil {
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

// reuse makes the memory of a small page available for another page, once the small page has left its stage. A page with a place in the
// commit queue is excluded, because its rows may still be compared with the rows of a later page.
func (r *writing) reuse(w pendingPage, err error) {
	if err == nil && w.space != nil && w.queued == nil && w.page.small() {
		r.spaces.Put(w.space)
		if w.page.Left != nil {
			w.page.Left()
		}
	}
}

// writeSafely calls write, and turns a panic into an error, because a panic in this goroutine would end the process.
func (r *writing) writeSafely(ctx context.Context, w pendingPage) (err error) {
	defer panicked(&err, "writing the records from", r.source)
	return r.write(ctx, w)
}

// write commits one batch.
func (r *writing) write(ctx context.Context, w pendingPage) error {
	b := &w.batch
	if len(b.Rows)+len(b.Dead)+len(b.Marks) == 0 && b.Move == nil {
		return w.queued.wait(ctx)
	}
	if err := w.queued.begin(ctx); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect()
	w.queued.hasBegun()
	err := r.applyInTurn(ctx, w)
	if err != nil && r.stop != nil {
		r.stop(err) // before another shard gets the connection
	}
	return err
}

// applyInTurn commits a batch. If the batch has a place in the commit queue, it is committed after the batches before it. Before its turn
// comes, applyInTurn may already write those of its rows that no earlier batch writes.
func (r *writing) applyInTurn(ctx context.Context, w pendingPage) error {
	if w.queued == nil || w.queued.before == nil {
		return r.commit(ctx, w)
	}
	if !r.ahead.try() {
		if err := w.queued.wait(ctx); err != nil {
			return err
		}
		return r.commit(ctx, w)
	}
	early := w.batch
	early.Rows, early.Late = w.queued.split()
	start := time.Now()
	early.AwaitTurn = func(ctx context.Context) error { return w.queued.waitAhead(ctx, time.Since(start)) }
	out, err := r.cfg.Sink.Apply(ctx, r.fence, r.m.Plan(), early)
	if errors.Is(err, ErrGaveWay) || errors.Is(err, ErrTransient) { // the batch is tried again in its turn
		if err := w.queued.wait(ctx); err != nil {
			return err
		}
		return r.commit(ctx, w)
	}
	if err == nil {
		r.ahead.went()
	}
	return r.applied(r.source, early, out, err, start, r.began)
}

// commit writes a batch whose turn has come. If the database rolls the batch back repeatedly, batches that were begun ahead of their turns
// may be the reason. Therefore the next runs do not begin batches ahead for a while.
func (r *writing) commit(ctx context.Context, w pendingPage) error {
	err := r.apply(ctx, r.source, w.batch, r.began)
	if w.queued != nil && errors.Is(err, ErrTransient) {
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
