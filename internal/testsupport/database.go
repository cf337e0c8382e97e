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

// NULL is how Rows shows an SQL null.
const NULL = "NULL"

// SQLDaemon is a PostgreSQL or MariaDB for programs that are not tests.
type SQLDaemon struct {
	*Daemon
	engine engine
	made   atomic.Int64

	mu    sync.Mutex
	admin *sql.DB     // kept open for the tests that share this server; else nil
	free  []*Database // empty ones, for the next tests
}

// engine is what differs between the two servers.
type engine struct {
	driver string
	// dsn is what a program under test is given, for an address and a database.
	dsn func(addr, database string) string
	// admin opens a connection that may create and drop databases.
	admin func() (*sql.DB, error)
	// open opens a connection for the test's own statements.
	open   func(dsn string) (*sql.DB, error)
	create func(name string) string
	drop   func(ctx context.Context, c *sql.DB, name string) error
	// reset, if set, empties a database, and costs less than drop and create.
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

// reach opens a database that is there. The parameters are for the test's own connections.
func (d *SQLDaemon) reach(name, parameters string) (_ *Database, err error) {
	db := &Database{Driver: d.engine.driver, DSN: d.engine.dsn(d.Addr(), name), name: name, server: d}
	if db.db, err = d.engine.open(db.DSN + parameters); err != nil {
		return nil, err
	}
	return db, nil
}

// Close forgets the database: it is dropped, with whoever is still connected.
// A server that is down keeps it.
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

// administer does something that needs the rights to create and drop databases.
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

// SQLite is a file of this test with write-ahead logging.
func SQLite(t testing.TB) *Database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatalf("open a SQLite file for this test: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() })
	d := &Database{Driver: "sqlite", DSN: path, db: db, t: t}
	d.Exec(t, "PRAGMA user_version = 1") // makes the file, which remembers WAL
	return d
}

// Exec runs one statement, or several without arguments.
func (db *Database) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if db.Driver == "mysql" && HasDialect(DialectMySQL) { // whose collation without padding has another name
		query = strings.ReplaceAll(query, "utf8mb4_nopad_bin", "utf8mb4_0900_bin")
	}
	if _, err := db.db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %s: %v", db.Driver, query, err)
	}
}

// Rows runs a query and returns its rows as text. A null is NULL.
func (db *Database) Rows(t testing.TB, query string, args ...any) [][]string {
	t.Helper()
	got, err := db.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %s: %v", db.Driver, query, err)
	}
	return got
}

// Query is Rows with an error, for use outside the test's goroutine.
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

// Addr is the host:port of the server, or of the pooler before it.
func (db *Database) Addr() string {
	if db.pooler != nil {
		return db.pooler.Addr()
	}
	return db.server.Addr()
}

// DSNThrough is the DSN by way of a proxy to Addr.
func (db *Database) DSNThrough(p *Proxy) string { return db.server.engine.dsn(p.Addr(), db.name) }

// Proxy is a new proxy in front of Addr.
func (db *Database) Proxy() *Proxy {
	db.t.Helper()
	return NewProxy(db.t, db.Addr())
}

// Server is the test's own server. Only StartPostgres and StartMariaDB have one.
func (db *Database) Server() *Server {
	if db.own == nil {
		db.t.Helper()
		db.t.Fatal("this database is on a server that other tests share: use StartPostgres or StartMariaDB to kill one")
	}
	return db.own
}

// database makes a database of this test on d, which many tests share.
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

// borrow returns an empty database: a new one, or one that an earlier test had.
func (d *SQLDaemon) borrow(ctx context.Context) (*Database, error) {
	db, err := d.takeFree()
	if db == nil && err == nil {
		db, err = d.CreateDatabase(ctx)
	}
	return db, err
}

// takeFree returns nil if no database is free.
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

// giveBack empties a database for the next test, with whoever is still connected thrown out.
// It drops one that cannot be made as new.
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

// private makes a database on a server that this test alone has.
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
	t.Cleanup(func() { _ = db.db.Close() }) // the server goes with it: nothing to drop
	db.t, db.own = t, &server
	return db
}

// fillData makes the files of an empty server in data. Within a run of the suite the first
// server of a kind makes them, which takes seconds, and the others copy.
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
