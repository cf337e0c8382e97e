package sql_test

import (
	"strings"
	"testing"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
)

// A password that is not quoted as it must be is no password to the one who reads the DSN:
// what he hides of it is not all.
func TestOfAPasswordThatIsWrittenWrongNothingIsTold(t *testing.T) {
	for _, c := range []struct{ driver, dsn string }{
		{"postgres", "host=h password=pla nted"},
		{"postgres", "host=h password='pla nted"},
		{"postgres", "host=h password=pla'nted x"},
		{"postgres", "postgres://u:pla/nted@h/db"},
		{"postgres", "postgres://u:pla%nted@h/db"},
		{"mysql", "u:pla/nted@h/db?x=%zz"},
		{"mysql", "u:pla@nted@h(x/db"},
	} {
		_, err := open.Database(c.driver, sql.Options{Name: "main", DSN: c.dsn})
		if err == nil || strings.Contains(err.Error(), "pla") || strings.Contains(err.Error(), "nted") {
			t.Errorf("%s %q: %v", c.driver, c.dsn, err)
		}
	}
}
