package nodes

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"baton/internal/testsupport"
)

// lockTable keeps everybody else away from a table of PostgreSQL, until unlock.
func lockTable(t *testing.T, db *testsupport.Database, table string) (unlock func()) {
	t.Helper()
	return holds(t, db, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE")
}

// holdAdvisoryLock keeps everybody else away from an advisory lock of PostgreSQL, until unlock.
func holdAdvisoryLock(t *testing.T, db *testsupport.Database, number int) (unlock func()) {
	t.Helper()
	return holds(t, db, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", number))
}

// holds opens a transaction with a statement that locks something. unlock ends it.
func holds(t *testing.T, db *testsupport.Database, statement string) (unlock func()) {
	t.Helper()
	pool, err := sql.Open("pgx", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(statement); err != nil {
		t.Fatal(err)
	}
	unlock = func() {
		_ = tx.Rollback() // done twice is done
		_ = pool.Close()
	}
	t.Cleanup(unlock)
	return unlock
}

// waitsForTable says whether some statement waits for a lock.
func waitsForTable(t *testing.T, db *testsupport.Database) bool {
	t.Helper()
	return db.Rows(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")[0][0] != "0"
}
