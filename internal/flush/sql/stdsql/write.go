package stdsql

import (
	"context"
	"errors"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// rowWriter writes rows of one operation, in the order in which it gets them.
type rowWriter interface {
	// Write returns how many rows are written. If the database refused a row, Write also returns how many rows after the written ones may
	// be the refused row.
	Write(ctx context.Context, s *Session, p *row.Plan, rows []row.Row, remove bool) (done, doubt int, err error)
	// Update changes an existing row. touched is 0 if no such row exists.
	Update(ctx context.Context, s *Session, p *row.Plan, row *row.Row) (touched int64, err error)
}

// rows writes the rows of a task. If the task expects that rows are refused, it writes them in pieces.
func (s *Session) rows(ctx context.Context, t sql.Task) (touched int64, err error) {
	s.Ignored, s.Deleted = 0, 0
	s.Guarded = t.Guarded()
	for from := 0; from < len(t.Rows); {
		piece := t
		if t.Guarded() {
			piece.Rows = t.Rows[from:min(from+t.Piece, len(t.Rows))]
		} else {
			piece.Rows = t.Rows[from:]
		}
		n, err := s.piece(ctx, piece)
		touched += n
		from += len(piece.Rows)
		if refused := (*sql.Refusal)(nil); errors.As(err, &refused) && t.Refused != nil {
			refused.From += from - len(piece.Rows)
			from = refused.From + refused.Size
			t.Refused(*refused)
		} else if err != nil {
			return touched, err
		}
	}
	t.Left(s.Ignored)
	t.Gone(s.Deleted)
	return touched, nil
}

// piece writes rows as a whole, or not at all. The databases of this package undo a refused statement completely, so no savepoint is
// needed.
func (s *Session) piece(ctx context.Context, t sql.Task) (touched int64, err error) {
	done, doubt := 0, len(t.Rows)
	switch {
	case t.Update:
		touched, err = s.Parent.Writer.Update(ctx, s, t.Plan, &t.Rows[0])
	case t.Replace:
		done, doubt, err = s.replace(ctx, t)
		touched = int64(done)
	default:
		deletes := sql.CountDeletes(t.Rows)
		done, doubt, err = s.Parent.Writer.Write(ctx, s, t.Plan, t.Rows[:deletes], true)
		if err == nil {
			done, doubt, err = s.Parent.Writer.Write(ctx, s, t.Plan, t.Rows[deletes:], false)
			done += deletes
		}
		touched = int64(done)
	}
	if err == nil || !s.Parent.Refused(err) {
		return touched, err
	}
	if s.Parent.Intact != nil {
		if gone := s.Parent.Intact(ctx, s, err); gone != nil {
			return 0, gone
		}
	}
	refused := &sql.Refusal{From: done, Size: doubt, At: unknown, Cause: err}
	if s.Parent.Culprit != nil && doubt > 1 && !t.Replace {
		if refused.At, err = s.Parent.Culprit(ctx, s, t.Plan, err, doubt); err != nil {
			return touched, err
		}
	}
	return touched, refused
}

// unknown means that the database does not report which row is at fault.
const unknown = -1

// These statements are sent before and after the statements that replace rows.
const (
	sqlSavepoint = "SAVEPOINT baton_rows"
	sqlUndo      = "ROLLBACK TO SAVEPOINT baton_rows"
	sqlRelease   = "RELEASE SAVEPOINT baton_rows"
)

// replace deletes rows and inserts them again. If a row is refused, the deletions are also undone, so the old rows stay.
func (s *Session) replace(ctx context.Context, t sql.Task) (done, doubt int, err error) {
	if _, err := s.Exec(ctx, sqlSavepoint, nil); err != nil {
		return 0, 0, err
	}
	ignored := s.Ignored
	s.Replacing = true
	_, _, err = s.Parent.Writer.Write(ctx, s, t.Plan, t.Rows, true)
	s.Replacing = false
	if err == nil {
		_, _, err = s.Parent.Writer.Write(ctx, s, t.Plan, t.Rows, false)
	}
	if err == nil {
		_, err = s.Exec(ctx, sqlRelease, nil)
		return len(t.Rows), 0, err
	}
	s.Ignored = ignored // these counts are also restored
	if s.Parent.Refused(err) {
		for _, text := range []string{sqlUndo, sqlRelease} {
			if _, failed := s.Exec(ctx, text, nil); failed != nil {
				return 0, len(t.Rows), errors.Join(err, failed)
			}
		}
	}
	return 0, len(t.Rows), err
}

// probe runs a Task with Probe, and undoes its writes.
func (s *Session) probe(ctx context.Context, t sql.Task) (touched int64, err error) {
	if _, err := s.Exec(ctx, sqlSavepoint, nil); err != nil {
		return 0, err
	}
	touched, err = s.Parent.Probe(ctx, s, t)
	if err != nil && !s.Parent.Refused(err) {
		return 0, err
	}
	if err != nil { // a failed probe proves nothing
		touched = int64(len(t.Rows))
	}
	for _, text := range []string{sqlUndo, sqlRelease} {
		if _, err := s.Exec(ctx, text, nil); err != nil {
			return 0, err
		}
	}
	return touched, nil
}

// UpdateOrder returns the order of an UPDATE's parameters: the columns to set come before the key.
func UpdateOrder(p *row.Plan) []int {
	out := make([]int, 0, len(p.Columns))
	for i := range p.Columns {
		if !sql.IsKey(p, i) {
			out = append(out, i)
		}
	}
	return append(out, p.Key...)
}
