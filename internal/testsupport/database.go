package testsupport

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "modernc.org/sqlite"             // driver "sqlite"

	"baton/internal/testsupport/ground"
)

// NULL is the text that Rows returns for an SQL null.
const NULL = "NULL"

// SQLDaemon is a PostgreSQL or MariaDB server for programs that are not tests.
type SQLDaemon struct {
	*Daemon
	engine engine
	made   atomic.Int64

	mu    sync.Mutex
	admin *sql.DB     // kept open for the tests that share this server; otherwise nil
	free  []*Database // empty databases for the next tests
}

// engine contains the differences between PostgreSQL and MariaDB.
type engine struct {
	driver string
	// dsn returns the DSN that a program under test gets, from an address and the name of a database.
	dsn func(addr, database string) string
	// admin opens a connection that may create and drop databases.
	admin func() (*sql.DB, error)
	// open opens a connection for the test's own statements.
	open   func(dsn string) (*sql.DB, error)
	create func(name string) string
	drop   func(ctx context.Context, c *sql.DB, name string) error
	// reset, if set, empties a database. It takes less time than drop and create.
	reset func(ctx context.Context, admin *sql.DB, db *Database) error
}

// Database is an empty database and the ways to reach it.
type Database struct {
	Driver string // "postgres", "mysql" or "sqlite"
	DSN    string // a URL, the form of go-sql-driver/mysql, or a file

	name   string
	db     *sql.DB
	server *SQLDaemon // nil for SQLite
	t      testing.TB // nil outside tests
	own    *Server    // nil if the server is shared with other tests
	pooler *Pooler    // nil if the DSN is the server's
}

// CreateDatabase makes an empty database on this server.
func (d *SQLDaemon) CreateDatabase(ctx context.Context) (*Database, error) {
	name := fmt.Sprintf("test_%d", d.made.Add(1))
	err := d.administer(func(admin *sql.DB) error {
		_, err := admin.ExecContext(ctx, d.engine.create(name))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create a database for this test: %w", err)
	}
	return d.reach(name, "")
}

// reach opens connections to an existing database of this server. The argument parameters is added to the DSN only for the test's own
// connections.
func (d *SQLDaemon) reach(name, parameters string) (_ *Database, err error) {
	db := &Database{Driver: d.engine.driver, DSN: d.engine.dsn(d.Addr(), name), name: name, server: d}
	if db.db, err = d.engine.open(db.DSN + parameters); err != nil {
		return nil, err
	}
	return db, nil
}

// Close ends the connections to the database and drops it. If the server is down, the database stays.
func (db *Database) Close(ctx context.Context) error {
	if err := db.db.Close(); err != nil || db.server == nil || db.server.proc.Exited() {
		return err
	}
	err := db.server.administer(func(admin *sql.DB) error { return db.server.engine.drop(ctx, admin, db.name) })
	if err != nil {
		return fmt.Errorf("drop the test's database: %w", err)
	}
	return nil
}

// administer calls the function do with a connection that has the right to create and drop databases.
func (d *SQLDaemon) administer(do func(admin *sql.DB) error) error {
	d.mu.Lock()
	admin := d.admin
	d.mu.Unlock()
	if admin != nil {
		return do(admin)
	}
	admin, err := d.engine.admin()
	if err != nil {
		return err
	}
	defer admin.Close()
	return do(admin)
}

// SQLite returns an SQLite database in a file of this test, with write-ahead logging.
func SQLite(t testing.TB) *Database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatalf("open a SQLite file for this test: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	d := &Database{Driver: "sqlite", DSN: path, db: db, t: t}
	d.Exec(t, "PRAGMA user_version = 1") // creates the file, which stores the WAL mode
	return d
}

// Exec runs one statement. Without arguments it may also run several statements.
func (db *Database) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if db.Driver == "mysql" && HasDialect(DialectMySQL) { // in MySQL the collation without padding has another name
		query = strings.ReplaceAll(query, "utf8mb4_nopad_bin", "utf8mb4_0900_bin")
	}
	if _, err := db.db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %s: %v", db.Driver, query, err)
	}
}

// Hold runs a statement in a transaction. The transaction keeps its locks until the function release rolls it back.
func (db *Database) Hold(t testing.TB, query string) (release func()) {
	t.Helper()
	tx, err := db.db.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.ExecContext(t.Context(), query)
	}
	if err != nil {
		t.Fatalf("%s: %s: %v", db.Driver, query, err)
	}
	return func() {
		t.Helper()
		if err := tx.Rollback(); err != nil {
			t.Fatalf("%s: roll back %s: %v", db.Driver, query, err)
		}
	}
}

// Rows runs a query and returns its rows as text. An SQL null becomes the constant NULL.
func (db *Database) Rows(t testing.TB, query string, args ...any) [][]string {
	t.Helper()
	got, err := db.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %s: %v", db.Driver, query, err)
	}
	return got
}

// Query is like Rows but returns an error, so that it can be called outside the test's goroutine.
func (db *Database) Query(ctx context.Context, query string, args ...any) ([][]string, error) {
	rows, err := db.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := make([]string, len(columns))
		for i, v := range values {
			row[i] = v.String
			if !v.Valid {
				row[i] = NULL
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// Addr returns the host:port of the server, or of the pooler in front of the server.
func (db *Database) Addr() string {
	if db.pooler != nil {
		return db.pooler.Addr()
	}
	return db.server.Addr()
}

// DSNThrough returns the DSN for a connection through the proxy p.
func (db *Database) DSNThrough(p *Proxy) string { return db.server.engine.dsn(p.Addr(), db.name) }

// Proxy returns a new proxy that forwards connections to the address db.Addr().
func (db *Database) Proxy() *Proxy {
	db.t.Helper()
	return NewProxy(db.t, db.Addr())
}

// Server returns the test's own server. Only the databases of StartPostgres and StartMariaDB have one.
func (db *Database) Server() *Server {
	if db.own == nil {
		db.t.Helper()
		db.t.Fatal("this database is on a server that other tests share: use StartPostgres or StartMariaDB to kill one")
	}
	return db.own
}

// database returns an empty database for this test on the server d, which many tests share.
func (d *SQLDaemon) database(t testing.TB) *Database {
	t.Helper()
	db, err := d.borrow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db.t = t
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.giveBack(ctx, db); err != nil {
			t.Error(err)
		}
	})
	return db
}

// borrow returns an empty database: a new one, or a database that an earlier test has given back.
func (d *SQLDaemon) borrow(ctx context.Context) (*Database, error) {
	db, err := d.takeFree()
	if db == nil && err == nil {
		db, err = d.CreateDatabase(ctx)
	}
	return db, err
}

// takeFree returns an empty database that an earlier test has given back, or nil if there is none.
func (d *SQLDaemon) takeFree() (*Database, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.admin == nil {
		admin, err := d.engine.admin()
		if err != nil {
			return nil, err
		}
		d.admin = admin
	}
	last := len(d.free) - 1
	if last < 0 {
		return nil, nil
	}
	db := d.free[last]
	d.free = d.free[:last]
	return db, nil
}

// giveBack ends all connections to a database and empties it for the next test. If the database cannot be emptied, giveBack drops it.
func (d *SQLDaemon) giveBack(ctx context.Context, db *Database) error {
	if d.engine.reset == nil || d.proc.Exited() {
		return db.Close(ctx)
	}
	err := d.administer(func(admin *sql.DB) error { return d.engine.reset(ctx, admin, db) })
	if err != nil {
		db.t.Logf("database %s is dropped, because it cannot be emptied: %v", db.name, err)
		return db.Close(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, &Database{Driver: d.engine.driver, DSN: d.engine.dsn(d.Addr(), db.name), name: db.name, db: db.db, server: d})
	return nil
}

// private starts a server for this test alone, and returns a database on it.
func private(t testing.TB, run func(dir string) (*SQLDaemon, error)) *Database {
	t.Helper()
	d, err := run("")
	if err != nil {
		t.Fatalf("start a database server for this test: %v", err)
	}
	server := newServer(t, d.Daemon)
	db, err := d.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.db.Close() }) // the server is stopped as well, so the database need not be dropped
	db.t, db.own = t, &server
	return db
}

// fillData makes the files of an empty server in the directory data. In a run of the whole suite, only the first server of a kind makes
// these files, which takes seconds. Later servers of that kind copy the files.
func fillData(kind, data string, cred *syscall.Credential, initialize func(dir string) error) error {
	model, shared, err := ground.Once(kind, func(dir string) error {
		if cred != nil {
			if err := os.Chown(dir, int(cred.Uid), int(cred.Gid)); err != nil {
				return err
			}
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
		return initialize(dir)
	})
	if !shared {
		return initialize(data)
	}
	if err != nil {
		return err
	}
	return run([]string{"/bin/cp", "-a", model + "/.", data}, "/", nil)
}
