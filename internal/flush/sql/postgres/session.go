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

// These statements precede and follow the rows of one task. A refused row aborts a PostgreSQL transaction; a rollback to the savepoint
// makes the transaction usable again. Deferred constraints are checked immediately, because COMMIT could not say which row is wrong.
const (
	savepoint        = "SAVEPOINT baton_rows"
	checkConstraints = "SET CONSTRAINTS ALL IMMEDIATE"
	release          = "RELEASE SAVEPOINT baton_rows"
	undoRows         = "ROLLBACK TO SAVEPOINT baton_rows; RELEASE SAVEPOINT baton_rows"
)

// session is one connection in pipeline mode: the statements of a run are sent together, and their answers are read one by one. After the
// first error the server skips the rest of the run.
type session struct {
	db   *postgres
	conn *pgxpool.Conn
	pg   *pgconn.PgConn
	undo bool // rows were refused, so the next run begins with a rollback to the savepoint
	used bool // the transaction has put rows into a staging table
	// begins means that the present run begins the transaction.
	begins bool
	// counting means that the server counts the rows that it begins in the present run.
	counting bool
	// pooled means that the next transaction may have another session of the server. So objects that this session creates must not outlive
	// the transaction.
	pooled bool
	// counter means that the transaction has created the counter of rows.
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
	if t.undo { // first of all, because nothing can be prepared in an aborted transaction
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

// whole runs tasks without dividing them into pieces. At most one of the tasks may have rows. The method whole returns refused rows as a
// *sql.Refusal.
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

// lost reports a transient error if err shows that greet did not detect a pooler. The pooler has then given us another session of the
// server, without our temporary objects. From then on baton creates every temporary object for one transaction only.
func (t *session) lost(err error) error {
	switch state := sqlState(err); {
	case state == "26000", state == "42P05", state == "42P01" && strings.Contains(err.Error(), "pg_temp."):
		if t.pooled { // the object has vanished although it belongs to this transaction, so staging tables are no longer used
			t.db.noStaging.Store(true)
		}
		t.db.pooled.Store(true)
		return fmt.Errorf("%w: %w", flush.ErrTransient, err)
	}
	return err
}

// loadFirst begins the transaction and fills the staging table before any other statement. If a process freezes within a COPY, the server
// waits for the process for ever, because for the server it is not idle. But during this COPY the transaction holds no lock that other
// transactions wait for. loadFirst returns the remaining statements. Rows that a COPY refuses are sent as arrays.
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

// noTemporary records that this user may not create temporary tables. It returns a transient error, so that the batch is applied again, and
// its rows are sent as arrays.
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
	// Close reads the remaining answers, so that the connection can be used again.
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

// failed turns an error of a task's rows into a refusal. It returns any other error unchanged.
func (t *session) failed(err error, k sql.Task) error {
	if k.Plan == nil || judge(err) != sql.Refused || unplanned(err, k.Plan) {
		return err
	}
	t.undo = true
	return &sql.Refusal{Size: len(k.Rows), At: -1, Cause: err}
}

// unplanned reports whether the error says that a column that the job does not write must not be NULL. The column was added to the table
// after the plan was made, so the error is not the fault of a row.
func unplanned(err error, p *row.Plan) bool {
	var pg *pgconn.PgError
	_, table := quote.Schema(p.Table.Name)
	return errors.As(err, &pg) && pg.Code == "23502" && pg.TableName == table && !sql.HasColumn(p, pg.ColumnName)
}

// result returns the next result of a pipeline.
func result(pipe *pgconn.Pipeline) (*pgconn.ResultReader, error) {
	next, err := pipe.GetResults()
	if err != nil {
		return nil, err
	}
	reader, ok := next.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("PostgreSQL answered with %T instead of a result", next)
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

// statements converts the tasks to statements of PostgreSQL.
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

// rows returns the statements that write the rows of a task, with the deletions first.
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

// write returns a statement whose parameters are the given columns of the rows.
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

// Narrow implements sql.Session. It reports whether the database's encoding lacks some characters.
func (t *session) Narrow() bool {
	encoding := t.pg.ParameterStatus("server_encoding")
	return encoding != "UTF8" && encoding != "SQL_ASCII"
}

// errNotCommitted explains a failed COMMIT. PostgreSQL answers COMMIT of an aborted transaction with ROLLBACK, and reports success.
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
		_, _ = t.pg.Exec(ctx, t.db.queries["rollback"]).ReadAll() // if this fails, the connection is closed
	}
	if sound && !t.pg.IsClosed() {
		t.conn.Release()
	} else {
		// When the connection is closed, the server rolls the transaction back. Without Hijack the pool would count the connection until
		// the server has answered the closing message, but a lost server never answers. A few such connections would exhaust the pool.
		_ = t.conn.Hijack().Close(ctx)
		t.db.pool.Reset() // the fault that cut this connection has likely cut the idle connections
	}
	t.db.buffers.Put(t.buf)
}
