package sql_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

// If no connection was made, there is no transaction whose outcome could be unknown.
func TestAnErrorOfConnectingTellsOfNoTransaction(t *testing.T) {
	t.Parallel()
	for driver, dsn := range map[string]string{
		"postgres": "postgres://u:secret@127.0.0.1:1/db", "mysql": "u:secret@tcp(127.0.0.1:1)/db",
	} {
		s, err := open.Database(driver, sql.Options{Name: "main", DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		_, err = s.Letters(t.Context(), sql.LetterFilter{}, 1, 0)
		if !errors.Is(err, flush.ErrTransient) || strings.Contains(err.Error(), "transaction") ||
			!strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("%s: %v", driver, err)
		}
	}
}

// If the DSN does not set sslmode, pgx tries TLS first. The error must contain the server's answer, not the error of TLS.
func TestARefusedUserIsNoErrorOfTLS(t *testing.T) {
	t.Parallel()
	db := testsupport.Postgres(t)
	dsn := regexp.MustCompile(`sslmode=\w+`).ReplaceAllString(db.DSN, "sslmode=prefer")
	dsn = regexp.MustCompile(`//[^@]*@`).ReplaceAllString(dsn, "//no_such_user:wrong@")
	s, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = s.Letters(ctx, sql.LetterFilter{}, 1, 0)
	if err == nil || strings.Contains(strings.ToLower(err.Error()), "tls") || !strings.Contains(err.Error(), "no_such_user") {
		t.Errorf("a user that the server does not know: %v", err)
	}
}
