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
	// Session is a connection for the caller alone; it has begun no transaction.
	Session(ctx context.Context) (Session, error)
	Table(ctx context.Context, name string) (row.Table, error)
	// Absent adds a finding if the database does not exist and connecting would create it. A
	// server is never absent.
	Absent(r *Report) bool
	inspector
	// Settings is the first statement of a transaction outside of batches; "" where the connections themselves have their settings.
	Settings() string
	// Plain is the same database for statements outside of batches. release frees its resources.
	Plain() (db *sql.DB, release func() error)
	Ping(ctx context.Context) error
	// Certified: several servers accept writes, and each learns of the others' writes only at COMMIT. It is certain after the first
	// connection.
	Certified() bool
	Close() error
}

// Session is one connection, and the transaction on it.
type Session interface {
	// Run does the tasks in order, in as few round trips as the database allows. Refused rows are
	// passed to the task's Refused, or are a *Refusal; the transaction stays usable.
	Run(ctx context.Context, tasks ...Task) error
	// Read runs a statement that returns rows, and calls each for every row until each fails. The text has a ? for each argument; these
	// are as Argument makes them. A value of a row may be an argument of another statement.
	Read(ctx context.Context, text string, args []any, each func(row []any) error) error
	// Narrow: the database cannot hold every character.
	Narrow() bool
	Commit(ctx context.Context) error
	// Close rolls back uncommitted work and returns the connection to the pool, or closes it if
	// it is not sound.
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
	// Update: change the one row if it exists, and do not insert it.
	Update bool
	// Probe: write nothing. Then is called with 0 only if the database would certainly take no row and, with Update, certainly has no
	// such row. It is set for dialects with that capability only.
	Probe bool
	// Replace: delete the rows first.
	Replace bool
	// UpdateFirst: change the existing rows, and upsert only the others. It is set for dialects
	// with that capability only.
	UpdateFirst bool

	// Refused, if set, is called for rows that the database refused; the task continues after them. Piece is the number of rows per
	// statement if some may be refused; 0: all.
	Refused func(Refusal)
	Piece   int

	// ignored is called with the number of rows that the database accepted and did not write.
	ignored func(rows int64)
	// deleted is called with the number of rows that the database deleted, without those that were inserted again.
	deleted func(rows int64)
	// Then is called with the number of rows that the statement touched. Its error ends the run.
	Then func(touched int64) error
}

// Done reports the number of rows that the task has touched.
func (t Task) Done(touched int64) error {
	if t.Then == nil {
		return nil
	}
	return t.Then(touched)
}

// Guarded reports whether rows are expected to be refused.
func (t Task) Guarded() bool { return t.Refused != nil && t.Piece > 0 }

// Left reports the number of rows that the database accepted and did not write.
func (t Task) Left(ignored int64) {
	if t.ignored != nil && ignored > 0 {
		t.ignored(ignored)
	}
}

// Gone reports the number of rows that the database deleted for the task.
func (t Task) Gone(deleted int64) {
	if t.deleted != nil && deleted > 0 {
		t.deleted(deleted)
	}
}

// Refusal reports that Size rows of a task, from From on, are not written because the database refused at
// least one of them: the one at At, counted from From, if it is not negative. Earlier rows are
// written.
type Refusal struct {
	From, Size, At int
	Cause          error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d rows refused: %v", r.Size, r.Cause) }

func (r *Refusal) Unwrap() error { return r.Cause }

// MaxStatements bounds how many statements one connection keeps prepared.
const MaxStatements = 500

// Millis are whole milliseconds, at least one.
func Millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
