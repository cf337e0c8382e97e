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

// fill returns a replacer for the names in braces in our SQL files.
func (s *Store) fill() *strings.Replacer {
	w := s.dialect.Fragments
	return strings.NewReplacer(
		"{prefix}", s.prefix,
		"{now}", w.Now,
		"{ago}", w.Ago,
		"{at}", fmt.Sprintf(w.At, "at"),
		"{keep_until}", fmt.Sprintf(w.At, "keep_until"),
		"{put_back_at}", fmt.Sprintf(w.At, "put_back_at"),
		"{share}", w.Share,
		"{update}", w.Update,
		"{lock_seconds}", wholeSeconds(s.limits.Lock), "{lock_ms}", Millis(s.limits.Lock),
		"{statement_seconds}", strconv.FormatFloat(s.limits.Statement.Seconds(), 'f', 3, 64),
		"{statement_millis}", strconv.FormatInt(s.limits.Statement.Milliseconds(), 10),
		"{idle_seconds}", wholeSeconds(s.limits.Idle),
	)
}

// wholeSeconds returns the duration in seconds, rounded up, because databases treat a time limit of 0 as "at once" or "never".
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Migrate creates baton's own tables or updates them. TakeOver calls it. Migrate does its work once per process. Several processes may run
// it concurrently.
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
	// goose would also create this table of versions, but in two steps and without a lock. A node that reads or dies between the two steps
	// would block all other nodes.
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
		// SQLite has no lock to hold during a whole migration, and on a cluster a lock of one server does not bind the others. If another
		// process was faster, its tables exist now, so the migration is tried again.
	}
	return err
}

// migrateAtOnce does the whole migration in one transaction, with a lock that belongs to the transaction. A lock that belongs to the
// session would not be enough, because a pooler may give the next transaction another session of the server.
func (s *Store) migrateAtOnce(ctx context.Context, conn *sql.Conn) error {
	err := s.apart(ctx, conn, func(tx *sql.Tx) error {
		done, err := s.current(ctx, tx)
		if err == nil && !done {
			err = errBehind // the query may also have failed, and then the transaction is unusable
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

// errBehind means that baton's tables are missing, or belong to an older version.
var errBehind = errors.New("baton's tables are not up to date")

// migrations runs the migrations that are missing in the database.
func (s *Store) migrations(ctx context.Context, tx *sql.Tx) error {
	var version int64
	if err := tx.QueryRowContext(ctx, s.queries["version"]).Scan(&version); err != nil {
		return err
	}
	files, err := fs.Glob(s.dialect.Files, "migrations/*.sql")
	if err != nil {
		return err
	}
	for _, file := range files { // Glob returns sorted names
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

// apart runs the function work in a separate transaction on the connection. It is not used for batches.
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

// versionOf returns the number at the beginning of a migration file's name.
func versionOf(file string) (int64, error) {
	number, _, _ := strings.Cut(path.Base(file), "_")
	return strconv.ParseInt(number, 10, 64)
}

// newestVersion returns the version of the tables that this program creates.
func (s *Store) newestVersion() (int64, error) { return s.versionNamed("*") }

// versionNamed returns the version of the newest migration with this name.
func (s *Store) versionNamed(name string) (int64, error) {
	files, err := fs.Glob(s.dialect.Files, "migrations/*_"+name+".sql")
	if err != nil {
		return 0, err
	}
	return versionOf(files[len(files)-1])
}

// current reports whether all migrations are done. The user needs no right to create tables for this.
func (s *Store) current(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (bool, error) {
	want, err := s.newestVersion()
	if err != nil {
		return false, err
	}
	var version int64
	// An error most likely means that the table does not exist. Any other error occurs again in the next statement.
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

// lockMigrations takes a lock that only one node can have. The server releases the lock when the connection ends, so a dead node leaves no
// lock behind.
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
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closing the connection also unlocks
	}
}
