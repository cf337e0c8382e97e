package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// mariaPrograms returns programs that write by prepared inserts of many rows, which is the fastest known way for MariaDB. baton writes in
// the same way.
func mariaPrograms(data dataset) []program {
	return []program{
		sqlProgram(maria(), data, 1000, false, 1),
		sqlProgram(maria(), data, 1000, true, 1),
		sqlProgram(maria(), data, 1000, false, 2),
	}
}

// sqlitePrograms returns programs that write by a prepared insert of one row, many times in a transaction. SQLite has no server, so a
// larger insert would save no round trip.
func sqlitePrograms(data dataset) []program {
	return []program{sqlProgram(sqlite(), data, 1, false, 1), sqlProgram(sqlite(), data, 1, true, 1)}
}

// sqlProgram returns a program that writes the given number of rows with each statement, and as many rows in each transaction as baton.
func sqlProgram(e engine, data dataset, rows int, sorted bool, connections int) program {
	const batch = 5_000
	name := fmt.Sprintf("%d rows a statement", rows)
	if rows == 1 {
		name = "1 row a statement"
	}
	return program{name: name + suffix(sorted, connections), role: roleDirect, data: data,
		sorted: sorted, lanes: connections, batch: batch,
		prepare: func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
			return parallel(ctx, t, sorted, connections, func(ctx context.Context, ids []int64) (func(context.Context) error, error) {
				return sqlWriter(ctx, e, data, t.DSN, rows, batch, ids)
			})
		}}
}

// sqlWriter returns a function that writes rows that are in memory, on its own connection.
func sqlWriter(ctx context.Context, e engine, data dataset, dsn string, rows, batch int, ids []int64) (func(context.Context) error, error) {
	w, err := newRowWriter(ctx, e, data, data.memory(ids), dsn, rows)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		defer w.db.Close()
		for lo := 0; lo < len(ids); lo += batch {
			if err := w.write(ctx, lo, min(lo+batch, len(ids))); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// rowWriter writes rows that are in memory on one connection, with one prepared
// statement.
type rowWriter struct {
	db      *sql.DB
	conn    *sql.Conn
	full    *sql.Stmt // for a full statement
	rows    int
	some    func(n int) string // the same for fewer rows
	columns []column
	args    []any
}

func newRowWriter(ctx context.Context, e engine, data dataset, columns []column, dsn string, rows int) (*rowWriter, error) {
	w := &rowWriter{rows: rows, columns: columns, some: func(n int) string { return manyRows(e, data, columns, n) }}
	var err error
	if w.db, err = sql.Open(e.sqlDriver, e.open(dsn)); err != nil {
		return nil, err
	}
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return nil, err
	}
	w.full, err = w.conn.PrepareContext(ctx, w.some(rows))
	return w, err
}

// write writes the rows lo to hi in one transaction.
func (w *rowWriter) write(ctx context.Context, lo, hi int) error {
	if _, err := w.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	for ; lo < hi; lo += w.rows {
		n := min(w.rows, hi-lo)
		w.args = w.args[:0]
		for i := lo; i < lo+n; i++ {
			for j := range w.columns {
				w.args = append(w.args, w.columns[j].at(i))
			}
		}
		var err error
		if n == w.rows {
			_, err = w.full.ExecContext(ctx, w.args...)
		} else {
			_, err = w.conn.ExecContext(ctx, w.some(n), w.args...)
		}
		if err != nil {
			return err
		}
	}
	_, err := w.conn.ExecContext(ctx, "COMMIT")
	return err
}

// manyRows returns an upsert of n rows.
func manyRows(e engine, data dataset, columns []column, n int) string {
	place := 0
	row := func() string {
		places := make([]string, len(columns))
		for i := range places {
			place++
			places[i] = e.place(place)
		}
		return "(" + strings.Join(places, ", ") + ")"
	}
	all := make([]string, n)
	for i := range all {
		all[i] = row()
	}
	var set []string
	for _, c := range columns[1:] {
		value := e.incoming(c.name)
		if c.add {
			value = c.name + " + " + value
		}
		set = append(set, c.name+" = "+value)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s %s %s",
		data.table, names(columns), strings.Join(all, ", "), e.conflict, strings.Join(set, ", "))
}
