package sql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"baton/internal/flush/row"
)

// Database is a database that a dialect has opened.
type Database interface {
	// Session is a connection of one's own; nothing is begun yet.
	Session(ctx context.Context) (Session, error)
	Table(ctx context.Context, name string) (row.Table, error)
	// Absent tells r why there is nothing to connect to yet, where connecting would make
	// it. A server never is.
	Absent(r *Report) bool
	inspector
	// Plain is the same database for what is no batch. release gives back what was
	// opened for it.
	Plain() (db *sql.DB, release func() error)
	Ping(ctx context.Context) error
	// Certified: the server is one of several that take writes, and learns only at COMMIT
	// what is written through the others. It is known once there was a connection.
	Certified() bool
	Close() error
}

// Session is one connection, and the transaction on it.
type Session interface {
	// Run does the tasks in order, in as few round trips as the database allows.
	// Rows that the database refused are told to the task, or are a *Refusal; the transaction
	// stays usable.
	Run(ctx context.Context, tasks ...Task) error
	// Read runs a statement that answers rows, and calls each for every one until it
	// fails. The text has a ? for each argument; these are as Argument makes them. A
	// value of a row may be an argument of another statement.
	Read(ctx context.Context, text string, args []any, each func(row []any) error) error
	// Narrow: the database cannot hold every character.
	Narrow() bool
	Commit(ctx context.Context) error
	// Close rolls back what is not committed and gives the connection back;
	// for good if it is not sound.
	Close(sound bool)
}

// Task is one statement, or the rows of a batch.
type Task struct {
	Query string // name of a fixed query
	Args  []any  // strings and integers
	// Once: a unique key that is taken already is an answer, 0 rows, not an error.
	Once bool

	Plan *row.Plan // instead of query
	Rows []row.Row
	// Update: change the one row if it is there, and do not insert it.
	Update bool
	// Replace: delete the rows first.
	Replace bool
	// UpdateFirst: change the rows that are there, and upsert only the others. It is asked
	// of dialects that say they can.
	UpdateFirst bool

	// Refused, if set, is told of rows that the database refused; the task goes on with those
	// after them. Piece is how many it writes at once where some are expected to be, 0: all.
	Refused func(Refusal)
	Piece   int

	// ignored is told of rows that the database accepted and did not write.
	ignored func(rows int64)
	// Then is told how many rows the statement touched. Its error ends the run.
	Then func(touched int64) error
}

// Done tells that the task has touched so many rows.
func (t Task) Done(touched int64) error {
	if t.Then == nil {
		return nil
	}
	return t.Then(touched)
}

// Guarded reports whether rows are expected to be refused.
func (t Task) Guarded() bool { return t.Refused != nil && t.Piece > 0 }

// Left tells that the database has accepted so many rows and not written them.
func (t Task) Left(ignored int64) {
	if t.ignored != nil && ignored > 0 {
		t.ignored(ignored)
	}
}

// Refusal says that of a task's rows Size ones from From on are not written, because the database
// refused at least one of them: that at At, counted from From, if it is not negative. Those before
// them are written.
type Refusal struct {
	From, Size, At int
	Cause          error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d rows refused: %v", r.Size, r.Cause) }

func (r *Refusal) Unwrap() error { return r.Cause }

// MaxStatements bounds what one connection keeps prepared.
const MaxStatements = 500

// Millis are whole milliseconds, at least one.
func Millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
