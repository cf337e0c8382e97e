package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"baton/internal/flush"
)

// verdict is what an error of the database means for a batch.
type verdict uint8

const (
	// lasting: a mistake that the same batch would meet again, such as a column
	// that is gone or a permission that is missing.
	lasting verdict = iota
	// passing: not applied, or nobody knows. The same batch may be applied again.
	passing
	// refused: the database does not take the value of some row.
	refused
)

// failed wraps what a method answers with. doing says what was attempted.
func (s *Store) failed(ctx context.Context, doing string, err error) error {
	if err == nil || errors.Is(err, errApplied) {
		return err
	}
	if errors.Is(err, flush.ErrNoTable) {
		return fmt.Errorf("database %q: %w", s.name, err) // it names the table
	}
	wrapped := fmt.Errorf("database %q: %s: %w", s.name, doing, err)
	if errors.Is(err, flush.ErrFenced) || errors.Is(err, flush.ErrMoved) || errors.Is(err, flush.ErrTooManyDead) {
		return wrapped
	}
	if op := new(net.OpError); errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("database %q cannot be reached: is it up, and is its dsn right? %s: %w: %w", s.name, doing, flush.ErrTransient, err)
	}
	if cause := ctx.Err(); cause != nil {
		// A driver may report a cancelled context as a broken connection.
		return fmt.Errorf("database %q: %s: %w: %w: %w", s.name, doing, flush.ErrTransient, cause, err)
	}
	if !errors.Is(err, flush.ErrTransient) && s.database.judge(err) == passing {
		return fmt.Errorf("database %q: %s: %w: %w", s.name, doing, flush.ErrTransient, err)
	}
	return wrapped
}

// disconnected recognises, for every driver, that the connection is gone or that
// time ran out.
func disconnected(err error) bool {
	var network net.Error
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network)
}

// explain is the database's own message, with the column or constraint where it
// says so beside the message.
func (s *Store) explain(err error) string {
	if e, ok := s.database.(interface{ explain(error) string }); ok {
		return e.explain(err)
	}
	return err.Error()
}

// wrongValue is a row that the sink itself refuses, because the database would
// change the value without a word.
type wrongValue struct {
	column flush.Column
	why    string
}

func (e *wrongValue) Error() string {
	return fmt.Sprintf("column %q (%s): %s", e.column.Name, e.column.DBType, e.why)
}

// wrongKind: the plan and a row do not belong together. A mistake of the program.
type wrongKind struct {
	column flush.Column
	kind   flush.Kind
}

func (e *wrongKind) Error() string {
	return fmt.Sprintf("column %q (%s) was given a value of kind %d: this is a mistake in baton, please report it", e.column.Name, e.column.DBType, e.kind)
}
