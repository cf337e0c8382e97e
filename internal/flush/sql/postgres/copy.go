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

// copyFrom is the minimum number of rows that are sent by COPY to a temporary table of the session, and from there into the table. A COPY
// costs the server less work than reading arrays, but needs another round trip. For two or three columns of numbers arrays would cost the
// server 4 % less than a COPY. But if a process freezes while it sends a long message of arrays, it holds a lock on the ledger's entry. The
// server then waits for the rest of the message for ever: see loadFirst.
const copyFrom = 1000

// maxStagingTables limits the number of temporary tables in a session.
const maxStagingTables = 16

// stagingTable describes a temporary table, to which the rows of a plan are copied before they are written. Plans whose columns have the
// same types share one temporary table.
type stagingTable struct {
	name, create, copy string
	brief              string // creates a table that exists until the transaction ends
}

func newStagingTable(columns []planColumn) stagingTable {
	types := list(columns, func(c planColumn) string { return fmt.Sprintf("c%d %s", c.index+1, c.element) })
	p := stagingTable{name: nameOf(types)}
	create := "CREATE TEMPORARY TABLE IF NOT EXISTS " + p.name + " (" + types + ") ON COMMIT "
	p.create, p.brief = create+"DELETE ROWS", create+"DROP"
	p.copy = "COPY pg_temp." + p.name + " FROM STDIN BINARY"
	return p
}

// key returns the key under which the custom data of a connection records that the staging table exists.
func (p stagingTable) key() string { return "staging table " + p.name }

// createStaging creates the temporary tables for the tasks before the transaction begins, because a rollback would otherwise remove them.
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
		if sqlState(err) == "42501" { // the right is missing; arrays work without it
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

// staged reports whether the rows go through a staging table. Rows do so if the transaction is about to begin (see loadFirst), and the
// staging table exists and is empty. Rows that are retried after a refusal are sent as arrays.
func (t *session) staged(k sql.Task, p stagingTable) bool {
	if !t.begins || !copies(k) || t.used {
		return false
	}
	return t.pooled && !t.db.noStaging.Load() || t.pg.CustomData()[p.key()] != nil
}

// copy copies rows into the staging table, after it has run the statements in the argument before, which return no rows.
func (t *session) copy(ctx context.Context, before string, p stagingTable, columns []planColumn, rows []row.Row) error {
	t.used = true
	return copyRows(ctx, t.pg, &t.db.buffers, before+"; "+p.copy, &copyReader{columns: columns, rows: rows})
}

// copier has the method of the driver that a COPY needs. *pgconn.PgConn implements it.
type copier interface {
	CopyFrom(ctx context.Context, r io.Reader, sql string) (pgconn.CommandTag, error)
	IsClosed() bool
}

// pool lends buffers. It is implemented by a *sync.Pool of *[]byte.
type pool interface {
	Get() any
	Put(buffer any)
}

// copyRows copies rows with the given COPY statement. It encodes the rows in a buffer from the pool.
func copyRows(ctx context.Context, to copier, buffers pool, statement string, r *copyReader) error {
	buf := buffers.Get().(*[]byte)
	r.whole = (*buf)[:0]
	_, err := to.CopyFrom(ctx, r, statement)
	if to.IsClosed() {
		// The driver may still be reading, so no other batch may get this buffer.
		return err
	}
	*buf = r.whole
	buffers.Put(buf)
	if r.err != nil {
		return r.err // the server's error says only that the client gave up
	}
	return err
}

func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// copyReader writes rows in PostgreSQL's binary COPY format, a piece at a time, so that the server reads the first rows while the next
// rows are being encoded.
type copyReader struct {
	columns []planColumn
	rows    []row.Row
	whole   []byte // the present piece
	left    []byte // the part of the piece that was not read yet
	begun   bool
	ended   bool
	err     error
}

// copyPiece is the size of a piece in bytes, about the size of pgconn's messages.
const copyPiece = 60 << 10

// copyHeader is the header of a binary COPY: the signature, no flags, and no extension.
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
