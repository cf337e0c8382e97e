package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// naiveProgram is the first thing that one writes. It takes nothing out of Redis
// and it has neither ledger nor fence.
func naiveProgram(e engine, data dataset) program {
	return program{name: "naive: one row at a time", role: roleNaive, share: e.naiveShare, redis: true,
		prepare: func(_ context.Context, t task) (func(context.Context) (int64, error), error) {
			conn, err := redis.Dial("tcp", t.Redis, redis.DialClientName("naive"))
			if err != nil {
				return nil, err
			}
			db, err := sql.Open(e.sqlDriver, e.open(t.DSN))
			if err != nil {
				return nil, err
			}
			db.SetMaxOpenConns(1)
			naive := naiveHashes
			if data.inputs.Ledger {
				naive = naiveCounters
			}
			return func(ctx context.Context) (int64, error) {
				defer db.Close()
				defer conn.Close()
				return naive(ctx, e, conn, db, t.Rows)
			}, nil
		}}
}

// naiveHashes reads row by row and writes row by row, until it has written n.
func naiveHashes(ctx context.Context, e engine, conn redis.Conn, db *sql.DB, n int) (int64, error) {
	statement, err := db.PrepareContext(ctx, naiveUpsert(e))
	if err != nil {
		return 0, err
	}
	defer statement.Close()
	written := 0
	seen := map[string]bool{} // SCAN may return a key twice
	for cursor := "0"; ; {
		reply, err := redis.Values(conn.Do("SCAN", cursor, "MATCH", "user:*"))
		if err != nil {
			return 0, err
		}
		var keys []string
		if _, err := redis.Scan(reply, &cursor, &keys); err != nil {
			return 0, err
		}
		for _, key := range keys {
			if seen[key] {
				continue
			}
			seen[key] = true
			fields, err := redis.StringMap(conn.Do("HGETALL", key))
			if err != nil {
				return 0, err
			}
			at, err := time.Parse(time.RFC3339, fields["seen"])
			if err != nil {
				return 0, err
			}
			_, err = statement.ExecContext(ctx, strings.TrimPrefix(key, "user:"),
				fields["name"], fields["email"], fields["bio"], fields["visits"], at)
			if err != nil {
				return 0, err
			}
			if written++; written == n {
				return int64(n), nil
			}
		}
		if cursor == "0" {
			return 0, fmt.Errorf("found %d rows in Redis instead of %d", written, n)
		}
	}
}

func naiveUpsert(e engine) string {
	columns := []string{"name", "email", "bio", "visits", "seen"}
	var places, set []string
	for i := range len(columns) + 1 {
		places = append(places, e.place(i+1))
	}
	for _, c := range columns {
		set = append(set, c+" = "+e.incoming(c))
	}
	return fmt.Sprintf("INSERT INTO users (id, %s) VALUES (%s) %s %s",
		strings.Join(columns, ", "), strings.Join(places, ", "), e.conflict, strings.Join(set, ", "))
}

// naiveCounters reads the whole hash and updates counter by counter.
func naiveCounters(ctx context.Context, e engine, conn redis.Conn, db *sql.DB, _ int) (int64, error) {
	statement, err := db.PrepareContext(ctx, "UPDATE articles SET views = views + "+e.place(1)+" WHERE id = "+e.place(2))
	if err != nil {
		return 0, err
	}
	defer statement.Close()
	counts, err := redis.Int64Map(conn.Do("HGETALL", viewsKey))
	if err != nil {
		return 0, err
	}
	for field, n := range counts {
		id, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		if _, err := statement.ExecContext(ctx, n, id); err != nil {
			return 0, err
		}
	}
	return int64(len(counts)), nil
}
