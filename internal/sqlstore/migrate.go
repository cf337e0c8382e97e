package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

// fill replaces what stands in braces in our SQL files.
func (s *Store) fill() *strings.Replacer {
	return strings.NewReplacer(
		"{prefix}", s.prefix,
		"{lock_seconds}", wholeSeconds(s.limits.lock),
		"{statement_seconds}", strconv.FormatFloat(s.limits.statement.Seconds(), 'f', 3, 64),
		"{statement_millis}", strconv.FormatInt(s.limits.statement.Milliseconds(), 10),
		"{idle_seconds}", wholeSeconds(s.limits.idle),
	)
}

// wholeSeconds rounds up: to these settings 0 would mean at once, or never.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Migrate creates baton's own tables or brings them up to date. TakeOver calls
// it, so nobody has to. It does its work once per process, and several processes
// may do it at once.
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

func (s *Store) migrate(ctx context.Context) (err error) {
	m, err := s.database.migration()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.release()) }()
	for range 10 {
		err = s.migrateOnce(ctx, m)
		if err == nil || ctx.Err() != nil || m.locker != nil {
			return err
		}
		// Without a lock another process may have been faster. What it did
		// is there now: look again.
	}
	return err
}

func (s *Store) migrateOnce(ctx context.Context, m migration) error {
	dir, err := fs.Sub(migrationFiles, "migrations/"+s.driver)
	if err != nil {
		return err
	}
	options := []goose.ProviderOption{
		goose.WithTableName(s.prefix + "schema_version"),
		goose.WithDisableGlobalRegistry(true),
	}
	if m.locker != nil {
		options = append(options, goose.WithSessionLocker(m.locker))
	}
	provider, err := goose.NewProvider(m.dialect, m.db, filledFS{FS: dir, fill: s.fill()}, options...)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// serverLock keeps migrations of several nodes apart by a lock that the server
// ties to the connection: a node that dies leaves none behind.
type serverLock struct{ lock, unlock string }

func (l serverLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	return l.ask(ctx, conn, l.lock, "another node holds the lock on migrations")
}

func (l serverLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return l.ask(ctx, conn, l.unlock, "the lock on migrations was lost")
}

func (serverLock) ask(ctx context.Context, conn *sql.Conn, query, no string) error {
	var yes sql.NullBool
	if err := conn.QueryRowContext(ctx, query).Scan(&yes); err != nil {
		return fmt.Errorf("lock the migrations: %w", err)
	}
	if !yes.Bool {
		return &lockTimeout{no}
	}
	return nil
}

// lockTimeout is a lock that could not be had in time.
type lockTimeout struct{ text string }

func (e *lockTimeout) Error() string { return e.text }

// Timeout makes it a passing error.
func (e *lockTimeout) Timeout() bool { return true }

// Temporary belongs to net.Error.
func (e *lockTimeout) Temporary() bool { return true }
