package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5"

	"baton/bench/internal/rig"
	"baton/internal/testsupport"
)

// lab is a Redis and a PostgreSQL, durable and with a cache that holds the tables.
type lab struct {
	dir      string // for the configurations of programs
	redis    *testsupport.RedisDaemon
	postgres *testsupport.SQLDaemon
	dsn      string
	conn     redis.Conn
	db       *pgx.Conn
	programs programs
}

// programs are the paths of the built programs.
type programs struct{ baton, benthos, self string }

func newLab(ctx context.Context, dir, servers string, built programs) (l *lab, err error) {
	l = &lab{dir: dir, programs: built}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.redis, err = testsupport.RunRedis(servers); err != nil {
		return l, err
	}
	if l.conn, err = l.dial(); err != nil {
		return l, err
	}
	l.postgres, err = testsupport.RunPostgresWith(servers, "fsync=on", "synchronous_commit=on", "shared_buffers=512MB",
		"max_wal_size=8GB", "checkpoint_timeout=30min", "autovacuum=off")
	if err != nil {
		return l, err
	}
	made, err := l.postgres.CreateDatabase(ctx)
	if err != nil {
		return l, err
	}
	l.dsn = made.DSN
	if l.db, err = pgx.Connect(ctx, l.dsn); err != nil {
		return l, err
	}
	// The server expects few rows in a table that was empty, and would read all of it to find some.
	_, err = l.db.Exec(ctx, "SET enable_seqscan = off")
	return l, err
}

func (l *lab) close() error {
	var problems []error
	if l.conn != nil {
		problems = append(problems, l.conn.Close())
	}
	if l.db != nil {
		problems = append(problems, l.db.Close(context.Background()))
	}
	if l.postgres != nil {
		problems = append(problems, l.postgres.Stop())
	}
	if l.redis != nil {
		problems = append(problems, l.redis.Stop())
	}
	return errors.Join(problems...)
}

func (l *lab) dial() (redis.Conn, error) { return redis.Dial("tcp", l.redis.Addr()) }

// config writes a program's configuration and returns its path.
func (l *lab) config(name, text string) (string, error) {
	path := filepath.Join(l.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// reset empties Redis and makes the target again, with existing rows.
func (l *lab) reset(ctx context.Context, t target, rows int) error {
	if _, err := l.conn.Do("FLUSHALL"); err != nil {
		return err
	}
	statements := []string{
		// baton's tables from an earlier turn belong to a Redis that no longer exists.
		"DROP SCHEMA public CASCADE", "CREATE SCHEMA public",
		rig.UsersTable(t.table, t.constraint),
	}
	if t.upsert {
		statements = append(statements, fmt.Sprintf("INSERT INTO %s SELECT i, 'Nobody 00000000', 'user0000000@example.com', "+
			"repeat('x', %d), 0, '2020-01-01' FROM generate_series(1, %d) AS s(i)", t.table, rig.BioLength, rows))
	}
	for _, s := range append(statements, "VACUUM ANALYZE "+t.table) {
		if _, err := l.db.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// written counts the ids whose rows are equal to Redis.
func (l *lab) written(ctx context.Context, t target, ids []int64) (n int, err error) {
	err = l.db.QueryRow(ctx, "SELECT count(*) FROM "+t.table+" WHERE id = ANY($1) AND visits = id * 7 + 1", ids).Scan(&n)
	return n, err
}

// arrived waits until the rows of all ids are in the table. It first checks only some of the last rows, because each check costs the
// database time, and checks all rows when these rows are there.
func (l *lab) arrived(ctx context.Context, p *rig.Process, t target, ids []int64, limit time.Duration) (time.Time, error) {
	last := ids[len(ids)-len(ids)/10-1:]
	var some []int64
	for i := len(last) - 1; i >= 0; i -= max(1, len(last)/100) {
		some = append(some, last[i])
	}
	deadline := time.Now().Add(limit)
	for {
		n, err := l.written(ctx, t, some)
		at := time.Now()
		if err == nil && n == len(some) {
			if n, err = l.written(ctx, t, ids); n == len(ids) {
				return at, err
			}
		}
		switch {
		case err != nil:
			return at, err
		case at.After(deadline):
			return at, fmt.Errorf("after %v %d of the last %d rows are in %s", limit, n, len(some), t.table)
		case !wait(ctx, 10*time.Millisecond):
			return at, ctx.Err()
		}
		select {
		case <-p.Done():
			if n, err := l.written(ctx, t, ids); n != len(ids) || err != nil {
				return at, errors.Join(fmt.Errorf("the program ended with %d of %d rows written: %w", n, len(ids), p.Err()), err)
			}
		default:
		}
	}
}

// wait waits for the time d. It returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
