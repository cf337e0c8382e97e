package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"

	"baton/internal/flush"
)

// database is what the kinds of databases differ in.
type database interface {
	// session is a connection of one's own; nothing is begun yet.
	session(ctx context.Context) (session, error)
	table(ctx context.Context, name string) (flush.Table, error)
	judge(err error) verdict
	migration() (migration, error)
	ping(ctx context.Context) error
	close() error
}

// migration is what goose must know of a database. release gives back what was
// opened for it.
type migration struct {
	db      *sql.DB
	dialect goose.Dialect
	release func() error
}

// session is one connection, and the transaction on it.
type session interface {
	// run does the tasks in order, in as few round trips as the database allows.
	// Rows that the database refused are a *refusal; the transaction stays usable.
	run(ctx context.Context, tasks ...task) error
	// fence reads the job's fence with the query of that name.
	fence(ctx context.Context, query, job string) (f flush.Fence, found bool, err error)
	// lookup reads what the query of that name finds for names of a job.
	lookup(ctx context.Context, query, job string, names []string) (map[string]string, error)
	commit(ctx context.Context) error
	// close rolls back what is not committed and gives the connection back;
	// for good if it is not sound.
	close(sound bool)
}

// task is one statement, or the rows of a batch.
type task struct {
	query string // name of a fixed query
	args  []any  // strings and integers
	// once: a unique key that is taken already is an answer, 0 rows, not an error.
	once bool

	plan *flush.Plan // instead of query
	rows []flush.Row
	// update: change the one row if it is there, and do not insert it.
	update bool
	// replace: delete the rows first.
	replace bool

	// then is told how many rows the statement touched. Its error ends the run.
	then func(touched int64) error
}

func (t task) done(touched int64) error {
	if t.then == nil {
		return nil
	}
	return t.then(touched)
}

// refusal: of a task's rows, the first done ones are written; the next size ones
// are not, because the database refused at least one of them.
type refusal struct {
	done, size int
	cause      error
}

func (r *refusal) Error() string { return fmt.Sprintf("%d rows refused: %v", r.size, r.cause) }

func (r *refusal) Unwrap() error { return r.cause }
