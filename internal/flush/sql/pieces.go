package sql

import (
	"context"
	"math"
	"sync"

	"baton/internal/flush/row"
)

// A batch with refused rows is written in pieces: the database takes all rows of a piece, or no row of it. Where the database points to
// the refused row, that row is set aside, and the rows before and after it are pieces of their own; where it does not, the piece is
// halved. The best size of pieces follows from how often rows are refused, which is remembered from batch to batch.

const (
	// pieceWorth is the cost of one more piece, in values.
	pieceWorth = 60
	// memoryRows is the number of rows after which older counts weigh half.
	memoryRows = 5000
)

// tally counts the outcomes of rows.
type tally struct {
	rows    float64 // tried
	refused float64
	rescued float64 // refused at first, and written by an update
}

// piece is the best size of pieces for that many rows of a plan.
//
// With pieces of g rows, where each row is refused with probability p, a row bears 1/g of the cost of one more piece, and p·g/2 rows that
// are written in vain and undone. It is a power of two, since databases prepare a statement for each size.
func (t tally) piece(p *row.Plan, rows int) int {
	if refused := t.refused; refused > 0 {
		best := math.Sqrt(pieceWorth / float64(len(p.Columns)) * t.rows / refused)
		if g := 1 << max(0, int(math.Round(math.Log2(best)))); g < rows {
			return g
		}
	}
	return rows
}

// outcomeHistory remembers the outcomes for rows of a plan.
type outcomeHistory struct {
	mu sync.Mutex
	tally
}

// expect predicts the outcomes for that many rows of the plan, and the best size of their first pieces, 0 for all at once.
func (h *outcomeHistory) expect(p *row.Plan, rows int) (t tally, piece int, updateFirst bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := math.Exp2(-float64(rows) / memoryRows)
	t = tally{h.rows * keep, h.refused * keep, h.rescued * keep}
	if t.refused*float64(rows) <= t.rows/10 {
		return t, 0, false
	}
	if t.rescued > t.refused/2 {
		return t, tally{t.rows, t.refused - t.rescued, 0}.piece(p, rows), true
	}
	return t, t.piece(p, rows), false
}

// remember replaces the remembered counts.
func (h *outcomeHistory) remember(t tally) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tally = t
}

// rescue remembers that an update has written a row that was refused as a new one.
func (h *outcomeHistory) rescue() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rescued++
}

func (s *Store) outcomesOf(p *row.Plan) *outcomeHistory {
	return s.habits.Get(p, func(*row.Plan) *outcomeHistory { return &outcomeHistory{} })
}

// refusedPiece is a piece with at least one refused row.
type refusedPiece struct {
	group
	Refusal
}

// writeGroup runs the tasks before, and writes the rows of a group. It returns the refused rows, each set aside.
func (a *application) writeGroup(ctx context.Context, tx Session, before []Task, g group) (aside []refusedRow, err error) {
	h := a.store.outcomesOf(g.plan)
	seen, size, updateFirst := h.expect(g.plan, len(g.rows))
	g.updateFirst = updateFirst
	whole := size == 0
	for parts := []group{g}; len(parts) > 0; {
		refused, err := a.writeParts(ctx, tx, before, parts, size)
		if err != nil {
			return nil, err
		}
		size = seen.count(parts, refused).piece(g.plan, len(g.rows))
		if before = nil; whole && len(refused) > 0 {
			if refused, err = a.rescue(ctx, tx, refused, &seen); err != nil {
				return nil, err
			}
		}
		var ones []refusedRow
		parts, ones = remaining(refused)
		whole, aside = false, append(aside, ones...)
	}
	h.remember(seen)
	return aside, nil
}

// remaining returns the rows still to be written of refused pieces, and the refused rows. The rows before a refused row have passed: they
// are written next, all of them together. Those after it are pieces again, as large as others. Of a piece whose refused row is unknown,
// each half is a piece.
func remaining(refused []refusedPiece) (parts []group, ones []refusedRow) {
	var passed, untried group
	for _, r := range refused {
		n := len(r.rows)
		if n > 1 && r.At < 0 {
			r.most = (n + 1) / 2
			parts = append(parts, r.group)
			continue
		}
		at := max(0, r.At)
		ones = append(ones, refusedRow{group: r.of(at, at+1), cause: r.Cause, since: never})
		passed = passed.and(r.of(0, at))
		untried = untried.and(r.of(at+1, n))
	}
	passed.passed = true
	for _, part := range []group{passed, untried} {
		if len(part.rows) > 0 {
			part.rows = deletesFirst(part.rows) // pieces do not come in the order of their rows
			parts = append(parts, part)
		}
	}
	return parts, ones
}

// rescue tries rows that were refused at once again, with updates first, where that may help many of them. It returns those that are
// still refused.
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
		switch {
		case part.passed:
			t.Piece = 0
		case part.most > 0:
			t.Piece = min(size, part.most)
		}
		t.Refused = func(r Refusal) {
			piece := part.of(r.From, r.From+r.Size)
			piece.most, piece.passed = 0, false
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

// count counts the outcomes of parts, of pieces that were refused among them, and returns the expectation for the rows to be tried again.
// The rows of a piece are counted up to the refused one; where that is unknown, they are counted once it is found.
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

// refusedRow is a single row that was refused.
type refusedRow struct {
	group
	cause error
	// since is how many rows of the batch were written when this row was last tried alone.
	since   int64
	written bool
}

// never: a row was not tried alone yet, or not in every way.
const never = -1

// chunkAlone is how many single rows are tried in one go.
const chunkAlone = 250

// retry tries refused rows alone, as long as that helps: one may have been refused because of another row of its piece, or because it
// refers to a row of the batch that was written after it. The remaining rows are dead letters.
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

// alone tries each row alone, first as a mere update where that makes a difference. A row that cannot be inserted is only updated.
func (a *application) alone(ctx context.Context, tx Session, some []refusedRow) error {
	before := a.written
	var tried []*refusedRow
	var tasks []Task
	for i := range some {
		if l := &some[i]; l.since < before {
			l.since, tried = before, append(tried, l)
		}
	}
	if vain, err := a.inVain(ctx, tx, tried); vain || err != nil {
		return err
	}
	for _, l := range tried {
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

// inVain reports whether one statement has proved that the database would take no row of these if each were tried alone. Each row keeps
// the reason of its refusal.
func (a *application) inVain(ctx context.Context, tx Session, tried []*refusedRow) (vain bool, err error) {
	if !a.store.dialect.Probes || len(tried) < leastProbed {
		return false, nil
	}
	probe := Task{Plan: tried[0].plan, Probe: true, Update: tried[0].judgedApart()}
	for _, l := range tried {
		if l.plan != probe.Plan || l.replace || l.needs != nil || l.rows[0].Delete {
			return false, nil
		}
		probe.Rows = append(probe.Rows, l.rows[0])
	}
	probe.Then = func(touched int64) error {
		vain = touched == 0
		return nil
	}
	return vain, tx.Run(ctx, probe)
}

// leastProbed: fewer rows cost less if tried alone.
const leastProbed = 4

// updatesFirst reports whether one statement updates rows of the plan, and inserts the others.
func (a *application) updatesFirst(p *row.Plan) bool {
	return a.store.dialect.UpdatesFirst != nil && a.store.dialect.UpdatesFirst(p)
}

// single is the task that tries a row alone.
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
				a.store.outcomesOf(l.plan).rescue()
			}
		}
		return nil
	}
	return t
}
