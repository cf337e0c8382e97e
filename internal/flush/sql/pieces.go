package sql

import (
	"context"
	"math"
	"sync"

	"baton/internal/flush/row"
)

// A batch in which rows are refused is written in pieces: of a piece the database takes all rows
// or none. Where it says which row is at fault, that one is set aside, and the rows before and
// after it are pieces of their own; where it does not, the piece is halved. The best size of
// pieces follows from how often rows are refused, which is remembered from batch to batch.

const (
	// pieceWorth is what one more piece costs, in rows.
	pieceWorth = 8
	// memoryRows is after how many rows what was known before them counts half.
	memoryRows = 5000
)

// tally counts what came of rows.
type tally struct {
	rows    float64 // that were tried
	refused float64
	rescued float64 // of those that were refused, those that an update has written
}

// piece is the best size of pieces for so many rows.
//
// With pieces of g rows, each of which is refused with probability p, a row bears 1/g of what
// another piece costs, and p·g/2 rows written in vain, and undone.
func (t tally) piece(rows int) int {
	if refused := t.refused; refused > 0 {
		if g := int(math.Sqrt(pieceWorth * t.rows / refused)); g < rows {
			return max(1, g)
		}
	}
	return rows
}

// habit is what is remembered of the rows of a plan.
type habit struct {
	mu sync.Mutex
	tally
}

// expect is what is to be expected of so many rows: in which pieces they are best begun, 0 if at
// once.
func (h *habit) expect(rows int) (t tally, piece int, updateFirst bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := math.Exp2(-float64(rows) / memoryRows)
	t = tally{h.rows * keep, h.refused * keep, h.rescued * keep}
	if t.refused*float64(rows) <= t.rows/10 {
		return t, 0, false
	}
	if t.rescued > t.refused/2 {
		return t, tally{t.rows, t.refused - t.rescued, 0}.piece(rows), true
	}
	return t, t.piece(rows), false
}

// remember replaces what was known.
func (h *habit) remember(t tally) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tally = t
}

// rescue remembers that an update has written a row that was refused as a new one.
func (h *habit) rescue() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rescued++
}

func (s *Store) habit(p *row.Plan) *habit {
	return s.habits.Get(p, func(*row.Plan) *habit { return &habit{} })
}

// refusedPiece is rows of which one at least was refused.
type refusedPiece struct {
	group
	Refusal
}

// writeGroup does what comes before the rows of a group, and writes them. It returns those that
// are refused, each set aside.
func (a *application) writeGroup(ctx context.Context, tx Session, before []Task, g group) (aside []refusedRow, err error) {
	h := a.store.habit(g.plan)
	seen, size, updateFirst := h.expect(len(g.rows))
	g.updateFirst = updateFirst
	whole := size == 0
	for parts := []group{g}; len(parts) > 0; {
		refused, err := a.writeParts(ctx, tx, before, parts, size)
		if err != nil {
			return nil, err
		}
		size = seen.count(parts, refused).piece(len(g.rows))
		if before = nil; whole && len(refused) > 0 {
			if refused, err = a.rescue(ctx, tx, refused, &seen); err != nil {
				return nil, err
			}
		}
		whole, parts = false, nil
		for _, r := range refused {
			left, one := r.split()
			parts = append(parts, left...)
			if len(one.rows) > 0 {
				aside = append(aside, refusedRow{group: one, cause: r.Cause, since: never})
			}
		}
	}
	h.remember(seen)
	return aside, nil
}

// rescue tries rows that were refused at once again, with updates first, where that may make a
// difference to many of them. It returns those that are still refused.
func (a *application) rescue(ctx context.Context, tx Session, refused []refusedPiece, seen *tally) ([]refusedPiece, error) {
	if !a.updatesFirst(refused[0].plan) || !refused[0].judgedApart() {
		return refused, nil
	}
	var left []refusedPiece
	for _, r := range refused {
		again := r.group
		again.updateFirst = true
		still, err := a.writeParts(ctx, tx, nil, []group{again}, 0)
		if err != nil {
			return nil, err
		}
		if len(still) > 0 {
			left = append(left, r)
			continue
		}
		seen.refused++
		seen.rescued++
	}
	return left, nil
}

// writeParts writes some rows in pieces of a size, and returns the pieces that are refused.
func (a *application) writeParts(
	ctx context.Context, tx Session, tasks []Task, parts []group, size int,
) (refused []refusedPiece, err error) {
	for _, part := range parts {
		t := a.task(part)
		t.Piece = size
		if part.most > 0 {
			t.Piece = min(size, part.most)
		}
		t.Refused = func(r Refusal) {
			piece := part.of(r.From, r.From+r.Size)
			piece.most = 0
			refused = append(refused, refusedPiece{piece, r})
		}
		tasks = append(tasks, t)
	}
	if err := tx.Run(ctx, tasks...); err != nil {
		return nil, err
	}
	for _, part := range parts {
		a.written += int64(len(part.rows))
	}
	for _, r := range refused {
		a.written -= int64(r.Size)
	}
	return refused, nil
}

// count counts what came of parts, of which some pieces were refused, and returns what is to be
// expected of those that are to be tried again. The rows of a piece are counted up to that which
// is at fault; where that is not known, once it is.
func (t *tally) count(parts []group, refused []refusedPiece) (expected tally) {
	var open tally
	for _, part := range parts {
		t.rows += float64(len(part.rows))
	}
	for _, r := range refused {
		t.rows -= float64(r.Size)
		switch {
		case r.At >= 0 || r.Size == 1:
			t.rows += float64(max(0, r.At) + 1)
			t.refused++
		default:
			open.rows += float64(r.Size)
			open.refused++
		}
	}
	return tally{rows: t.rows + open.rows, refused: t.refused + open.refused}
}

// split parts a piece into the row that is at fault, if that is known, and what is to be tried
// again.
func (r refusedPiece) split() (left []group, one group) {
	n := len(r.rows)
	switch {
	case n == 1:
		return nil, r.group
	case r.At >= 0:
		for _, part := range []group{r.of(0, r.At), r.of(r.At+1, n)} {
			if len(part.rows) > 0 {
				left = append(left, part)
			}
		}
		return left, r.of(r.At, r.At+1)
	}
	r.most = (n + 1) / 2
	return []group{r.group}, one
}

// refusedRow is a single row that was refused.
type refusedRow struct {
	group
	cause error
	// since is how many rows of the batch were written when it was last tried by itself.
	since   int64
	written bool
}

// never: a row was not tried by itself yet, or not in every way.
const never = -1

// chunkAlone is how many single rows are tried in one go.
const chunkAlone = 250

// retry tries rows that were refused by themselves, for as long as it helps: one may have been
// refused because of another of its piece, and one may have referred to another row of the batch
// that was written after it. What remains are dead letters.
func (a *application) retry(ctx context.Context, tx Session, aside []refusedRow) error {
	for again := true; again; {
		again = false
		for from := 0; from < len(aside); from += chunkAlone {
			some := aside[from:min(from+chunkAlone, len(aside))]
			if err := a.alone(ctx, tx, some); err != nil {
				return err
			}
		}
		left := aside[:0]
		for _, l := range aside {
			if !l.written {
				left = append(left, l)
				again = again || l.since < a.written
			}
		}
		aside = left
	}
	for _, l := range aside {
		a.dead = append(a.dead, a.letter(l.plan, l.rows[0], l.cause))
	}
	return nil
}

// alone tries rows each by itself, where that makes a difference as a mere update first. A row
// that cannot be inserted is only updated.
func (a *application) alone(ctx context.Context, tx Session, some []refusedRow) error {
	before := a.written
	var tried []*refusedRow
	var tasks []Task
	for i := range some {
		l := &some[i]
		if l.since >= before {
			continue
		}
		l.since, tried = before, append(tried, l)
		switch {
		case l.rows[0].Delete:
		case l.needs != nil && l.updates(), l.judgedApart() && !a.updatesFirst(l.plan):
			tasks = append(tasks, a.single(l, true))
		}
	}
	if err := tx.Run(ctx, tasks...); err != nil {
		return err
	}
	tasks = nil
	for _, l := range tried {
		if !l.written && l.needs == nil {
			tasks = append(tasks, a.single(l, false))
		}
	}
	return tx.Run(ctx, tasks...)
}

// updatesFirst reports whether one statement updates rows of the plan, and inserts the others.
func (a *application) updatesFirst(p *row.Plan) bool {
	return a.store.dialect.UpdatesFirst != nil && a.store.dialect.UpdatesFirst(p)
}

// single is the task that tries a row by itself.
func (a *application) single(l *refusedRow, update bool) Task {
	t := a.task(l.group)
	t.UpdateFirst = l.judgedApart() && a.updatesFirst(l.plan)
	if update {
		t = l.task()
		t.Update = true
	}
	refused := false
	t.Piece = 1
	t.Refused = func(r Refusal) { refused, l.cause = true, r.Cause }
	t.Then = func(touched int64) error {
		if !refused && (!update || touched > 0) {
			l.written = true
			a.written++
			if update && l.needs == nil {
				a.store.habit(l.plan).rescue()
			}
		}
		return nil
	}
	return t
}
