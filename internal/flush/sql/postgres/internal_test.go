package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush/sql"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

func TestVerdictOfPostgresErrors(t *testing.T) {
	for code, want := range map[string]sql.Verdict{
		"22001": sql.Refused, "22P02": sql.Refused, "23505": sql.Refused, "23514": sql.Refused, "21000": sql.Refused,
		"P0001": sql.Refused, "54000": sql.Refused,
		"42601": sql.Refused, "P0002": sql.Refused, "45000": sql.Refused, "ZX001": sql.Refused, "99999": sql.Refused,
		"54001": sql.Refused, "XX000": sql.Lasting, "54023": sql.Lasting,
		"40P01": sql.Passing, "40001": sql.Passing, "55P03": sql.Passing, "57014": sql.Passing, "57P01": sql.Passing, "57P03": sql.Passing,
		"08006": sql.Passing, "25006": sql.Passing, "25P03": sql.Passing, "53300": sql.Passing, "53100": sql.Passing,
		"28P01": sql.Lasting, "3D000": sql.Lasting, "42703": sql.Lasting, "42501": sql.Lasting, "25P02": sql.Lasting, "2200H": sql.Lasting,
	} {
		if got := judge(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("SQLSTATE %s: %d, want %d", code, got, want)
		}
	}
	for routine, want := range map[string]sql.Verdict{"ExecWithCheckOptions": sql.Refused, "aclcheck_error": sql.Lasting} {
		if got := judge(&pgconn.PgError{Code: "42501", Routine: routine}); got != want {
			t.Errorf("42501 of %s: %d, want %d", routine, got, want)
		}
	}
	for err, want := range map[error]sql.Verdict{
		io.ErrUnexpectedEOF: sql.Passing, context.DeadlineExceeded: sql.Passing, errNotCommitted: sql.Passing,
		&sql.WrongKind{}: sql.Lasting,
	} {
		if got := judge(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// If COMMIT ends an aborted transaction, PostgreSQL reports success.
func TestCommitOfAnAbortedTransactionIsNoCommit(t *testing.T) {
	db, err := open(sql.Setup{
		DSN: testsupport.Postgres(t).DSN, MaxConns: 4,
		Limits:  sql.Limits{Lock: time.Minute, Statement: time.Minute, Idle: time.Minute, Trip: time.Minute},
		Queries: sql.Queries{"begin": "BEGIN", "commit": "COMMIT", "rollback": "ROLLBACK", "fail": "SELECT 1 / 0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close(true)
	if err := tx.Run(t.Context(), sql.Task{Query: "begin"}, sql.Task{Query: "fail"}); err == nil {
		t.Fatal("divided by zero")
	}
	if err := tx.Commit(t.Context()); !errors.Is(err, errNotCommitted) {
		t.Errorf("commit: %v", err)
	}
}
