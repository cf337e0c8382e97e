package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// clientName is the name of the bench's own connections, so that their commands do not count for a program.
const clientName = "bench"

// startRedis starts a Redis that records every command that takes more than 100 µs.
func startRedis(dir string) (*testsupport.RedisDaemon, error) {
	return testsupport.RunRedis(dir, testsupport.RedisArgs(
		"--slowlog-log-slower-than", "100", "--slowlog-max-len", "100000"))
}

func dialRedis(addr string) (redis.Conn, error) {
	return redis.Dial("tcp", addr, redis.DialClientName(clientName))
}

// database is one empty database with the means to fill and read it.
type database struct {
	engine engine
	dsn    string
	db     *sql.DB
	stop   func() error
	pid    int // the process ID of the server; 0 for a file
}

// startDatabase starts a server with durable settings and enough cache for the
// table; see the engines.
func startDatabase(ctx context.Context, e engine, dir string) (*database, error) {
	if e.start == nil { // a file
		dir, err := os.MkdirTemp(dir, "baton-bench-")
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, "bench.db")
		db, err := sql.Open(e.sqlDriver, e.open(path))
		return &database{engine: e, dsn: path, db: db, stop: func() error { return os.RemoveAll(dir) }}, err
	}
	server, err := e.start(dir)
	if err != nil {
		return nil, err
	}
	made, err := server.CreateDatabase(ctx)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	db, err := sql.Open(e.sqlDriver, e.open(made.DSN))
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &database{engine: e, dsn: made.DSN, db: db, stop: server.Stop, pid: server.Pid()}, nil
}

func (d *database) close() error { return errors.Join(d.db.Close(), d.stop()) }

func (d *database) exec(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		if _, err := d.db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %s: %w", d.engine.title, s, err)
		}
	}
	return nil
}

// cpuSeconds returns the CPU time that the server has used so far.
func (d *database) cpuSeconds() (float64, error) {
	if d.pid == 0 {
		return 0, nil
	}
	return treeCPU(d.pid)
}

// cpuOfOthers returns the server's CPU time without the time for this program. This program looks for rows over one connection, which
// users do not do.
func (d *database) cpuOfOthers(ctx context.Context) (float64, error) {
	all, err := d.cpuSeconds()
	if err != nil || d.engine.driver != postgres().driver { // the other servers have one process for all connections
		return all, err
	}
	var pid int
	if err := d.db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return 0, err
	}
	own, err := cpuTimes(pid)
	return all - own.seconds(), err
}

// seed fills a table with n rows, which the programs then update.
func (d *database) seed(ctx context.Context, data dataset, n int) error {
	if err := d.exec(ctx, d.engine.empty(data.table), data.seed(d.engine, n)); err != nil {
		return err
	}
	return d.exec(ctx, d.engine.settle(data.table)...)
}

// check makes sure that exactly n rows of the table were written.
func (d *database) check(ctx context.Context, data dataset, n int) error {
	var got int
	query := "SELECT count(*) FROM " + data.table + " WHERE " + data.written
	if err := d.db.QueryRowContext(ctx, query).Scan(&got); err != nil {
		return fmt.Errorf("%s: %s: %w", d.engine.title, query, err)
	}
	if got != n {
		return fmt.Errorf("%s: %d rows of %s were to be written, %d were", d.engine.title, n, data.table, got)
	}
	return nil
}
