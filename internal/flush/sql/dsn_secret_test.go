package sql_test

import (
	"strings"
	"testing"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
)

// If a password is not quoted as it should be, the parser of the DSN finds only a part of it, and would hide only that part.
func TestOfAPasswordThatIsWrittenWrongNothingIsTold(t *testing.T) {
	for _, c := range []struct{ driver, dsn string }{
		{"postgres", "host=h password=pla nted"},
		{"postgres", "host=h password='pla nted"},
		{"postgres", "host=h password=pla'nted x"},
		{"postgres", "postgres://u:pla/nted@h/db"},
		{"postgres", "postgres://u:pla%nted@h/db"},
		{"postgres", "postgres://app:x@planted@h/db"},
		{"postgres", "postgres://app:x@planted/y@h/db"},
		{"postgres", "postgres://app:x@planted?y=z@h/db"},
		{"postgres", "postgres://app:x@planted,y@h/db"},
		{"postgres", "postgres://app:x@h:1,planted@h/db"},
		{"postgres", "postgres://app:1/planted@h/db"},
		{"postgres", "postgres:///db?host=app:planted@h"},
		{"postgres", "host=app:planted@h dbname=db"},
		{"mysql", "u:pla/nted@h/db?x=%zz"},
		{"mysql", "u:x@tcp(planted@h:1)/db"},
		{"mysql", "u:planted@tcp(h:1)/db?strict=1"},
		{"mysql", "u:pla@nted@h(x/db"},
	} {
		_, err := open.Database(c.driver, sql.Options{Name: "main", DSN: c.dsn})
		if err == nil || strings.Contains(err.Error(), "pla") || strings.Contains(err.Error(), "nted") {
			t.Errorf("%s %q: %v", c.driver, c.dsn, err)
		}
	}
}

// An "@" or another special character in the name of a user or a database must not be mistaken for a part of the password.
func TestADSNMayHaveAnAtThatIsNoPartOfAPassword(t *testing.T) {
	for _, c := range []struct{ driver, dsn string }{
		{"postgres", "postgres://app:x%40y@h/db"},
		{"postgres", "postgres://app%40server:x@[fe80::1%25eth0]:5432,h-2.example,10.0.0.1:7/db%40x?sslmode=disable"},
		{"postgres", "postgres:///db?host=/cloudsql/project:region:db&user=app@project.iam"},
		{"postgres", "host=h user=app@server password=x@y dbname=db"},
		{"postgres", "postgres://app:x#y?z@h/db"},
		{"postgres", "host=h user=app password='x;y=z@' dbname=db"},
		{"postgres", "port=5432 password=x;y=z host=h user=app"},
		{"mysql", "jdbc:x@y@tcp(h:3306)/db"},
		{"mysql", "app:x@y/z@tcp(h:3306)/db"},
		{"mysql", "app:x@tcp([::1]:3306)/db"},
		{"mysql", "app:x@unix(/run/mysqld/mysqld.sock)/db"},
		{"mysql", "app:x@/db"},
	} {
		store, err := open.Database(c.driver, sql.Options{Name: "main", DSN: c.dsn})
		if err != nil {
			t.Errorf("%s %q: %v", c.driver, c.dsn, err)
			continue
		}
		_ = store.Close() // no connection was made
	}
}
