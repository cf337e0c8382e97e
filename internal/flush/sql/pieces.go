package sql

import (
	"context"
	"math"
	"sync"

	"baton/internal/flush/row"
)

// A batch with refused rows is written in pieces: the database accepts all rows of a piece, or no row of it. If the database points to the
// refused row, that row is set aside, and the rows before and after it form new pieces. Otherwise the piece is halved. The best size of
// pieces follows from the share of refused rows, which is remembered from batch to batch.

const (
	// pieceWorth is the cost of one more piece, as the number of values that cost as much.
	pieceWorth = 60
	// memoryRows is the number of rows after which older counts weigh half.
	memoryRows = 5000
)

// outcomeRates counts the rows that were tried, the rows that were refused, and the rows that an update could write after a refusal.
type outcomeRates struct {
	rows    float64 // rows that were tried
	refused float64
	rescued float64 // rows that were first refused, and then written by an update
}

// piece returns the best size of pieces for the given number of rows of a plan.
//
// Suppose that a piece has g rows, and that each row is refused with probability p. Then each row causes 1/g of the cost of one more piece,
// and p·g/2 rows that are written and then undone. The best size minimizes the sum of these costs. It is rounded to a power of two, because
// databases prepare a statement for each size.
func (t outcomeRates) piece(p *row.Plan, rows int) int {
	if refused := t.refused; refused > 0 {
		best := math.Sqrt(pieceWorth / float64(len(p.Columns)) * t.rows / refused)
		if g := 1 << max(0, int(math.Round(math.Log2(best)))); g < rows {
			return g
		}
	}
	return rows
}

// outcomeHistory remembers the outcomes for the rows of a plan from batch to batch.
type outcomeHistory struct {
	mu sync.Mutex
	outcomeRates
}

// expect predicts the outcomes for the given number of rows of the plan, and the best size of their first pieces. The size 0 means all rows
// in one piece.
func (h *outcomeHistory) expect(p *row.Plan, rows int) (t outcomeRates, piece int, updateFirst bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	keep := math.Exp2(-float64(rows) / memoryRows)
	t = outcomeRates{h.rows * keep, h.refused * keep, h.rescued * keep}
	if t.refused*float64(rows) <= t.rows/10 {
		return t, 0, false
	}
	if t.rescued > t.refused/2 {
		return t, outcomeRates{t.rows, t.refused - t.rescued, 0}.piece(p, rows), true
	}
	return t, t.piece(p, rows), false
}

// remember replaces the remembered counts.
func (h *outcomeHistory) remember(t outcomeRates) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outcomeRates = t
}

// rescue records that an update has written a row that an insert could not write.
func (h *outcomeHistory) rescue() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rescued++
}

func (s *Store) outcomesOf(p *row.Plan) *outcomeHistory {
	return s.outcomes.Get(p, func(*row.Plan) *outcomeHistory { return &outcomeHistory{} })
}

// refusedPiece is a piece that the database refused because of at least one row.
type refusedPiece struct {
	group
	Refusal
}

// writeGroup runs the tasks in the argument before, and then writes the rows of a group. It returns each refused row.
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

// remaining returns the rows of refused pieces that are still to be written, and the refused rows. The rows before a refused row have
// passed, so they are written next, all together. The rows after the refused row form pieces of the usual size. If the refused row of a
// piece is unknown, each half is a piece.
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
			part.rows = deletesFirst(part.rows) // the pieces may be in another order than their rows
			parts = append(parts, part)
		}
	}
	return parts, ones
}

// rescue retries rows that were refused together, and updates existing rows first, if this may help many of the rows. It returns the pieces
// that are still refused.
func (a *application) rescue(ctx context.Context, tx Session, refused []refusedPiece, seen *outcomeRates) ([]refusedPiece, error) {
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

// writeParts writes the rows of parts in pieces of the given size, and returns the pieces that are refused.
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

// count counts the outcomes of parts, including refused pieces, and returns the rates that are expected for the rows to be tried again. It
// counts the rows of a piece up to the refused row. If the refused row is unknown, these rows are counted when it has been found.
func (t *outcomeRates) count(parts []group, refused []refusedPiece) (expected outcomeRates) {
	var open outcomeRates
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
	return outcomeRates{rows: t.rows + open.rows, refused: t.refused + open.refused}
}

// refusedRow is a single row that was refused.
type refusedRow struct {
	group
	cause error
	// since is the number of rows of the batch that were written when this row was last tried alone.
	since   int64
	written bool
}

// never is the value of refusedRow.since for a row that was not tried alone yet, or not in every possible way.
const never = -1

// chunkAlone limits the number of rows that are tried alone in one round.
const chunkAlone = 250

// retry tries each refused row alone, and repeats this as long as more rows are written. A row may have been refused because of another row
// of its piece. Or it may refer to a row of the batch that was written later. The remaining rows become dead letters.
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

// alone tries each row alone. If an update may succeed where an upsert fails, it tries the update first. A row that cannot be inserted is
// only updated.
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

// inVain reports whether one statement has proved that the database would refuse each of these rows alone. The rows then become dead
// letters with the reasons of their earlier refusals.
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

// leastProbed is the minimum number of rows for a probe, because trying fewer rows alone costs less.
const leastProbed = 4

// updatesFirst reports whether one statement can update rows of the plan, and insert the others.
func (a *application) updatesFirst(p *row.Plan) bool {
	return a.store.dialect.UpdatesFirst != nil && a.store.dialect.UpdatesFirst(p)
}

// single returns the task that tries a row alone.
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
