package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// naiveWay reads n rows and writes them one by one.
type naiveWay func(ctx context.Context, e engine, conn redis.Conn, db *sql.DB, n int) (int64, error)

// naiveProgram returns the first solution of most programmers. It has neither a ledger nor a fence.
func naiveProgram(e engine, data dataset) program {
	return program{name: "naive: one row at a time", role: roleNaive, share: e.naiveShare, redis: true, data: data,
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
			return func(ctx context.Context) (int64, error) {
				defer db.Close()
				defer conn.Close()
				return data.naive(ctx, e, conn, db, t.Rows)
			}, nil
		}}
}

// naiveHashes reads and writes row by row, until it has written n rows.
func naiveHashes(ctx context.Context, e engine, conn redis.Conn, db *sql.DB, n int) (int64, error) {
	write, done, err := naiveWriter(ctx, e, db)
	if err != nil {
		return 0, err
	}
	defer done()
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
			fields["id"] = strings.TrimPrefix(key, "user:")
			if err := write(fields); err != nil {
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

// naiveList takes rows out of a list, one by one.
func naiveList(ctx context.Context, e engine, conn redis.Conn, db *sql.DB, n int) (int64, error) {
	write, done, err := naiveWriter(ctx, e, db)
	if err != nil {
		return 0, err
	}
	defer done()
	for range n {
		text, err := redis.Bytes(conn.Do("LPOP", listKey))
		if err != nil {
			return 0, err
		}
		var user struct {
			ID, Visits             json.Number
			Name, Email, Bio, Seen string
		}
		if err := json.Unmarshal(text, &user); err != nil {
			return 0, err
		}
		err = write(map[string]string{"id": user.ID.String(), "name": user.Name, "email": user.Email,
			"bio": user.Bio, "visits": user.Visits.String(), "seen": user.Seen})
		if err != nil {
			return 0, err
		}
	}
	return int64(n), nil
}

// naiveStream reads a stream as a member of a consumer group, and acknowledges every row.
func naiveStream(ctx context.Context, e engine, conn redis.Conn, db *sql.DB, n int) (int64, error) {
	write, done, err := naiveWriter(ctx, e, db)
	if err != nil {
		return 0, err
	}
	defer done()
	if _, err := conn.Do("XGROUP", "CREATE", streamKey, "naive", "0"); err != nil {
		return 0, err
	}
	written := 0
	for written < n {
		reply, err := redis.Values(conn.Do("XREADGROUP", "GROUP", "naive", "one", "COUNT", 10, "STREAMS", streamKey, ">"))
		if err != nil {
			return 0, err
		}
		stream, err := redis.Values(reply[0], nil)
		if err != nil {
			return 0, err
		}
		entries, err := redis.Values(stream[1], nil)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			entry, err := redis.Values(e, nil)
			if err != nil {
				return 0, err
			}
			fields, err := redis.StringMap(entry[1], nil)
			if err != nil {
				return 0, err
			}
			if err := write(fields); err != nil {
				return 0, err
			}
			if _, err := conn.Do("XACK", streamKey, "naive", entry[0]); err != nil {
				return 0, err
			}
			written++
		}
	}
	return int64(written), nil
}

// naiveWriter prepares the statement that write runs for each row.
func naiveWriter(ctx context.Context, e engine, db *sql.DB) (write func(map[string]string) error, done func(), err error) {
	statement, err := db.PrepareContext(ctx, naiveUpsert(e))
	if err != nil {
		return nil, nil, err
	}
	write = func(fields map[string]string) error {
		at, err := time.Parse(time.RFC3339, fields["seen"])
		if err != nil {
			return err
		}
		_, err = statement.ExecContext(ctx, fields["id"], fields["name"], fields["email"], fields["bio"], fields["visits"], at)
		return err
	}
	return write, func() { _ = statement.Close() }, nil
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

// naiveCounters reads the whole hash, and updates the rows counter by counter.
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
