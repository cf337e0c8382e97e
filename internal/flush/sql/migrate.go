package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"

	"baton/internal/flush"
)

// fill replaces the names in braces in our SQL files.
func (s *Store) fill() *strings.Replacer {
	w := s.dialect.Words
	return strings.NewReplacer(
		"{prefix}", s.prefix,
		"{now}", w.Now,
		"{ago}", w.Ago,
		"{at}", w.At,
		"{share}", w.Share,
		"{update}", w.Update,
		"{lock_seconds}", wholeSeconds(s.limits.Lock),
		"{statement_seconds}", strconv.FormatFloat(s.limits.Statement.Seconds(), 'f', 3, 64),
		"{statement_millis}", strconv.FormatInt(s.limits.Statement.Milliseconds(), 10),
		"{idle_seconds}", wholeSeconds(s.limits.Idle),
	)
}

// wholeSeconds rounds up: in these settings 0 would mean at once, or never.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Migrate creates baton's own tables or updates them. TakeOver calls it. It works once per process,
// and several processes may run it concurrently.
func (s *Store) Migrate(ctx context.Context) error {
	s.migrating.Lock()
	defer s.migrating.Unlock()
	if s.migrated {
		return nil
	}
	if err := s.failed(ctx, "create baton's tables", s.migrate(ctx)); err != nil {
		return err
	}
	s.migrated = true
	return nil
}

func (s *Store) forgetMigration() {
	s.migrating.Lock()
	defer s.migrating.Unlock()
	s.migrated = false
	s.newest.Clear()
}

func (s *Store) migrate(ctx context.Context) (err error) {
	db, release := s.database.Plain()
	defer func() { err = errors.Join(err, release()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if s.database.Settings() != "" {
		return s.migrateAtOnce(ctx, conn)
	}
	if current, err := s.current(ctx, conn); err != nil || current {
		return err
	}
	if lock, ok := s.queries["migrate_lock"]; ok {
		if err := s.lockMigrations(ctx, conn, lock); err != nil {
			return err
		}
		defer s.unlockMigrations(conn)
	}
	// goose creates this table too, but in two steps and before it takes a lock: a node that reads between the steps, or dies there,
	// blocks all other nodes.
	for _, name := range []string{"version_table", "version_zero"} {
		if _, err := conn.ExecContext(ctx, s.queries[name]); err != nil {
			return fmt.Errorf("create the table of versions: %w", err)
		}
	}
	for range 10 {
		err = s.goose(ctx, db)
		if err == nil || ctx.Err() != nil || s.queries["migrate_lock"] != "" && !s.database.Certified() {
			return err
		}
		// SQLite has no lock to hold over a whole migration, and on a cluster that of one server is none on the others. Another process
		// may have been faster; then its tables are there now.
	}
	return err
}

// migrateAtOnce does all of it in one transaction, with a lock that the transaction holds: a pooler
// may give the next transaction another server session, and not the one that has the lock.
func (s *Store) migrateAtOnce(ctx context.Context, conn *sql.Conn) error {
	err := s.apart(ctx, conn, func(tx *sql.Tx) error {
		done, err := s.current(ctx, tx)
		if err == nil && !done {
			err = errBehind // and the transaction may have failed
		}
		return err
	})
	if !errors.Is(err, errBehind) {
		return err
	}
	return s.apart(ctx, conn, func(tx *sql.Tx) error {
		for _, name := range []string{"migrate_lock", "version_table", "version_zero"} {
			if _, err := tx.ExecContext(ctx, s.queries[name]); err != nil {
				return fmt.Errorf("%s: %w", strings.ReplaceAll(name, "_", " "), err)
			}
		}
		return s.migrations(ctx, tx)
	})
}

// errBehind: baton's tables are missing, or those of an older version.
var errBehind = errors.New("baton's tables are not up to date")

// migrations runs those that the database has not had yet.
func (s *Store) migrations(ctx context.Context, tx *sql.Tx) error {
	var version int64
	if err := tx.QueryRowContext(ctx, s.queries["version"]).Scan(&version); err != nil {
		return err
	}
	files, err := fs.Glob(s.dialect.Files, "migrations/*.sql")
	if err != nil {
		return err
	}
	for _, file := range files { // Glob sorts
		number, err := versionOf(file)
		if err != nil {
			return err
		}
		if number <= version {
			continue
		}
		text, err := fs.ReadFile(s.dialect.Files, file)
		if err != nil {
			return err
		}
		for _, statement := range []string{s.fill().Replace(string(text)), fmt.Sprintf(s.queries["version_done"], number)} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("migration %s: %w", path.Base(file), err)
			}
		}
	}
	return nil
}

// apart runs work in a transaction of its own, outside of batches.
func (s *Store) apart(ctx context.Context, conn *sql.Conn, work func(*sql.Tx) error) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, s.database.Settings()); err == nil {
		err = work(tx)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// versionOf is the number that the name of a migration's file begins with.
func versionOf(file string) (int64, error) {
	number, _, _ := strings.Cut(path.Base(file), "_")
	return strconv.ParseInt(number, 10, 64)
}

// newestVersion is the version of the tables that this program makes.
func (s *Store) newestVersion() (int64, error) {
	files, err := fs.Glob(s.dialect.Files, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	return versionOf(files[len(files)-1])
}

// current reports whether all migrations are done. It needs no right to create tables.
func (s *Store) current(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (bool, error) {
	want, err := s.newestVersion()
	if err != nil {
		return false, err
	}
	var version int64
	// An error is most likely that there is no such table; any other one will come again.
	found := db.QueryRowContext(ctx, s.queries["version"]).Scan(&version)
	return found == nil && version >= want, nil
}

func (s *Store) goose(ctx context.Context, db *sql.DB) error {
	dir, err := fs.Sub(s.dialect.Files, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.Dialect(s.dialect.Goose), db, filledFS{FS: dir, fill: s.fill()},
		goose.WithTableName(s.prefix+"schema_version"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// lockMigrations keeps nodes apart by a lock that the server ties to the
// connection: a node that dies leaves none behind.
func (s *Store) lockMigrations(ctx context.Context, conn *sql.Conn, query string) error {
	var got sql.NullBool
	if err := conn.QueryRowContext(ctx, query).Scan(&got); err != nil {
		return fmt.Errorf("lock the migrations: %w", err)
	}
	if !got.Bool {
		return fmt.Errorf("another node is still migrating: %w", flush.ErrTransient)
	}
	return nil
}

func (s *Store) unlockMigrations(conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, s.queries["migrate_unlock"]); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // unlocks, too
	}
}
