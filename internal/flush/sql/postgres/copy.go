package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// copyFrom is the minimum number of rows that go by COPY to a temporary table of the session,
// and from there into the table. That costs the server less than taking arrays apart, but
// needs another round trip. For two or three columns of numbers arrays would cost the server
// 4 % less. But a process that freezes within a long message of arrays has locked the ledger's
// entry, and the server waits for the rest for ever: see loadFirst.
const copyFrom = 1000

// maxStagingTables bounds the temporary tables of a session.
const maxStagingTables = 16

// stagingTable is the temporary table for rows of a plan. Tables of the same types share one.
type stagingTable struct {
	name, create, copy string
	brief              string // creates it until the transaction ends
}

func newStagingTable(columns []planColumn) stagingTable {
	types := list(columns, func(c planColumn) string { return fmt.Sprintf("c%d %s", c.index+1, c.element) })
	p := stagingTable{name: nameOf(types)}
	create := "CREATE TEMPORARY TABLE IF NOT EXISTS " + p.name + " (" + types + ") ON COMMIT "
	p.create, p.brief = create+"DELETE ROWS", create+"DROP"
	p.copy = "COPY pg_temp." + p.name + " FROM STDIN BINARY"
	return p
}

// key marks a staging table in the custom data of a connection.
func (p stagingTable) key() string { return "staging table " + p.name }

// createStaging creates the temporary tables of tasks before the transaction, because a
// rollback would remove them.
func (t *session) createStaging(ctx context.Context, tasks []sql.Task) error {
	if t.pooled || t.pg.TxStatus() != 'I' || t.db.noStaging.Load() {
		return nil
	}
	for _, k := range tasks {
		if !copies(k) {
			continue
		}
		p := t.db.plans.Get(k.Plan, compile).staging
		known := t.pg.CustomData()
		n, _ := known["staging tables"].(int)
		if known[p.key()] != nil || n >= maxStagingTables {
			continue
		}
		_, err := t.pg.Exec(ctx, p.create).ReadAll()
		if sqlState(err) == "42501" { // no right to: arrays do, too
			t.db.noStaging.Store(true)
			return nil
		}
		if err != nil {
			return err
		}
		known[p.key()], known["staging tables"] = true, n+1
	}
	return nil
}

// copies reports whether the task has enough rows for a COPY.
func copies(t sql.Task) bool {
	return t.Plan != nil && !t.Update && !inPieces([]sql.Task{t}) && len(t.Rows)-sql.CountDeletes(t.Rows) >= copyFrom
}

// staged reports whether the rows go through a staging table: the transaction is about to
// begin (see loadFirst), and the staging table exists and is empty.
// Rows that are tried again after a refusal go by arrays.
func (t *session) staged(k sql.Task, p stagingTable) bool {
	if !t.begins || !copies(k) || t.used {
		return false
	}
	return t.pooled && !t.db.noStaging.Load() || t.pg.CustomData()[p.key()] != nil
}

// copy puts rows into the staging table, after some statements without results.
func (t *session) copy(ctx context.Context, before string, p stagingTable, columns []planColumn, rows []row.Row) error {
	t.used = true
	return copyRows(ctx, t.pg, &t.db.buffers, before+"; "+p.copy, &copyReader{columns: columns, rows: rows})
}

// copier is the driver's part in a COPY: a *pgconn.PgConn.
type copier interface {
	CopyFrom(ctx context.Context, r io.Reader, sql string) (pgconn.CommandTag, error)
	IsClosed() bool
}

// pool lends memory: a *sync.Pool of *[]byte.
type pool interface {
	Get() any
	Put(buffer any)
}

// copyRows encodes the rows in memory from the pool.
func copyRows(ctx context.Context, to copier, buffers pool, statement string, r *copyReader) error {
	buf := buffers.Get().(*[]byte)
	r.whole = (*buf)[:0]
	_, err := to.CopyFrom(ctx, r, statement)
	if to.IsClosed() {
		// The driver may be reading still: no other batch may get this memory.
		return err
	}
	*buf = r.whole
	buffers.Put(buf)
	if r.err != nil {
		return r.err // the server's error is only that we gave up
	}
	return err
}

func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// copyReader writes rows in PostgreSQL's binary COPY format, a piece at a time, so that
// the server reads the first ones while the next are being encoded.
type copyReader struct {
	columns []planColumn
	rows    []row.Row
	whole   []byte // the piece
	left    []byte // what of it has not been read
	begun   bool
	ended   bool
	err     error
}

// copyPiece is the size of a piece, about that of pgconn's messages.
const copyPiece = 60 << 10

// copyHeader is a signature, no flags, and no extension.
const copyHeader = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func (r *copyReader) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.ended {
			return 0, io.EOF
		}
		r.encode()
		if r.err != nil {
			return 0, r.err
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (r *copyReader) encode() {
	buf := r.whole[:0]
	if !r.begun {
		r.begun = true
		buf = append(buf, copyHeader...)
	}
	for len(r.rows) > 0 && len(buf) < copyPiece {
		buf = binary.BigEndian.AppendUint16(buf, uint16(len(r.columns)))
		for i := range r.columns {
			c := &r.columns[i]
			if buf, r.err = c.append(buf, &r.rows[0].Values[c.index]); r.err != nil {
				return
			}
		}
		r.rows = r.rows[1:]
	}
	if len(r.rows) == 0 {
		r.ended = true
		buf = binary.BigEndian.AppendUint16(buf, 0xffff)
	}
	r.whole, r.left = buf, buf
}
