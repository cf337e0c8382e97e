package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5"

	"baton/bench/internal/rig"
)

// naiveContender returns this program as a child process that writes one row at a time.
func naiveContender() contender {
	return contender{name: nameNaive, title: "naive", share: 10, start: func(l *lab, f flow, t target, _ setting) (*rig.Process, error) {
		return rig.Launch([]string{l.programs.self, "-child", f.source, "-redis", l.redis.Addr(), "-dsn", l.dsn, "-table", t.table,
			fmt.Sprintf("-upsert=%v", t.upsert)})
	}}
}

// naive is a program that writes one row at a time, and commits it.
type naive struct {
	redis redis.Conn
	db    *pgx.Conn
	query string
}

// naiveChild runs until it is killed, or the scan is over.
func naiveChild(ctx context.Context, o options) error {
	conn, err := redis.Dial("tcp", o.redis)
	if err != nil {
		return err
	}
	defer conn.Close()
	db, err := pgx.Connect(ctx, o.dsn)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	n := naive{conn, db, fmt.Sprintf("INSERT INTO %s (%s) VALUES ($1, $2, $3, $4, $5, $6) %s",
		o.into, strings.Join(columns(), ", "), onConflict(target{upsert: o.upsert}))}
	switch o.child {
	case flowStream:
		return n.stream(ctx)
	case flowList:
		return n.list(ctx)
	case flowScan:
		return n.scan(ctx)
	}
	return fmt.Errorf("no flow %q", o.child)
}

// write writes a row whose values are texts or numbers.
func (n naive) write(ctx context.Context, row map[string]string) error {
	var args []any
	for _, c := range columns() {
		args = append(args, row[c])
	}
	_, err := n.db.Exec(ctx, n.query, args...)
	return err
}

func (n naive) object(ctx context.Context, text string) error {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return err
	}
	row := map[string]string{}
	for k, v := range fields {
		row[k] = fmt.Sprint(v)
	}
	return n.write(ctx, row)
}

// stream reads as a member of a consumer group, and acknowledges written entries row by row. It first reads again the entries that were
// not acknowledged when the process died.
func (n naive) stream(ctx context.Context) error {
	_, err := n.redis.Do("XGROUP", "CREATE", streamKey, "naive", "0", "MKSTREAM")
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return err
	}
	from := "0"
	for ctx.Err() == nil {
		reply, err := redis.Values(n.redis.Do("XREADGROUP", "GROUP", "naive", "one", "COUNT", 100, "BLOCK", 1000, "STREAMS", streamKey, from))
		if errors.Is(err, redis.ErrNil) {
			continue
		}
		if err != nil {
			return err
		}
		stream, err := redis.Values(reply[0], nil)
		if err != nil {
			return err
		}
		entries, err := redis.Values(stream[1], nil)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			from = ">"
		}
		for _, e := range entries {
			entry, err := redis.Values(e, nil)
			if err != nil {
				return err
			}
			row, err := redis.StringMap(entry[1], nil)
			if err != nil {
				return err
			}
			if err := n.write(ctx, row); err != nil {
				return err
			}
			if _, err := n.redis.Do("XACK", streamKey, "naive", entry[0]); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// list takes a row out of Redis and writes it.
func (n naive) list(ctx context.Context) error {
	for ctx.Err() == nil {
		reply, err := redis.Strings(n.redis.Do("BLPOP", listKey, 1))
		if errors.Is(err, redis.ErrNil) {
			continue
		}
		if err != nil {
			return err
		}
		if err := n.object(ctx, reply[1]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// scan reads all keys once.
func (n naive) scan(ctx context.Context) error {
	for cursor := "0"; ; {
		reply, err := redis.Values(n.redis.Do("SCAN", cursor, "MATCH", scanned+"*"))
		if err != nil {
			return err
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return err
		}
		for _, key := range keys {
			text, err := redis.String(n.redis.Do("GET", key))
			if err != nil {
				return err
			}
			if err := n.object(ctx, text); err != nil {
				return err
			}
		}
		if cursor == "0" {
			return nil
		}
	}
}
