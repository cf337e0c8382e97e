package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/text"
)

// Verdict says how an error of the database affects a batch.
type Verdict uint8

const (
	// Lasting is an error that the same batch would cause again, such as a dropped column or a missing permission.
	Lasting Verdict = iota
	// Passing means that the batch was not applied, or that its outcome is unknown. The batch may be applied again.
	Passing
	// Refused means that the database refuses the value of a row.
	Refused
)

// AskDoctor is the advice in an error that says that a server, a database or a user is read-only.
const AskDoctor = "the server, the database or this user is read-only: run baton doctor, which shows the cause and the remedy"

// failed wraps the error of a method. The argument doing names the attempted action.
func (s *Store) failed(ctx context.Context, doing string, err error) error {
	if err == nil || errors.Is(err, errApplied) {
		return err
	}
	if remedy := text.NoAltName(err); remedy != "" {
		err = fmt.Errorf("%s (%w)", remedy, err)
	}
	if s.dialect.Hint != nil {
		if hint := s.dialect.Hint(err); hint != "" && !strings.Contains(err.Error(), hint) {
			err = fmt.Errorf("%w: %s", err, hint)
		}
	}
	err = s.clean(err)
	if errors.Is(err, flush.ErrNoTable) {
		return fmt.Errorf("database %q: %w", s.name, err) // the error itself names the table
	}
	wrapped := fmt.Errorf("database %q: %s: %w", s.name, doing, err)
	if errors.Is(err, flush.ErrFenced) || errors.Is(err, flush.ErrMoved) || errors.Is(err, flush.ErrTooManyDead) ||
		errors.Is(err, flush.ErrGaveWay) || errors.As(err, new(*OtherElectionError)) {
		return wrapped
	}
	if op := new(net.OpError); errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("database %q cannot be reached: is it up, and is its dsn right? %s: %w", s.name, doing, unappliedError{err})
	}
	if cause := ctx.Err(); cause != nil {
		// A driver may report a cancelled context as a broken connection.
		return fmt.Errorf("database %q: %s: %w: %w: %w", s.name, doing, flush.ErrTransient, cause, err)
	}
	if !errors.Is(err, flush.ErrTransient) && s.dialect.Judge(err) == Passing {
		if errors.As(err, new(connectError)) || s.dialect.RolledBack != nil && s.dialect.RolledBack(err) {
			return fmt.Errorf("database %q: %s: %w", s.name, doing, unappliedError{err})
		}
		return fmt.Errorf("database %q: %s: %w: %w", s.name, doing, flush.ErrTransient, err)
	}
	return wrapped
}

// clean replaces the secrets of the DSN in the text of an error.
func (s *Store) clean(err error) error {
	said := err.Error()
	if shown := s.shown(said); shown != said {
		return redactedError{err, shown}
	}
	return err
}

func (s *Store) shown(said string) string {
	if s.hide == nil {
		return said
	}
	return s.hide(said)
}

type redactedError struct {
	error
	shown string
}

func (e redactedError) Error() string { return e.shown }
func (e redactedError) Unwrap() error { return e.error }

// Connecting marks an error that occurred before a connection was made, so no transaction had begun.
func Connecting(err error) error { return connectError{err} }

type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

// neverConnected reports whether the error occurred before a connection was made.
func neverConnected(err error) bool {
	op := new(net.OpError)
	return errors.As(err, new(connectError)) || errors.As(err, &op) && op.Op == "dial"
}

// unappliedError is an error after which no transaction has an unknown outcome. It matches flush.ErrTransient, but its text does not say
// so.
type unappliedError struct{ error }

func (e unappliedError) Unwrap() error        { return e.error }
func (e unappliedError) Is(target error) bool { return target == flush.ErrTransient }

// Disconnected reports, for every driver, whether the error means that the connection was lost, or that the context of the statement has
// ended.
func Disconnected(err error) bool {
	var network net.Error
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network)
}

// WrongValue reports a row that baton itself refuses, because the database would silently change a value of the row.
type WrongValue struct {
	Column row.Column
	Why    string
}

func (e *WrongValue) Error() string {
	return fmt.Sprintf("column %q (%s): %s", e.Column.Name, e.Column.DBType, e.Why)
}

// WrongKind reports that the plan and a row do not fit together, which is a bug.
type WrongKind struct {
	Column row.Column
	Kind   row.Kind
}

func (e *WrongKind) Error() string {
	return fmt.Sprintf("column %q (%s) was given a value of kind %d: this is a mistake in baton, please report it", e.Column.Name,
		e.Column.DBType, e.Kind)
}
