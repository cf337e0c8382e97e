package sql_test

import (
	"regexp"
	"testing"

	"baton/internal/flush/sql"
	"baton/internal/flush/sql/mysql"
)

// MySQL 9.6 has moved SHA1 and MD5 out of the server.
func TestNoStatementNeedsAFunctionThatMySQLHasMovedAway(t *testing.T) {
	queries, err := sql.QueriesOf(mysql.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range queries {
		if found := regexp.MustCompile(`(?i)\b(sha1?|md5)\(`).FindString(text); found != "" {
			t.Errorf("query %s has %q", name, found)
		}
	}
}
