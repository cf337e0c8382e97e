package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// tunedName is the name of a program for the same rows, by a programmer who knows the rows and the table and wants speed. The program has
// no lease, no fence, no second attempt and no dead letters, and forgets rows that it has not written. It shows how much processor time
// Redis and the database leave to any program that reads from Redis and writes into the database.
const tunedName = "tuned by hand"

// tunedAhead is the number of batches that are read before the present batch is written.
const tunedAhead = 2

// tunedHashes returns the reader for the rows of a cell. ok is false if there is no such program.
func tunedHashes(c cell) (h tunedReader, ok bool) {
	h.sorted = c.order == keyOrder
	switch {
	case c.driver != postgres().driver:
		return h, false
	case c.source == "scan":
		h.prefix = "user:"
	case c.source == "hashes" && h.sorted:
		h.prefix, h.index = "user:", userChanged
	case c.source == "hashes":
		h.prefix, h.index = "member:", memberChanged
	default:
		return h, false
	}
	return h, true
}

// tunedReader reads hashes.
type tunedReader struct {
	conn   redis.Conn
	prefix string // the prefix of the hashes' keys
	index  string // the set of the changed keys; "": all keys
	sorted bool   // all keys are sorted before the first one is read
}

// tuned returns the program of a cell.
func tuned(c cell, h tunedReader) program {
	return program{name: tunedName, role: roleTuned, data: c.data(), prepare: func(ctx context.Context, t task) (func(context.Context) (int64, error), error) {
		conn, err := dialRedis(t.Redis)
		if err != nil {
			return nil, err
		}
		h.conn = conn
		w, err := startWriter(ctx, t.DSN, c.data())
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (rows int64, err error) {
			defer w.conn.Close(context.WithoutCancel(ctx))
			defer conn.Close()
			batches := make(chan []tunedRow, tunedAhead)
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error {
				defer close(batches)
				return h.each(ctx, batches)
			})
			group.Go(func() error {
				for b := range batches {
					rows += int64(len(b))
					if err := w.write(ctx, b); err != nil {
						return err
					}
				}
				return nil
			})
			return rows, group.Wait()
		}, nil
	}}
}

// tunedRow is a row, in the order of the table's columns.
type tunedRow struct {
	id, visits       int64
	name, email, bio string
	seen             time.Time
}

// each sends all batches to the writer.
func (h tunedReader) each(ctx context.Context, batches chan<- []tunedRow) error {
	var ids []string
	for cursor := "0"; ; {
		args := []any{"SSCAN", h.index, cursor, "COUNT", gridBatch}
		if h.index == "" {
			args = []any{"SCAN", cursor, "MATCH", h.prefix + "*", "COUNT", gridBatch}
		}
		reply, err := redis.Values(h.conn.Do(args[0].(string), args[1:]...))
		if err != nil {
			return err
		}
		var some []string
		if _, err := redis.Scan(reply, &cursor, &some); err != nil {
			return err
		}
		for _, id := range some {
			ids = append(ids, strings.TrimPrefix(id, h.prefix))
		}
		over := cursor == "0"
		if over && h.sorted {
			slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		}
		for len(ids) >= gridBatch && (over || !h.sorted) || over && len(ids) > 0 {
			n := min(gridBatch, len(ids))
			rows, err := h.read(ids[:n])
			if err != nil {
				return err
			}
			select {
			case batches <- rows:
			case <-ctx.Done():
				return ctx.Err()
			}
			ids = ids[n:]
		}
		if over {
			return nil
		}
	}
}

// read reads the rows of ids, and sorts them by the table's key.
func (h tunedReader) read(ids []string) ([]tunedRow, error) {
	const depth = 1000
	rows := make([]tunedRow, 0, len(ids))
	for some := range slices.Chunk(ids, depth) {
		for _, id := range some {
			if err := h.conn.Send("HMGET", h.prefix+id, "id", "name", "email", "bio", "visits", "seen"); err != nil {
				return nil, err
			}
		}
		if err := h.conn.Flush(); err != nil {
			return nil, err
		}
		for _, id := range some {
			fields, err := redis.Values(h.conn.Receive())
			if err != nil {
				return nil, err
			}
			r, err := tunedRowOf(id, fields)
			if err != nil {
				return nil, fmt.Errorf("%s%s: %w", h.prefix, id, err)
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b tunedRow) int { return cmp.Compare(a.id, b.id) })
	return rows, nil
}

func tunedRowOf(id string, fields []any) (r tunedRow, err error) {
	text := func(i int) string { b, _ := fields[i].([]byte); return string(b) }
	if r.id, err = strconv.ParseInt(cmp.Or(text(0), id), 10, 64); err != nil {
		return r, err
	}
	r.name, r.email, r.bio = text(1), text(2), text(3)
	if r.visits, err = strconv.ParseInt(text(4), 10, 64); err != nil {
		return r, err
	}
	r.seen, err = time.Parse(time.RFC3339, text(5))
	return r, err
}

// tunedWriter writes rows by COPY.
type tunedWriter struct {
	conn   *pgx.Conn
	upsert string
	names  []string
}

func startWriter(ctx context.Context, dsn string, data dataset) (*tunedWriter, error) {
	columns := data.memory(nil)
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	w := &tunedWriter{conn: conn, upsert: upsert(data.table, columns, pile+" AS u"), names: strings.Split(names(columns), ", ")}
	return w, makePile(ctx, conn, data.table, columns)
}

func (w *tunedWriter) write(ctx context.Context, rows []tunedRow) error {
	return pgx.BeginFunc(ctx, w.conn, func(tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{pile}, w.names, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			r := &rows[i]
			return []any{r.id, r.name, r.email, r.bio, r.visits, r.seen}, nil
		}))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, w.upsert)
		return err
	})
}
