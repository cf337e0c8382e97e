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
	// Session returns a connection for the caller alone. No transaction has begun on it.
	Session(ctx context.Context) (Session, error)
	Table(ctx context.Context, name string) (row.Table, error)
	// Absent adds a finding to the report if the database does not exist and a connection would create it. A database server never adds
	// such a finding.
	Absent(r *Report) bool
	inspector
	// Settings returns the first statement of a transaction outside of batches, or "" if each connection has its settings from the start.
	Settings() string
	// Plain returns the same database for statements outside of batches. release frees the resources of the returned database.
	Plain() (db *sql.DB, release func() error)
	Ping(ctx context.Context) error
	// Certified reports whether several servers accept writes, and each server learns of the writes of other servers only at COMMIT. The
	// result is reliable after the first connection.
	Certified() bool
	Close() error
}

// Session is one connection to the database, with at most one open transaction.
type Session interface {
	// Run does the tasks in order, in as few round trips as the database allows. It passes refused rows to the task's function Refused. If
	// Refused is nil, Run returns a *Refusal. The transaction stays usable in both cases.
	Run(ctx context.Context, tasks ...Task) error
	// Read runs a statement that returns rows, and calls the function each for every row until that function returns an error. The text
	// contains a "?" for each argument. The arguments have the form that Argument returns. A value of a row may be an argument of another
	// statement.
	Read(ctx context.Context, text string, args []any, each func(row []any) error) error
	// Narrow reports whether the database's character set lacks some characters.
	Narrow() bool
	Commit(ctx context.Context) error
	// Close rolls back uncommitted work and returns the connection to the pool. If sound is false, it closes the connection.
	Close(sound bool)
}

// Task is one statement to run, or some rows of a batch to write.
type Task struct {
	Query string // name of a fixed query
	Args  []any  // strings and integers
	// Once means that the statement touches 0 rows, instead of failing, if its unique key exists already.
	Once bool

	Plan *row.Plan // the plan of Rows, instead of Query
	Rows []row.Row
	// Update means that the task updates an existing row and does not insert the row.
	Update bool
	// Probe makes the task find out whether its rows could be written, without writing them. If the function Then is called with 0, the
	// database would certainly accept no row. If Update is also set, 0 also means that the table certainly contains none of the rows. Probe
	// is set only for dialects that can do this.
	Probe bool
	// Replace means that the task deletes the existing rows before it inserts the new ones.
	Replace bool
	// UpdateFirst makes the task update the existing rows, and upsert only the other rows. It is set only for dialects that can do this.
	UpdateFirst bool

	// Refused, if set, is called for rows that the database refused, and the task continues with the next rows. Piece limits the number of
	// rows in one statement, if some rows may be refused. If Piece is 0, one statement may contain all rows.
	Refused func(Refusal)
	Piece   int

	// ignored is called with the number of rows that the database accepted and did not write.
	ignored func(rows int64)
	// deleted is called with the number of rows that the database deleted, without those that were inserted again.
	deleted func(rows int64)
	// Then is called with the number of rows that the statement touched. If Then returns an error, the run ends.
	Then func(touched int64) error
}

// Done calls the function Then with the number of rows that the task has touched.
func (t Task) Done(touched int64) error {
	if t.Then == nil {
		return nil
	}
	return t.Then(touched)
}

// Guarded reports whether the task expects that the database refuses some of its rows.
func (t Task) Guarded() bool { return t.Refused != nil && t.Piece > 0 }

// Left calls the function ignored with the number of rows that the database accepted and did not write.
func (t Task) Left(ignored int64) {
	if t.ignored != nil && ignored > 0 {
		t.ignored(ignored)
	}
}

// Gone calls the function deleted with the number of rows that the database deleted for the task.
func (t Task) Gone(deleted int64) {
	if t.deleted != nil && deleted > 0 {
		t.deleted(deleted)
	}
}

// Refusal reports that Size rows of a task, beginning with the row From, are not written because the database refused at least one of them.
// At is the index of the refused row, counted from From, or negative if the row is unknown. The rows before From are written.
type Refusal struct {
	From, Size, At int
	Cause          error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d rows refused: %v", r.Size, r.Cause) }

func (r *Refusal) Unwrap() error { return r.Cause }

// MaxStatements limits the number of statements that one connection keeps prepared.
const MaxStatements = 500

// Millis formats a duration as whole milliseconds, at least one.
func Millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
