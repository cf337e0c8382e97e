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

// Postgres returns an empty database on the PostgreSQL that all tests of this process share. The user "app" owns the database and is no
// superuser.
func Postgres(t testing.TB) *Database {
	t.Helper()
	return shared.postgres(t).database(t)
}

// StartPostgres returns an empty database on a PostgreSQL of this test alone.
func StartPostgres(t testing.TB) *Database {
	t.Helper()
	return private(t, RunPostgres)
}

// RunPostgres starts a PostgreSQL with its files below dir, or below the system's
// temporary directory if dir is empty. The caller stops it.
func RunPostgres(dir string) (*SQLDaemon, error) { return RunPostgresWith(dir) }

// RunPostgresWith is like RunPostgres, but with further settings of the server, such as "shared_buffers=256MB". The further settings
// override the settings that this package sets.
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
	// Only initdb does not sync its files; the server itself syncs its writes.
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
		open:   openPostgres,
		create: func(name string) string { return "CREATE DATABASE " + name + " OWNER app" },
		drop: func(ctx context.Context, c *sql.DB, name string) error {
			_, err := c.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
			return err
		},
		reset: resetPostgres,
	}
}

// openPostgres opens connections for the test's own statements. One connection stays open for the next test, because it takes long to open
// a connection. The next test may have other tables of the same names, so no statement stays prepared.
func openPostgres(dsn string) (*sql.DB, error) {
	db, err := sql.Open("pgx", dsn+"&default_query_exec_mode=describe_exec")
	if err == nil {
		db.SetMaxIdleConns(1)
	}
	return db, err
}

// resetPostgres removes everything of a test from its database: other sessions, settings and objects. It returns an error if an object has
// another owner than "app".
func resetPostgres(ctx context.Context, admin *sql.DB, db *Database) error {
	conn, err := db.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var own int
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&own); err != nil {
		return err
	}
	// pg_terminate_backend waits until the session has ended.
	others := "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE datname = $1 AND pid <> $2"
	if _, err := admin.ExecContext(ctx, others, db.name, own); err != nil {
		return err
	}
	forget := "ROLLBACK; RESET SESSION AUTHORIZATION; RESET ALL; CLOSE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DEALLOCATE ALL; DISCARD TEMP; DISCARD SEQUENCES"
	for _, query := range []string{forget, "DROP OWNED BY CURRENT_USER CASCADE"} {
		if _, err := conn.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	left := 0
	err = conn.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname NOT IN ('information_schema', 'public')) +
		(SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace) +
		(SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace) +
		(SELECT count(*) FROM pg_type WHERE typnamespace = 'public'::regnamespace) +
		(SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql') +
		(SELECT count(*) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase WHERE datname = current_database()) +
		(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend')`).Scan(&left)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d objects or connections of the test still exist", left)
	}
	return err
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

// postgresBin returns the directory of the newest PostgreSQL that Debian has installed, or the directory of the initdb in the PATH.
func postgresBin() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is a constant, so Glob returns no error
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir))) // a name that is no number comes last
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
