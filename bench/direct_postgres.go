package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// postgresPrograms are the fastest ways known to write rows that are in memory:
// arrays, and COPY to a temporary table, in batches of baton's size and larger.
func postgresPrograms(data dataset) []program {
	var out []program
	for _, o := range []struct {
		name   string
		sorted bool
		ids    func(int) []int64
	}{{"as they arrive", false, asTheyArrive}, {"in key order", true, inKeyOrder}} {
		add := func(name string, batch int, connect func(pgx.Tx, dataset, []column) writer) {
			out = append(out, program{name: fmt.Sprintf("%s %d, %s", name, batch, o.name), role: roleDirect, sorted: o.sorted,
				prepare: func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
					return preparePostgres(ctx, t, data, data.memory(o.ids(t.Rows)), batch, connect)
				}})
		}
		add("unnest", 5_000, unnest)
		add("COPY", 5_000, copied)
		add("COPY", 20_000, copied)
	}
	return out
}

// writer writes the rows lo to hi of the columns.
type writer func(ctx context.Context, lo, hi int) error

func preparePostgres(ctx context.Context, t task, data dataset, columns []column, batch int,
	connect func(pgx.Tx, dataset, []column) writer) (func(context.Context) (int64, error), error) {
	conn, err := pgx.Connect(ctx, t.DSN)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "CREATE TEMPORARY TABLE pile ON COMMIT DELETE ROWS AS SELECT "+names(columns)+" FROM "+data.table+" LIMIT 0"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int64, error) {
		defer conn.Close(context.WithoutCancel(ctx))
		for lo := 0; lo < t.Rows; lo += batch {
			err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				return connect(tx, data, columns)(ctx, lo, min(lo+batch, t.Rows))
			})
			if err != nil {
				return 0, err
			}
		}
		return int64(t.Rows), nil
	}, nil
}

// unnest sends a batch as one array a column.
func unnest(tx pgx.Tx, data dataset, columns []column) writer {
	types := map[byte]string{'k': "bigint[]", 'i': "bigint[]", 't': "text[]", 's': "timestamptz[]"}
	var arrays []string
	for i, c := range columns {
		arrays = append(arrays, fmt.Sprintf("$%d::%s", i+1, types[c.kind]))
	}
	query := upsert(data, columns, "unnest("+strings.Join(arrays, ", ")+") AS u("+names(columns)+")")
	return func(ctx context.Context, lo, hi int) error {
		var args []any
		for _, c := range columns {
			switch c.kind {
			case 't':
				args = append(args, c.texts[lo:hi])
			case 's':
				args = append(args, c.times[lo:hi])
			default:
				args = append(args, c.ints[lo:hi])
			}
		}
		_, err := tx.Exec(ctx, query, args...)
		return err
	}
}

// copied sends a batch by COPY to a temporary table and writes from there.
func copied(tx pgx.Tx, data dataset, columns []column) writer {
	query := upsert(data, columns, "pile")
	var fields []string
	for _, c := range columns {
		fields = append(fields, c.name)
	}
	row := make([]any, len(columns))
	return func(ctx context.Context, lo, hi int) error {
		i := lo
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"pile"}, fields, pgx.CopyFromFunc(func() ([]any, error) {
			if i == hi {
				return nil, nil
			}
			for j := range columns {
				row[j] = columns[j].at(i)
			}
			i++
			return row, nil
		}))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, query)
		return err
	}
}

// upsert writes what stands in from. Counters are in the table already: an
// UPDATE is all that they need.
func upsert(data dataset, columns []column, from string) string {
	var set []string
	adds := false
	for _, c := range columns[1:] {
		adds = adds || c.add
		if c.add {
			set = append(set, fmt.Sprintf("%s = t.%s + u.%s", c.name, c.name, c.name))
		} else {
			set = append(set, fmt.Sprintf("%s = excluded.%s", c.name, c.name))
		}
	}
	if adds {
		if !strings.Contains(from, " AS u") {
			from += " AS u"
		}
		return fmt.Sprintf("UPDATE %s AS t SET %s FROM %s WHERE t.id = u.id", data.table, strings.Join(set, ", "), from)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s ON CONFLICT (id) DO UPDATE SET %s",
		data.table, names(columns), names(columns), from, strings.Join(set, ", "))
}

func names(columns []column) string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return strings.Join(out, ", ")
}
