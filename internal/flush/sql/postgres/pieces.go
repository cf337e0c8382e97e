package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// If a task has Refused, its rows are sent in pieces, and all pieces are sent together. After each piece two statements follow: the first
// one sets the savepoint again, and the second one rolls back to the savepoint. If a piece is refused, the server skips the first
// statement, so the rollback undoes the piece. Otherwise the rollback undoes nothing.
//
// An error does not name its row. So the server counts the rows that it has begun. It counts them in a temporary sequence, because a
// rollback does not undo a sequence.

// position is the name of the temporary sequence. counting is a key in the custom data of a connection: if the key exists, the sequence
// exists.
const (
	counting       = "rows are counted"
	position       = "baton_row"
	createPosition = "CREATE TEMPORARY SEQUENCE IF NOT EXISTS " + position + "; SELECT nextval('pg_temp." + position + "')"
	readPosition   = "SELECT last_value FROM pg_temp." + position
	countRow       = " WHERE nextval('pg_temp." + position + "') > 0"
	backTo         = "ROLLBACK TO SAVEPOINT baton_rows"
)

// inPieces reports whether tasks are sent in pieces.
func inPieces(tasks []sql.Task) bool {
	rows := 0
	for _, k := range tasks {
		if k.Plan != nil {
			rows++
		}
	}
	return slices.ContainsFunc(tasks, func(k sql.Task) bool {
		return k.Guarded() || k.Refused != nil && rows > 1
	})
}

// piece contains some rows of a task, or is a task without rows.
type piece struct {
	sql.Task
	task, from int
	statements []statement
}

// counts reports whether the server counts the rows that it begins on this connection.
func (t *session) counts() bool {
	return !t.db.noStaging.Load() && (t.pooled || t.pg.CustomData()[counting] != nil)
}

// createCounter creates the sequence before the transaction, because otherwise a rollback would remove the sequence.
func (t *session) createCounter(ctx context.Context) error {
	if t.pooled || t.pg.TxStatus() != 'I' || t.db.noStaging.Load() || t.pg.CustomData()[counting] != nil {
		return nil
	}
	_, err := t.pg.Exec(ctx, createPosition).ReadAll()
	if sqlState(err) == "42501" { // the right is missing
		t.db.noStaging.Store(true)
		return nil
	}
	if err == nil {
		t.pg.CustomData()[counting] = true
	}
	return err
}

// briefCounter returns the statements that create a sequence for one transaction. At the end of the transaction the server drops the
// sequence together with the table that owns it.
func (t *session) briefCounter() []statement {
	if !t.pooled || t.counter || !t.counts() {
		return nil
	}
	t.counter = true
	return []statement{
		{text: "CREATE TEMPORARY TABLE IF NOT EXISTS baton_rows (n bigint) ON COMMIT DROP", temporary: true},
		{text: "CREATE TEMPORARY SEQUENCE IF NOT EXISTS " + position + " OWNED BY pg_temp.baton_rows.n", temporary: true},
		{text: "SELECT nextval('pg_temp." + position + "')", temporary: true},
	}
}

// named returns a statement that is prepared once.
func named(text string) statement { return statement{text: text, name: nameOf(text)} }

// pieces divides the tasks into pieces, each of them with its statements.
func (t *session) pieces(tasks []sql.Task) ([]piece, error) {
	var out []piece
	*t.buf = (*t.buf)[:0]
	guarded := false
	for i, k := range tasks {
		if k.Plan == nil {
			out = append(out, piece{Task: k, task: i, statements: t.fixed(k)})
			continue
		}
		size := len(k.Rows)
		if k.Guarded() {
			size = k.Piece
		}
		for from := 0; from < len(k.Rows); from += size {
			p := piece{Task: k, task: i, from: from}
			p.Rows = k.Rows[from:min(from+size, len(k.Rows))]
			rows, err := t.rows(p.Task)
			if err != nil {
				return nil, err
			}
			if !guarded {
				guarded = true
				p.statements = append(t.briefCounter(), named(savepoint))
				if t.counts() {
					p.statements = append(p.statements, named(readPosition))
				}
			}
			p.statements = append(append(p.statements, rows...), named(checkConstraints), named(release), named(savepoint))
			out = append(out, p)
		}
	}
	return out, nil
}

// runPieces runs tasks in pieces, and continues after refused pieces.
func (t *session) runPieces(ctx context.Context, tasks []sql.Task) error {
	if err := t.createCounter(ctx); err != nil {
		return err
	}
	t.counting = t.counts()
	defer func() { t.counting = false }()
	pieces, err := t.pieces(tasks)
	if err != nil {
		return err
	}
	all := []statement{named(savepoint), named(backTo), named(release), named(readPosition)}
	if !t.counting {
		all = all[:3]
	}
	for _, p := range pieces {
		all = append(all, p.statements...)
	}
	if err := t.prepare(ctx, all); err != nil {
		return err
	}
	pipe := t.pg.StartPipeline(ctx)
	for _, p := range pieces {
		t.send(pipe, p.statements...)
		if p.Plan == nil { // no Sync after it: if BEGIN fails, no later statement may commit by itself
			continue
		}
		pipe.SendPipelineSync()
		t.send(pipe, named(backTo))
		if t.counting {
			t.send(pipe, named(readPosition))
		}
	}
	t.send(pipe, named(release))
	err = pipe.Sync()
	if err == nil {
		err = (&listener{session: t, pipe: pipe}).hear(pieces)
	}
	// Close reads the remaining answers, so that the connection can be used again.
	if closing := pipe.Close(); err == nil {
		err = closing
	}
	return err
}

// listener reads the answers to pieces.
type listener struct {
	*session
	pipe  *pgconn.Pipeline
	begun int // rows that the server has begun, by the sequence
}

// hear reads the answers to all pieces, and passes them to their tasks.
func (l *listener) hear(pieces []piece) error {
	var touched int64
	for i := range pieces {
		p := &pieces[i]
		n, ignored, deleted, refused := l.result(p)
		if refused != nil && (p.Plan == nil || p.Refused == nil || judge(refused) != sql.Refused || unplanned(refused, p.Plan)) {
			return refused
		}
		begun, err := l.back(p)
		if err != nil {
			return err
		}
		if refused != nil {
			p.Refused(sql.Refusal{From: p.from, Size: len(p.Rows), At: p.culprit(refused, begun), Cause: refused})
		} else {
			touched += n
			p.Left(ignored)
			p.Gone(deleted)
		}
		if i+1 == len(pieces) || pieces[i+1].task != p.task {
			if err := p.Done(touched); err != nil {
				return err
			}
			touched = 0
		}
	}
	_, err := answer(l.pipe)
	return err
}

// result reads the answers to the statements of a piece.
func (l *listener) result(p *piece) (touched, ignored, deleted int64, err error) {
	for i := range p.statements {
		s := &p.statements[i]
		if s.text == readPosition {
			if l.begun, err = number(l.pipe); err != nil {
				return 0, 0, 0, err
			}
			continue
		}
		n, err := answer(l.pipe)
		if s.temporary && sqlState(err) == "42501" {
			err = l.noTemporary(err)
		}
		if err != nil {
			return 0, 0, 0, err
		}
		if !s.temporary {
			touched += n
		}
		ignored += max(0, int64(s.writes)-n)
		if s.deletes {
			deleted += n
		}
	}
	return touched, ignored, deleted, nil
}

// back reads the answers to the statements that are sent after a piece. It returns the number of rows of the piece that the server has
// begun.
func (l *listener) back(p *piece) (begun int, err error) {
	if p.Plan == nil {
		return 0, nil
	}
	if _, err := l.pipe.GetResults(); err != nil { // after this answer the server executes statements again
		return 0, err
	}
	if _, err := answer(l.pipe); err != nil {
		return 0, err
	}
	if !l.counting {
		return 0, nil
	}
	before := l.begun
	l.begun, err = number(l.pipe)
	return l.begun - before, err
}

// number reads an answer that consists of one number.
func number(pipe *pgconn.Pipeline) (n int, err error) {
	reader, err := result(pipe)
	if err != nil {
		return 0, err
	}
	for reader.NextRow() {
		n, err = strconv.Atoi(string(reader.Values()[0]))
	}
	_, closing := reader.Close()
	return n, errors.Join(err, closing)
}

// culprit returns the index of the row that an error is about, or -1 if the row is unknown. It derives the index from the number of rows
// that the server has begun. The row is unknown for foreign keys, deferrable unique keys and some triggers, because the server checks these
// after all rows.
func (p *piece) culprit(err error, begun int) int {
	deletes := 0
	if !p.Replace {
		deletes = sql.CountDeletes(p.Rows)
	}
	all := len(p.Rows) - deletes
	if begun == all && sqlState(err) == uniqueViolation {
		if at := p.named(err); at >= 0 {
			return at
		}
	}
	if begun > 0 && (begun < all || begun == all && ofOneRow(sqlState(err))) {
		return deletes + begun - 1
	}
	return p.named(err)
}

const uniqueViolation = "23505"

// ofOneRow reports whether an error with this SQLSTATE comes from a check of a single row. The server makes such a check as soon as it
// begins the row.
func ofOneRow(state string) bool {
	return strings.HasPrefix(state, "22") || slices.Contains([]string{"23502", uniqueViolation, "23514"}, state)
}

// named returns the first row with the key in the error's detail, or -1 if no row has that key. An example of such a detail is `Key
// (author)=(7) is not present in table "authors".`
func (p *piece) named(err error) int {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return -1
	}
	_, after, _ := strings.Cut(pg.Detail, "(")
	names, after, _ := strings.Cut(after, ")=(")
	var columns []int
	for name := range strings.SplitSeq(names, ", ") {
		c := slices.IndexFunc(p.Task.Plan.Columns, func(c row.PlanColumn) bool { return c.Name == name })
		if c < 0 {
			return -1
		}
		columns = append(columns, c)
	}
	var key []byte
	return slices.IndexFunc(p.Rows, func(r row.Row) bool {
		key = key[:0]
		for i, c := range columns {
			if i > 0 {
				key = append(key, ", "...)
			}
			if r.Values[c].IsNull() {
				return false
			}
			key = sql.AppendText(key, &r.Values[c])
		}
		return strings.HasPrefix(after, string(append(key, ')')))
	})
}
