package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"baton/bench/internal/rig"
)

// postgresWay is one way to write rows that are in memory.
type postgresWay struct {
	name  string
	batch int
	// write writes the rows lo to hi. The statement reads the rows from a table that write names.
	write func(ctx context.Context, tx pgx.Tx, columns []column, from func(source string) string, lo, hi int) error
	// statement returns the statement that writes: an upsert, or an update of existing rows.
	statement func(table string, columns []column, source string) string
}

// fewPostgresPrograms returns programs that use the fastest known ways, in batches of baton's size: arrays, and COPY to a temporary
// table. The programs write rows in the order of arrival.
func fewPostgresPrograms(data dataset) []program {
	return []program{
		postgresWay{"unnest 5000", 5_000, unnest, upsert}.program(data, false, 1),
		postgresWay{"COPY 5000", 5_000, copied, upsert}.program(data, false, 1),
	}
}

// postgresPrograms returns further programs, which write in key order, in larger batches, and on two connections.
func postgresPrograms(data dataset) []program {
	out := append(fewPostgresPrograms(data),
		postgresWay{"unnest 5000", 5_000, unnest, upsert}.program(data, true, 1),
		postgresWay{"COPY 5000", 5_000, copied, upsert}.program(data, true, 1),
		postgresWay{"COPY 20000", 20_000, copied, upsert}.program(data, false, 1),
		postgresWay{"COPY 5000", 5_000, copied, upsert}.program(data, false, 2))
	return append(out,
		postgresWay{"unnest 5000 UPDATE", 5_000, unnest, update}.program(data, false, 1),
		postgresWay{"COPY 5000 UPDATE", 5_000, copied, update}.program(data, false, 1),
		postgresWay{"COPY 5000 UPDATE", 5_000, copied, update}.program(data, true, 1))
}

// program returns a program that writes in this way, on the given number of connections. If sorted is set, the rows are in key order.
func (w postgresWay) program(data dataset, sorted bool, connections int) program {
	return program{name: w.name + suffix(sorted, connections), role: roleDirect, data: data,
		sorted: sorted, lanes: connections, batch: w.batch,
		prepare: func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
			return parallel(ctx, t, sorted, connections, func(ctx context.Context, ids []int64) (func(context.Context) error, error) {
				return w.writer(ctx, t.DSN, data, ids)
			})
		}}
}

// suffix returns the part of a name that distinguishes programs of the same way.
func suffix(sorted bool, connections int) string {
	name := ", as they arrive"
	if sorted {
		name = ", in key order"
	}
	if connections > 1 {
		name += fmt.Sprintf(", %d connections", connections)
	}
	return name
}

// parallel distributes the rows to connections by their ids, as baton distributes rows to lanes, and writes on all connections at the
// same time.
func parallel(ctx context.Context, t task, sorted bool, connections int,
	writer func(context.Context, []int64) (func(context.Context) error, error)) (func(context.Context) (int64, error), error) {
	ids := rig.AsTheyArrive(t.Rows, t.Table)
	if sorted {
		ids = rig.InKeyOrder(t.Rows, t.Table)
	}
	shares := make([][]int64, connections)
	for _, id := range ids {
		shares[id%int64(connections)] = append(shares[id%int64(connections)], id)
	}
	var writers []func(context.Context) error
	for _, share := range shares {
		w, err := writer(ctx, share)
		if err != nil {
			return nil, err
		}
		writers = append(writers, w)
	}
	return func(ctx context.Context) (int64, error) {
		var all errgroup.Group
		for _, w := range writers {
			all.Go(func() error { return w(ctx) })
		}
		return int64(t.Rows), all.Wait()
	}, nil
}

// writer returns a function that writes rows that are in memory, on its own connection.
func (w postgresWay) writer(ctx context.Context, dsn string, data dataset, ids []int64) (func(context.Context) error, error) {
	columns := data.memory(ids)
	from := func(source string) string { return w.statement(data.table, columns, source) }
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if err := makePile(ctx, conn, data.table, columns); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		defer conn.Close(context.WithoutCancel(ctx))
		for lo := 0; lo < len(ids); lo += w.batch {
			err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				return w.write(ctx, tx, columns, from, lo, min(lo+w.batch, len(ids)))
			})
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// pile is the name of the temporary table of a connection to which rows are copied.
const pile = "pile"

func makePile(ctx context.Context, conn *pgx.Conn, table string, columns []column) error {
	_, err := conn.Exec(ctx, "CREATE TEMPORARY TABLE "+pile+" ON COMMIT DELETE ROWS AS SELECT "+names(columns)+" FROM "+table+" LIMIT 0")
	return err
}

// unnest sends a batch as one array for each column.
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
	_, err := tx.CopyFrom(ctx, pgx.Identifier{pile}, fields, pgx.CopyFromFunc(func() ([]any, error) {
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
	_, err = tx.Exec(ctx, from(pile+" AS u"))
	return err
}

// upsert returns a statement that inserts the rows of the source, and overwrites existing rows.
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

// update returns a statement that updates the rows of the source. It is enough if all rows exist.
func update(table string, columns []column, source string) string {
	var set []string
	for _, c := range columns[1:] {
		value := "u." + c.name
		if c.add {
			value = "t." + c.name + " + " + value
		}
		set = append(set, c.name+" = "+value)
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
