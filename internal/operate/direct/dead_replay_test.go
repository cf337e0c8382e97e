package direct

import (
	"fmt"
	"testing"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/operate"
	"baton/internal/testsupport"
)

// TestALetterWhoseRowCannotBeMarkedIsKept checks that a dead letter of hashes is dropped only after its row was marked as changed.
// Otherwise the row would never be flushed.
func TestALetterWhoseRowCannotBeMarkedIsKept(t *testing.T) {
	db := testsupport.SQLite(t)
	store, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: db.DSN})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, "CREATE TABLE users (id INTEGER PRIMARY KEY, age INTEGER)")
	db.Exec(t, `INSERT INTO baton_dead_letter VALUES ('0123456789abcdef', 'users', 'batch', '{"key":"1","id":"1","age":"x"}', 'no number', '2024-01-01 00:00:00')`)
	c := config.Config{Redis: config.Redis{URL: "redis://127.0.0.1:1"}} // nobody answers there
	c.Databases = map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}
	c.Jobs = []config.Job{{Name: "users", Schedule: "@every 1h", Flush: config.Flush{
		From: config.From{Type: spec.Hashes, Key: "user:<id>", Changed: "changed:user"},
		To:   config.To{Database: "main", Table: "users", Key: []string{"id"}},
	}}}
	s, err := OpenLetters(c.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	letter := operate.LetterKey{ID: "0123456789abcdef", Job: "users", Database: "main"}
	out, err := s.Do(t.Context(), operate.Order{Kind: operate.KindReplay, Letters: []operate.LetterKey{letter}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Letters) != 1 || out.Letters[0].OK || out.Letters[0].Outcome != ReplayFailed {
		t.Errorf("without Redis: %+v; want it to fail", out.Letters)
	}
	if left := db.Rows(t, "SELECT id FROM baton_dead_letter"); fmt.Sprint(left) != "[[0123456789abcdef]]" {
		t.Errorf("the dead letters are %v; want the one", left)
	}
}
