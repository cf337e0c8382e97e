package stdsql

import (
	"context"
	"errors"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// rowWriter writes rows of one operation, in an order that it is given.
type rowWriter interface {
	// Write returns how many rows are written and, if the database refused some, how many of
	// the next ones are in doubt.
	Write(ctx context.Context, s *Session, p *row.Plan, rows []row.Row, remove bool) (done, doubt int, err error)
	// Update changes an existing row; touched is 0 if there is none.
	Update(ctx context.Context, s *Session, p *row.Plan, row *row.Row) (touched int64, err error)
}

// rows writes the rows of a task, in pieces if the task has Refused.
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

// piece relies on each statement being all or nothing in these databases, so
// that a refused one leaves the transaction as it was: no savepoints are needed.
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

// unknown: the database does not report which row is at fault.
const unknown = -1

// What surrounds rows that are replaced.
const (
	sqlSavepoint = "SAVEPOINT baton_rows"
	sqlUndo      = "ROLLBACK TO SAVEPOINT baton_rows"
	sqlRelease   = "RELEASE SAVEPOINT baton_rows"
)

// replace deletes rows and inserts them again. If one is refused, the old rows stay: the deletions
// are undone, too.
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
	s.Ignored = ignored // undone, too
	if s.Parent.Refused(err) {
		for _, text := range []string{sqlUndo, sqlRelease} {
			if _, failed := s.Exec(ctx, text, nil); failed != nil {
				return 0, len(t.Rows), errors.Join(err, failed)
			}
		}
	}
	return 0, len(t.Rows), err
}

// probe does a Task's Probe, and undoes its writes.
func (s *Session) probe(ctx context.Context, t sql.Task) (touched int64, err error) {
	if _, err := s.Exec(ctx, sqlSavepoint, nil); err != nil {
		return 0, err
	}
	touched, err = s.Parent.Probe(ctx, s, t)
	if err != nil && !s.Parent.Refused(err) {
		return 0, err
	}
	if err != nil { // it tells nothing
		touched = int64(len(t.Rows))
	}
	for _, text := range []string{sqlUndo, sqlRelease} {
		if _, err := s.Exec(ctx, text, nil); err != nil {
			return 0, err
		}
	}
	return touched, nil
}

// UpdateOrder is the order of an UPDATE's parameters: the columns to set, then the key.
func UpdateOrder(p *row.Plan) []int {
	out := make([]int, 0, len(p.Columns))
	for i := range p.Columns {
		if !sql.IsKey(p, i) {
			out = append(out, i)
		}
	}
	return append(out, p.Key...)
}
