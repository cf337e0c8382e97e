package flush

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/internal/flush/row"
)

// InOrder is the value of Page.Lane for a page that any lane may write. Such a page is committed after the previous page of its stage.
const InOrder = -1

// ErrGaveWay means that a batch was begun before its turn and then given up, because it delayed earlier batches or because an earlier batch
// has failed. Nothing was written.
var ErrGaveWay = errors.New("flush: batch was rolled back, so that earlier batches can commit first")

// mostPatience limits how long a batch that was begun ahead of its turn waits while no batch commits. The batch waits for Retry.GiveWay
// plus twice the time in which it wrote its rows. It waits no longer than mostPatience, unless Retry.GiveWay is longer. The wait is
// limited, because earlier batches may wait for the locks of this batch, and no database detects that.
const mostPatience = time.Second

// mostApart limits how many batches must be begun in their turn after a batch has given way; only then may a batch be begun ahead again.
// This number of batches doubles each time that a batch gives way.
const mostApart = 256

// commitQueue holds the batches of one stage. Several lanes write these batches, but the batches are committed in order. See "Lanes" in
// DESIGN.md.
type commitQueue struct {
	plan    *row.Plan
	ahead   *ahead
	giveWay time.Duration

	mu       sync.Mutex
	last     *queuedBatch   // the newest batch
	pending  []*queuedBatch // batches that are not committed, in their order
	progress chan struct{}
}

// queuedBatch is the place of one batch in the order in which the batches of a stage are committed.
type queuedBatch struct {
	of   *commitQueue
	rows []row.Row
	// The previous batch; nil for the first batch, and after this batch's page has left the stage or has failed to leave.
	before   *queuedBatch
	begun    chan struct{} // closed when this batch has a connection, or needs no connection
	over     chan struct{} // closed when the batch is committed, or can no longer be committed
	failed   error         // why the batch can no longer be committed; set before over is closed
	released chan struct{} // closed when the batch's page has left the stage, or has failed to leave
	stuck    error         // why the page has failed to leave; set before released is closed
	ends     [3]sync.Once
}

func (r *run) newCommitQueue() *commitQueue {
	return &commitQueue{plan: r.m.Plan(), ahead: &r.ahead, giveWay: r.cfg.Retry.GiveWay, progress: make(chan struct{})}
}

// next adds a new batch to the end of the queue, and returns its place.
func (q *commitQueue) next(rows []row.Row) *queuedBatch {
	t := &queuedBatch{
		of: q, rows: rows, before: q.last,
		begun: make(chan struct{}), over: make(chan struct{}), released: make(chan struct{}),
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = t
	q.pending = append(q.pending, t)
	return t
}

// begin waits until the previous batch has a connection. Otherwise the previous batch could wait for the connection of this batch, while
// this batch waits for the previous batch.
func (t *queuedBatch) begin(ctx context.Context) error {
	if t == nil || t.before == nil {
		return nil
	}
	select {
	case <-t.before.begun:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hasBegun records that the batch has its connection.
func (t *queuedBatch) hasBegun() {
	if t != nil {
		t.ends[0].Do(func() { close(t.begun) })
	}
}

// end marks the batch as committed, or as failed with err. After a failure no later batch is committed.
func (t *queuedBatch) end(err error) {
	if t == nil {
		return
	}
	t.hasBegun()
	q := t.of
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = slices.DeleteFunc(q.pending, func(p *queuedBatch) bool { return p == t })
	t.ends[1].Do(func() {
		t.failed = err
		close(t.over)
	})
	close(q.progress)
	q.progress = make(chan struct{})
}

// leave waits until the previous page has been removed from the stage. It returns an error if that removal failed.
func (t *queuedBatch) leave() error {
	if t == nil || t.before == nil {
		return nil
	}
	<-t.before.released
	return t.before.stuck
}

// left records that the page has been removed from the stage, or that the removal failed with err.
func (t *queuedBatch) left(err error) {
	if t == nil {
		return
	}
	t.ends[2].Do(func() {
		t.before, t.rows, t.stuck = nil, nil, err
		close(t.released)
	})
}

// wait returns once all batches before this one are committed.
func (t *queuedBatch) wait(ctx context.Context) error {
	if t == nil || t.before == nil {
		return nil
	}
	select {
	case <-t.before.over:
		return t.before.failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitAhead works like wait, for a batch that has written its rows before its turn. The argument took is the duration of this writing. The
// batch gives way if no batch commits for too long.
func (t *queuedBatch) waitAhead(ctx context.Context, took time.Duration) error {
	patience := max(t.of.giveWay, min(t.of.giveWay+2*took, mostPatience))
	for {
		t.of.mu.Lock()
		progress := t.of.progress
		t.of.mu.Unlock()
		select {
		case <-t.before.over:
			if err := t.before.failed; err != nil {
				return fmt.Errorf("%w: %w", ErrGaveWay, err)
			}
			return nil
		case <-progress:
		case <-time.After(patience):
			t.of.ahead.gaveWay()
			return ErrGaveWay
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrGaveWay, context.Cause(ctx))
		}
	}
}

// split divides the rows of the batch. The result late contains the rows whose keys an earlier batch also writes. The result now contains
// all other rows, which may be written immediately.
func (t *queuedBatch) split() (now, late []row.Row) {
	q := t.of
	q.mu.Lock()
	var others [][]row.Row
	for _, p := range q.pending {
		if p == t {
			break
		}
		others = append(others, p.rows)
	}
	q.mu.Unlock()
	if len(q.plan.Key) == 0 {
		return t.rows, nil
	}
	return splitKeys(q.plan, t.rows, others)
}

// splitKeys divides rows. The result now contains the rows whose keys are in none of the other batches, and the result late contains the
// remaining rows. Each element of the argument others is one such batch. All these lists of rows must be sorted by key.
func splitKeys(plan *row.Plan, rows []row.Row, others [][]row.Row) (now, late []row.Row) {
	shared := make([]bool, len(rows))
	n := 0
	for _, other := range others {
		for i, j := 0, 0; i < len(rows) && j < len(other); {
			switch c := plan.CompareKeys(&rows[i], &other[j]); {
			case c < 0:
				i++
			case c > 0:
				j++
			default:
				if !shared[i] {
					n++
				}
				shared[i] = true
				i++
				j++
			}
		}
	}
	if n == 0 {
		return rows, nil
	}
	now, late = make([]row.Row, 0, len(rows)-n), make([]row.Row, 0, n)
	for i, s := range shared {
		if s {
			late = append(late, rows[i])
		} else {
			now = append(now, rows[i])
		}
	}
	return now, late
}

// ahead decides whether batches are begun ahead of their turns. If batches delay each other, the work done ahead is wasted. After each such
// delay no batch is begun ahead for a while, and after every further delay for a longer while.
type ahead struct {
	mu    sync.Mutex
	apart int // the number of batches until a batch is begun ahead again
	next  int // the next value of apart
	times int64
}

// try reports whether the next batch may be begun ahead of its turn.
func (a *ahead) try() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.apart > 0 {
		a.apart--
		return false
	}
	return true
}

func (a *ahead) gaveWay() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = min(max(2*a.next, 2), mostApart)
	a.apart = a.next
	a.times++
}

// went counts a batch that was begun ahead and was committed.
func (a *ahead) went() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = max(a.next-1, 0)
}
