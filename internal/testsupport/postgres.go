package testsupport

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// Postgres is a fresh database on the PostgreSQL that all tests of this process
// share. Its user "app" owns it and is no superuser.
func Postgres(t testing.TB) *Database {
	t.Helper()
	return shared.postgres(t).database(t)
}

// StartPostgres is a fresh database on a PostgreSQL of this test alone.
func StartPostgres(t testing.TB) *Database {
	t.Helper()
	return private(t, RunPostgres)
}

// RunPostgres starts a PostgreSQL with its files below dir, or below the system's
// temporary directory if dir is empty. The caller stops it.
func RunPostgres(dir string) (*SQLDaemon, error) { return RunPostgresWith(dir) }

// RunPostgresWith is RunPostgres with settings of the caller's, such as
// "shared_buffers=256MB", over those that suit tests.
func RunPostgresWith(dir string, settings ...string) (*SQLDaemon, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	cred, err := credentialOf("postgres")
	if err != nil {
		return nil, err
	}
	sd, err := newServerDir(dir, "postgres")
	if err != nil {
		return nil, err
	}
	data, err := sd.Data(cred)
	if err != nil {
		return nil, sd.Fail(err)
	}
	// Only the files of the empty cluster are not synced: the server itself is.
	err = fillData("postgres", data, cred, func(dir string) error {
		return run([]string{filepath.Join(bin, "initdb"), "-D", dir, "-A", "trust", "-U", "postgres",
			"-E", "UTF8", "--locale=C.UTF-8", "--no-sync"}, dir, cred)
	})
	if err != nil {
		return nil, sd.Fail(fmt.Errorf("make a PostgreSQL cluster: %w", err))
	}
	d := &Daemon{name: "postgres", dir: sd, cred: cred, stop: syscall.SIGQUIT}
	d.argv = func(port int) []string {
		argv := []string{filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", ""}
		for _, s := range append([]string{"shared_buffers=32MB", "max_connections=100", "jit=off"}, settings...) {
			argv = append(argv, "-c", s)
		}
		return argv
	}
	d.ready = func(ctx context.Context, d *Daemon) error { return pingPostgres(ctx, d.Addr(), data) }
	if err := d.start(); err != nil {
		return nil, sd.Fail(err)
	}
	s := &SQLDaemon{Daemon: d, engine: postgresEngine(d.Addr())}
	if err := s.setUp("CREATE ROLE app LOGIN CREATEROLE"); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return s, nil
}

func postgresEngine(addr string) engine {
	open := func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) }
	return engine{
		driver: "postgres",
		dsn: func(addr, database string) string {
			return "postgres://app@" + addr + "/" + database + "?sslmode=disable"
		},
		admin:  func() (*sql.DB, error) { return open(postgresAdmin(addr)) },
		open:   open,
		create: func(name string) string { return "CREATE DATABASE " + name + " OWNER app" },
		drop: func(ctx context.Context, c *sql.DB, name string) error {
			_, err := c.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
			return err
		},
	}
}

func postgresAdmin(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable&connect_timeout=2"
}

func pingPostgres(ctx context.Context, addr, data string) error {
	db, err := sql.Open("pgx", postgresAdmin(addr))
	if err != nil {
		return err
	}
	defer db.Close()
	var dir string
	if err := db.QueryRowContext(ctx, "SHOW data_directory").Scan(&dir); err != nil {
		return err
	}
	if dir != data {
		return fmt.Errorf("another PostgreSQL answers on %s", addr)
	}
	return nil
}

// postgresBin finds the newest PostgreSQL that Debian has installed, else the
// directory of the initdb in the PATH.
func postgresBin() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is a constant: no error
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // not a number: last
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
	for _, name := range []string{"initdb", "postgres"} {
		path, err := lookProgram(name, dirs...)
		if err != nil {
			return "", err
		}
		dirs = []string{filepath.Dir(path)}
	}
	return dirs[0], nil
}

// setUp runs statements once on a new server.
func (d *SQLDaemon) setUp(statements ...string) error {
	admin, err := d.engine.admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, s := range statements {
		if _, err := admin.Exec(s); err != nil {
			return fmt.Errorf("set up %s: %w", d.name, err)
		}
	}
	return nil
}
