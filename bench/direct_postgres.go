package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// postgresWay is one way to write rows that are in memory.
type postgresWay struct {
	name  string
	batch int
	// write writes the rows lo to hi. The statement takes them from a table that
	// write says.
	write func(ctx context.Context, tx pgx.Tx, columns []column, from func(source string) string, lo, hi int) error
	// statement is what writes: an upsert, or an update of rows that are there.
	statement func(table string, columns []column, source string) string
}

// postgresPrograms are the fastest ways known: arrays, and COPY to a temporary
// table, in batches of baton's size and larger.
func postgresPrograms(data dataset) []program {
	ways := []postgresWay{
		{"unnest 5000", 5_000, unnest, upsert},
		{"COPY 5000", 5_000, copied, upsert},
		{"COPY 20000", 20_000, copied, upsert},
	}
	if data.inputs.Ledger {
		ways = append(ways, postgresWay{"unnest 5000 UPDATE", 5_000, unnest, update})
	}
	var out []program
	for _, w := range ways {
		out = append(out,
			program{name: w.name + ", as they arrive", role: roleDirect, prepare: w.prepare(data, asTheyArrive)},
			program{name: w.name + ", in key order", role: roleDirect, prepare: w.prepare(data, inKeyOrder), sorted: true})
	}
	return out
}

func (w postgresWay) prepare(data dataset, order func(int) []int64) func(context.Context, task) (func(context.Context) (int64, error), error) {
	return func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
		columns := data.memory(order(t.Rows))
		from := func(source string) string { return w.statement(data.table, columns, source) }
		conn, err := pgx.Connect(ctx, t.DSN)
		if err != nil {
			return nil, err
		}
		_, err = conn.Exec(ctx, "CREATE TEMPORARY TABLE pile ON COMMIT DELETE ROWS AS SELECT "+names(columns)+" FROM "+data.table+" LIMIT 0")
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (int64, error) {
			defer conn.Close(context.WithoutCancel(ctx))
			for lo := 0; lo < t.Rows; lo += w.batch {
				err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
					return w.write(ctx, tx, columns, from, lo, min(lo+w.batch, t.Rows))
				})
				if err != nil {
					return 0, err
				}
			}
			return int64(t.Rows), nil
		}, nil
	}
}

// unnest sends a batch as one array a column.
func unnest(ctx context.Context, tx pgx.Tx, columns []column, from func(string) string, lo, hi int) error {
	types := map[byte]string{'k': "bigint[]", 'i': "bigint[]", 't': "text[]", 's': "timestamptz[]"}
	var arrays []string
	var args []any
	for i, c := range columns {
		arrays = append(arrays, fmt.Sprintf("$%d::%s", i+1, types[c.kind]))
		switch c.kind {
		case 't':
			args = append(args, c.texts[lo:hi])
		case 's':
			args = append(args, c.times[lo:hi])
		default:
			args = append(args, c.ints[lo:hi])
		}
	}
	_, err := tx.Exec(ctx, from("unnest("+strings.Join(arrays, ", ")+") AS u("+names(columns)+")"), args...)
	return err
}

// copied sends a batch by COPY to a temporary table and writes from there.
func copied(ctx context.Context, tx pgx.Tx, columns []column, from func(string) string, lo, hi int) error {
	var fields []string
	for _, c := range columns {
		fields = append(fields, c.name)
	}
	row := make([]any, len(columns))
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
	_, err = tx.Exec(ctx, from("pile AS u"))
	return err
}

// upsert writes what stands in the source, over what is there.
func upsert(table string, columns []column, source string) string {
	var set []string
	for _, c := range columns[1:] {
		value := "excluded." + c.name
		if c.add {
			value = "t." + c.name + " + " + value
		}
		set = append(set, c.name+" = "+value)
	}
	return fmt.Sprintf("INSERT INTO %s AS t (%s) SELECT %s FROM %s ON CONFLICT (id) DO UPDATE SET %s",
		table, names(columns), names(columns), source, strings.Join(set, ", "))
}

// update is enough where all rows are known to be there, as those of counters are.
func update(table string, columns []column, source string) string {
	var set []string
	for _, c := range columns[1:] {
		set = append(set, fmt.Sprintf("%s = t.%s + u.%s", c.name, c.name, c.name))
	}
	return fmt.Sprintf("UPDATE %s AS t SET %s FROM %s WHERE t.id = u.id", table, strings.Join(set, ", "), source)
}

func names(columns []column) string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return strings.Join(out, ", ")
}
