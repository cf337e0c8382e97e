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

// InOrder is the Lane of a page that any lane may write, and that is committed after the
// page before it.
const InOrder = -1

// ErrGaveWay says that a batch was begun before its turn, and then held up earlier ones, or an earlier one has failed. Nothing was
// written.
var ErrGaveWay = errors.New("flush: batch gave way to the ones before it")

// mostPatience bounds how long a batch begun ahead of its turn waits without any commit: Retry.GiveWay plus twice the time that the batch
// itself took. A larger Retry.GiveWay counts alone. Earlier batches may wait for its locks, and no database detects that.
const mostPatience = time.Second

// mostApart bounds for how many batches none is begun ahead of its turn, after one has given way. The number doubles with each
// one that gives way.
const mostApart = 256

// turns are the batches of a stage that are committed in order, although several lanes write them. See "Lanes" in DESIGN.md.
type turns struct {
	plan    *row.Plan
	ahead   *ahead
	giveWay time.Duration

	mu       sync.Mutex
	last     *turn   // the newest one
	pending  []*turn // not committed, in their order
	progress chan struct{}
}

// turn is the place of one batch among them.
type turn struct {
	of       *turns
	rows     []row.Row
	before   *turn         // nil for the first, and once its own page has left the stage, or never will
	begun    chan struct{} // closed once it has a connection, or needs none
	over     chan struct{} // closed once the batch is committed, or never will be
	failed   error         // why it never will be; set before over is closed
	released chan struct{} // closed once its page has left the stage, or never will
	stuck    error         // why it never will; set before released is closed
	ends     [3]sync.Once
}

func (r *run) newTurns() *turns {
	return &turns{plan: r.m.Plan(), ahead: &r.ahead, giveWay: r.cfg.Retry.GiveWay, progress: make(chan struct{})}
}

// next is the turn of the newest batch.
func (q *turns) next(rows []row.Row) *turn {
	t := &turn{
		of: q, rows: rows, before: q.last,
		begun: make(chan struct{}), over: make(chan struct{}), released: make(chan struct{}),
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = t
	q.pending = append(q.pending, t)
	return t
}

// begin waits until the batch before has a connection: it must not wait for the connection that this one holds.
func (t *turn) begin(ctx context.Context) error {
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

// hasBegun: the batch has its connection.
func (t *turn) hasBegun() {
	if t != nil {
		t.ends[0].Do(func() { close(t.begun) })
	}
}

// end marks the batch as committed, or as failed with err: then no later batch is committed.
func (t *turn) end(err error) {
	if t == nil {
		return
	}
	t.hasBegun()
	q := t.of
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending = slices.DeleteFunc(q.pending, func(p *turn) bool { return p == t })
	t.ends[1].Do(func() {
		t.failed = err
		close(t.over)
	})
	close(q.progress)
	q.progress = make(chan struct{})
}

// leave waits until the page before has left the stage; it fails if that page failed to leave.
func (t *turn) leave() error {
	if t == nil || t.before == nil {
		return nil
	}
	<-t.before.released
	return t.before.stuck
}

// left marks the page as out of the stage, or as failed to leave with err.
func (t *turn) left(err error) {
	if t == nil {
		return
	}
	t.ends[2].Do(func() {
		t.before, t.rows, t.stuck = nil, nil, err
		close(t.released)
	})
}

// wait returns once all batches before this one are committed.
func (t *turn) wait(ctx context.Context) error {
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

// waitAhead is wait for a batch whose rows are written; took is how long that lasted. It gives way if nothing is committed for too long.
func (t *turn) waitAhead(ctx context.Context, took time.Duration) error {
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

// split divides the rows into those that may be written now, and those that an earlier batch writes, too.
func (t *turn) split() (now, late []row.Row) {
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

// splitKeys divides rows into those whose keys are in no other batch, and the rest. All of them are sorted by key.
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

// ahead decides whether batches are begun ahead of their turns. If batches hold each other up, each time costs the work done ahead: then
// none is begun ahead for a while, longer after each time.
type ahead struct {
	mu    sync.Mutex
	apart int // batches until the next try
	next  int // the next value of apart
	times int64
}

// try reports whether the next batch may be begun ahead.
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

// went counts a batch begun ahead that was committed.
func (a *ahead) went() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = max(a.next-1, 0)
}
