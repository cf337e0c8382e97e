package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// What surrounds the rows of one task. A refused row aborts a PostgreSQL
// transaction; the savepoint brings it back. Deferred constraints are checked
// at once, or COMMIT would find the bad row and could not say which it was.
const (
	savepoint        = "SAVEPOINT baton_rows"
	checkConstraints = "SET CONSTRAINTS ALL IMMEDIATE"
	release          = "RELEASE SAVEPOINT baton_rows"
	undoRows         = "ROLLBACK TO SAVEPOINT baton_rows; RELEASE SAVEPOINT baton_rows"
)

// session is one connection in pipeline mode: the statements of a run are sent
// together, and their answers read one by one. The first error makes the server
// skip the rest.
type session struct {
	db   *postgres
	conn *pgxpool.Conn
	pg   *pgconn.PgConn
	undo bool // rows were refused: back to the savepoint first
	used bool // the transaction has put rows into a staging table
	// begins: the run that is under way begins the transaction.
	begins bool
	// counting: the run that is under way has the server count the rows that it begins.
	counting bool
	// pooled: the next transaction may have another server session. So nothing that this one makes
	// outlives it.
	pooled bool
	// counter: the transaction has made the counter of rows.
	counter bool
	buf     *[]byte
}

func (t *session) Run(ctx context.Context, tasks ...sql.Task) error {
	ctx, cancel := context.WithTimeout(ctx, t.db.limits.Trip)
	defer cancel()
	if len(tasks) == 0 {
		return nil
	}
	return t.lost(t.run(ctx, tasks))
}

func (t *session) run(ctx context.Context, tasks []sql.Task) error {
	if err := t.createStaging(ctx, tasks); err != nil {
		return err
	}
	if t.begins = tasks[0].Query == "begin"; t.begins {
		t.counter = false
	}
	if t.undo { // first of all: in an aborted transaction nothing can be prepared
		if _, err := t.pg.Exec(ctx, undoRows).ReadAll(); err != nil {
			return err
		}
		t.undo = false
	}
	if inPieces(tasks) {
		return t.runPieces(ctx, tasks)
	}
	err := t.whole(ctx, tasks)
	if refused, ok := errors.AsType[*sql.Refusal](err); ok {
		if last := tasks[len(tasks)-1]; last.Refused != nil {
			last.Refused(*refused)
			return nil
		}
	}
	return err
}

// whole does tasks; at most one of them may have rows. Refused rows are a *sql.Refusal.
func (t *session) whole(ctx context.Context, tasks []sql.Task) error {
	statements, err := t.statements(tasks)
	if err != nil {
		return err
	}
	if err := t.prepare(ctx, statements); err != nil {
		return err
	}
	load := slices.IndexFunc(statements, func(s statement) bool { return s.load != nil })
	if load < 0 {
		return t.pipe(ctx, statements, tasks)
	}
	if statements, err = t.loadFirst(ctx, tasks, statements, load); err == nil {
		err = t.pipe(ctx, statements, tasks)
	} else if t.pooled && sqlState(err) == "42501" {
		return t.noTemporary(err)
	}
	return err
}

// lost recognises a pooler that greet did not: it gave us another server session, which lacks our
// temporary objects. From now on all created objects end with their transaction.
func (t *session) lost(err error) error {
	switch state := sqlState(err); {
	case state == "26000", state == "42P05", state == "42P01" && strings.Contains(err.Error(), "pg_temp."):
		if t.pooled { // it is gone within the transaction
			t.db.noStaging.Store(true)
		}
		t.db.pooled.Store(true)
		return fmt.Errorf("%w: %w", flush.ErrTransient, err)
	}
	return err
}

// loadFirst begins the transaction and fills the staging table before anything else: a process
// that freezes within a COPY is not idle, so that the server waits for it for ever.
// At that moment it holds no lock that others wait for. It returns the remaining
// statements; rows that a COPY refuses go by arrays.
func (t *session) loadFirst(ctx context.Context, tasks []sql.Task, statements []statement, at int) ([]statement, error) {
	before := []string{statements[0].text, statements[1].text, savepoint}
	if t.pooled {
		before = slices.Insert(before, 2, t.db.plans.Get(tasks[statements[at].task].Plan, compile).staging.brief)
	}
	err := statements[at].load(ctx, strings.Join(before, "; "))
	if err != nil && (judge(err) != sql.Refused || t.pg.TxStatus() != 'E') {
		return nil, err
	}
	if failed := tasks[0].Done(0); failed != nil {
		return nil, failed
	}
	if err == nil {
		return slices.Concat([]statement{{text: release}}, statements[2:at], statements[at+1:]), nil
	}
	if _, err := t.pg.Exec(ctx, undoRows).ReadAll(); err != nil {
		return nil, err
	}
	if statements, err = t.statements(tasks); err != nil {
		return nil, err
	}
	return statements[2:], t.prepare(ctx, statements)
}

// noTemporary: this user may make no temporary tables. Arrays do, too.
func (t *session) noTemporary(err error) error {
	t.db.noStaging.Store(true)
	return fmt.Errorf("%w: %w", flush.ErrTransient, err)
}

// pipe sends statements together and reads their answers.
func (t *session) pipe(ctx context.Context, statements []statement, tasks []sql.Task) error {
	pipe := t.pg.StartPipeline(ctx)
	t.send(pipe, statements...)
	err := pipe.Sync()
	if err == nil {
		err = t.answers(pipe, statements, tasks)
	}
	// Reads the remaining answers, so that the connection can be used again.
	if closing := pipe.Close(); err == nil {
		err = closing
	}
	return err
}

// answers reads the results in order and passes them to the tasks.
func (t *session) answers(pipe *pgconn.Pipeline, statements []statement, tasks []sql.Task) error {
	var touched, ignored, deleted int64
	for i := range statements {
		s := &statements[i]
		n, err := answer(pipe)
		touched += n
		ignored += max(0, int64(s.writes)-n)
		if s.deletes {
			deleted += n
		}
		if err != nil {
			return t.failed(err, tasks[s.task])
		}
		if s.last {
			tasks[s.task].Left(ignored)
			tasks[s.task].Gone(deleted)
			if err := tasks[s.task].Done(touched); err != nil {
				return err
			}
			touched, ignored, deleted = 0, 0, 0
		}
	}
	return nil
}

// failed judges an error of a task: an error of its rows is a refusal.
func (t *session) failed(err error, k sql.Task) error {
	if k.Plan == nil || judge(err) != sql.Refused || unplanned(err, k.Plan) {
		return err
	}
	t.undo = true
	return &sql.Refusal{Size: len(k.Rows), At: -1, Cause: err}
}

// unplanned: a column that we do not write must not be NULL. It was added to the
// table since the plan was made: no row is at fault.
func unplanned(err error, p *row.Plan) bool {
	var pg *pgconn.PgError
	_, table := quote.Schema(p.Table.Name)
	return errors.As(err, &pg) && pg.Code == "23502" && pg.TableName == table && !sql.HasColumn(p, pg.ColumnName)
}

// result is the next result of a pipeline.
func result(pipe *pgconn.Pipeline) (*pgconn.ResultReader, error) {
	next, err := pipe.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := next.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("PostgreSQL answered with %T where a result was due", next)
	}
	return reader, nil
}

func answer(pipe *pgconn.Pipeline) (touched int64, err error) {
	reader, err := result(pipe)
	if err != nil {
		return 0, err
	}
	tag, err := reader.Close()
	return tag.RowsAffected(), err
}

// statements spells the tasks out.
func (t *session) statements(tasks []sql.Task) ([]statement, error) {
	out := make([]statement, 0, len(tasks)+5)
	*t.buf = (*t.buf)[:0]
	for i, task := range tasks {
		first := len(out)
		if task.Plan == nil {
			out = append(out, t.fixed(task)...)
		} else {
			out = append(out, statement{text: savepoint})
			rows, err := t.rows(task)
			if err != nil {
				return nil, err
			}
			out = append(append(out, rows...), statement{text: checkConstraints}, statement{text: release})
		}
		for j := first; j < len(out); j++ {
			out[j].task = i
		}
		out[len(out)-1].last = true
	}
	return out, nil
}

// rows spells out the writing of rows, deletes first.
func (t *session) rows(k sql.Task) ([]statement, error) {
	plan := t.db.plans.Get(k.Plan, compile)
	if k.Update {
		s, err := t.write(plan.update, plan, plan.columns, k.Rows)
		return []statement{s}, err
	}
	deletes := sql.CountDeletes(k.Rows)
	remove := k.Rows[:deletes]
	if k.Replace {
		remove = k.Rows
	}
	var out []statement
	if len(remove) > 0 {
		s, err := t.write(plan.remove, plan, plan.key, remove)
		if err != nil {
			return nil, err
		}
		s.deletes = !k.Replace
		out = append(out, s)
	}
	rows := k.Rows[deletes:]
	switch {
	case len(rows) == 0:
		return out, nil
	case plan.merge != "" && !k.Replace && (k.UpdateFirst || plan.takeAway(rows)):
		s, err := t.write(plan.merge, plan, plan.columns, rows)
		return append(out, s), err
	case t.staged(k, plan.staging):
		load := func(ctx context.Context, before string) error {
			return t.copy(ctx, before, plan.staging, plan.columns, rows)
		}
		return append(out, statement{load: load}, statement{text: plan.unload, name: nameOf(plan.unload), writes: len(rows)}), nil
	}
	text := plan.upsert
	if t.counting {
		text = plan.counted
	}
	s, err := t.write(text, plan, plan.columns, rows)
	s.writes = len(rows)
	return append(out, s), err
}

// write encodes the columns of rows as the statement's parameters.
func (t *session) write(text string, plan *compiledPlan, columns []planColumn, rows []row.Row) (statement, error) {
	s := statement{text: text, name: nameOf(text), formats: plan.formats[:len(columns)]}
	for _, c := range columns {
		start := len(*t.buf)
		buf, err := c.encode(*t.buf, rows)
		if err != nil {
			return s, err
		}
		*t.buf = buf
		s.params = append(s.params, buf[start:len(buf):len(buf)])
	}
	return s, nil
}

// Narrow: the database cannot hold every character.
func (t *session) Narrow() bool {
	encoding := t.pg.ParameterStatus("server_encoding")
	return encoding != "UTF8" && encoding != "SQL_ASCII"
}

// errNotCommitted: PostgreSQL answers COMMIT of an aborted transaction with
// ROLLBACK, and calls that a success.
var errNotCommitted = errors.New("the server rolled the transaction back instead of committing it")

func (t *session) Commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.db.limits.Trip)
	defer cancel()
	results, err := t.pg.Exec(ctx, t.db.queries["commit"]).ReadAll()
	if err == nil && (len(results) != 1 || results[0].CommandTag.String() != "COMMIT") {
		err = errNotCommitted
	}
	return err
}

func (t *session) Close(sound bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if sound && !t.pg.IsClosed() && t.pg.TxStatus() != 'I' {
		_, _ = t.pg.Exec(ctx, t.db.queries["rollback"]).ReadAll() // it is closed where this failed
	}
	if sound && !t.pg.IsClosed() {
		t.conn.Release()
	} else {
		// The server rolls back. The pool would count the connection until the server has
		// answered the goodbye, which a lost server never does. A few such connections
		// would exhaust the pool.
		_ = t.conn.Hijack().Close(ctx)
		t.db.pool.Reset() // what cut this connection has likely cut the idle ones
	}
	t.db.buffers.Put(t.buf)
}
