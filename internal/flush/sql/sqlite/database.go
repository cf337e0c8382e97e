package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/stdsql"
)

// quote is the quotation mark for identifiers, as in standard SQL.
const quote sql.Quote = `"`

// database is one file. It has only one session, because only one connection can write to a file at a time. The database's catalogue is
// read on another connection.
type database struct {
	*stdsql.DB
	path string
	lock time.Duration // the longest wait for the lock of the file
}

func open(s sql.Setup) (sql.Database, error) {
	path, query, err := file(s.DSN)
	if err != nil {
		return nil, err
	}
	query["_pragma"] = append(query["_pragma"],
		"busy_timeout("+sql.Millis(s.Limits.Lock)+")", // set first, because the switch to WAL may have to wait
		"journal_mode(WAL)",
		"synchronous(FULL)", // in WAL mode NORMAL may lose the last commits with the power
		"foreign_keys(1)",
	)
	query.Set("_txlock", "immediate")
	connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode())
	if err != nil {
		return nil, errors.New("the parameters after ? in the DSN cannot be read: give only the path of a file")
	}
	db := database{stdsql.New(s, namingConnector{connector, path}, 1), path, s.Limits.Lock}
	db.Writer = &writer{}
	db.Duplicate = func(error) bool { return false } // ON CONFLICT DO NOTHING returns 0 rows instead of an error
	db.Refused = func(err error) bool { return judge(err) == sql.Refused }
	db.Intact = intact
	return db, nil
}

// session waits for the lock of the file itself, because ctx cannot end a wait of SQLite.
type session struct {
	sql.Session
	limit time.Duration
}

// Session implements sql.Database.
func (d database) Session(ctx context.Context) (sql.Session, error) {
	s, err := d.DB.Session(ctx)
	if err != nil {
		return nil, err
	}
	return session{s, d.lock}, nil
}

// delays are the pauses between SQLite's own attempts to take a lock. The last of them repeats. Shorter pauses would take the lock from
// programs that wait in SQLite.
var delays = []int{1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100} // in milliseconds

// Run implements sql.Session. The query "begin" does not wait for the lock, so Run repeats it.
func (s session) Run(ctx context.Context, tasks ...sql.Task) error {
	if len(tasks) == 0 || tasks[0].Query != "begin" {
		return s.Session.Run(ctx, tasks...)
	}
	err := s.Session.Run(ctx, tasks[0])
	for i, until := 0, time.Now().Add(s.limit); busy(err) && time.Now().Before(until); i++ {
		select {
		case <-time.After(time.Duration(delays[min(i, len(delays)-1)]) * time.Millisecond):
			err = s.Session.Run(ctx, tasks[0])
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	return s.Session.Run(ctx, tasks[1:]...)
}

// busy reports whether SQLite refused a statement because another connection holds a lock.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

// errRolledBack means that SQLite has undone the whole transaction because of one of its rows.
var errRolledBack = errors.New("a trigger or constraint of the table rolls back the whole transaction: replace RAISE(ROLLBACK, …) with " +
	"RAISE(ABORT, …) and remove ON CONFLICT ROLLBACK, so that SQLite refuses only the bad row")

// intact returns an error if the transaction has ended, because every further statement would then be committed alone, without ledger and
// fence. intact tries to begin a transaction. If a transaction is open, SQLite refuses that, and nothing changes.
func intact(ctx context.Context, s *stdsql.Session, cause error) error {
	_, err := s.Conn.ExecContext(ctx, "BEGIN")
	switch {
	case err == nil:
		return fmt.Errorf("%w (%w)", errRolledBack, cause)
	case strings.Contains(err.Error(), "within a transaction"):
		return nil
	}
	return err
}

// file parses a DSN, which is a path or a URI of SQLite that begins with "file:".
func file(dsn string) (path string, query url.Values, err error) {
	path, query = dsn, url.Values{}
	if rest, ok := strings.CutPrefix(dsn, "file:"); ok {
		var encoded string
		path, encoded, _ = strings.Cut(rest, "?")
		path = strings.TrimPrefix(path, "//")
		if path, err = url.PathUnescape(path); err == nil {
			query, err = url.ParseQuery(encoded)
		}
		if err != nil {
			return "", nil, errors.New("the file: URI cannot be read: give the file's path instead")
		}
	}
	// Paths are shown in messages, but a DSN for another driver may contain a password.
	if strings.Contains(path, "://") || strings.Contains(path, "@tcp(") || strings.Contains(path, "@unix(") {
		return "", nil, errors.New("the DSN is for a database server: give the path of a file, or correct the driver")
	}
	if path == "" || strings.Contains(path, ":memory:") || query.Get("mode") == "memory" {
		return "", nil, errors.New("a database in memory loses its data when baton stops: give the path of a file")
	}
	return path, query, nil
}

// judge returns the verdict about an error by SQLite's primary result code.
func judge(err error) sql.Verdict {
	var wrong *sql.WrongValue
	var broken *brokenKey
	var e *sqlite.Error
	switch {
	case errors.As(err, &wrong), errors.As(err, &broken):
		return sql.Refused
	case sql.Disconnected(err), errors.Is(err, driver.ErrBadConn):
		return sql.Passing
	case !errors.As(err, &e):
		return sql.Lasting
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
		return sql.Refused
	case sqlite3.SQLITE_ERROR:
		if ofAValue(e.Error()) {
			return sql.Refused
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_ABORT,
		sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return sql.Passing
	}
	return sql.Lasting
}

// ofAValue reports whether an error is about a value. A function in a generated column, a constraint or a trigger can cause such an error.
// ofAValue compares texts, because SQLite has no code for such errors. The expression of sumOf causes the error about an overflow.
func ofAValue(text string) bool {
	return slices.ContainsFunc([]string{"integer overflow", "malformed JSON", "JSON cannot hold BLOB values", "ESCAPE expression must be",
		"LIKE or GLOB pattern too complex"},
		func(part string) bool { return strings.Contains(text, part) })
}

// namingConnector adds the file's name to SQLite's error about a file that cannot be opened.
type namingConnector struct {
	driver.Connector
	path string
}

func (c namingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err == nil {
		return conn, nil
	}
	if _, missing := os.Stat(filepath.Dir(c.path)); missing != nil {
		return nil, fmt.Errorf("file %s: its directory cannot be used: %w: %w", c.path, missing, err)
	}
	return nil, fmt.Errorf("file %s: %w", c.path, err)
}
