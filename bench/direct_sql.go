package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// mariaPrograms write by prepared inserts of many rows, which nothing known beats
// there. baton writes so, too.
func mariaPrograms(data dataset) []program { return sqlPrograms(maria(), data, 1000, 5000) }

// sqlitePrograms write by a prepared insert of one row, many times a transaction:
// there is no server to spare the way to.
func sqlitePrograms(data dataset) []program { return sqlPrograms(sqlite(), data, 1, 5000) }

// sqlPrograms write so many rows a statement and a transaction.
func sqlPrograms(e engine, data dataset, rows, batch int) []program {
	name := fmt.Sprintf("%d rows a statement", rows)
	if rows == 1 {
		name = "1 row a statement"
	}
	prepare := func(order func(int) []int64) func(context.Context, task) (func(context.Context) (int64, error), error) {
		return func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
			w, err := newRowWriter(ctx, e, data, data.memory(order(t.Rows)), t.DSN, rows)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) (int64, error) {
				defer w.db.Close()
				for lo := 0; lo < t.Rows; lo += batch {
					if err := w.write(ctx, lo, min(lo+batch, t.Rows)); err != nil {
						return 0, err
					}
				}
				return int64(t.Rows), nil
			}, nil
		}
	}
	return []program{
		{name: name + ", as they arrive", role: roleDirect, prepare: prepare(asTheyArrive)},
		{name: name + ", in key order", role: roleDirect, prepare: prepare(inKeyOrder), sorted: true},
	}
}

// rowWriter writes rows that are in memory on one connection, with one prepared
// statement.
type rowWriter struct {
	db      *sql.DB
	conn    *sql.Conn
	full    *sql.Stmt // for as many rows as a statement takes
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

// manyRows is an upsert of n rows.
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
