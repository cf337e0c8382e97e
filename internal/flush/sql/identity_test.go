package sql_test

import (
	"testing"
	"time"
)

// If the identity of its table has changed, a capture reads all keys again.
func TestATableThatIsMadeAgainOrTruncatedHasAnotherIdentity(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		identity := func() string {
			table, err := s.Table(t.Context(), "articles")
			if err != nil || table.Identity == "" {
				t.Fatalf("%q, %v", table.Identity, err)
			}
			return table.Identity
		}
		first := identity()
		db.Exec(t, "INSERT INTO articles (id) VALUES (1)")
		db.Exec(t, "UPDATE articles SET id = 2")
		if now := identity(); now != first {
			t.Errorf("after an INSERT and an UPDATE it is %q, and was %q", now, first)
		}
		if db.Driver != "sqlite" { // a user with few rights can read less of the catalogue, but gets no error
			if table, err := db.poor().Table(t.Context(), "articles"); err != nil || table.Identity == "" {
				t.Errorf("a user with few rights: %q, %v", table.Identity, err)
			}
		}
		again := []string{"TRUNCATE articles", "DROP TABLE articles"}
		if db.Driver == "sqlite" { // SQLite has no TRUNCATE
			again = again[1:]
		}
		for _, statement := range again {
			before := identity()
			if db.Driver == "mysql" {
				time.Sleep(1100 * time.Millisecond) // the times in the catalogue are whole seconds
			}
			db.Exec(t, statement)
			if statement == "DROP TABLE articles" {
				db.articles()
			}
			if now := identity(); now == before {
				t.Errorf("after %s it is still %q", statement, now)
			}
		}
	})
}
