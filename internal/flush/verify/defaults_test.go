package verify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/source"
	"baton/internal/flush/verify"
	"baton/internal/testsupport"
)

// now is a default that may differ for each row.
var now = map[string]string{"postgres": "clock_timestamp()", "mysql": "CURRENT_TIMESTAMP(6)", "sqlite": "(strftime('%f', 'now'))"}

// A row equals its present hash, and keeps nothing of an earlier one: a missing field is the column's default.
func TestAColumnWithADefaultFollowsRedis(t *testing.T) {
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		for name, o := range map[string]source.Options{
			"hashes":  {Type: "hashes", Key: "user:<id>", Changed: "changed"},
			"scan":    {Type: "scan", Key: "user:<id>", Value: "hash"},
			"capture": {Type: "capture", Key: "user:<id>", Value: "hash"},
		} {
			t.Run(name, func(t *testing.T) {
				db.Exec(t, "DROP TABLE IF EXISTS people")
				made := map[string]string{"postgres": "timestamptz", "mysql": "datetime(6)", "sqlite": "TEXT"}[db.Driver]
				db.Exec(t, "CREATE TABLE people (id int PRIMARY KEY, state varchar(9) NOT NULL DEFAULT 'd', n int DEFAULT 0, "+
					"kept varchar(9) DEFAULT 'k', made "+made+" DEFAULT "+now[db.Driver]+")")
				to := mapping.Spec{Table: "people", Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{
					"id": {}, "state": {}, "n": {}, "kept": {Missing: "keep"}, "made": {},
				}}
				l := newLab(t, db, o, to)
				changed := func(id int) {
					if o.Changed != "" {
						l.do("SADD", o.Changed, id)
					}
				}
				for id := 1; id <= 2; id++ {
					l.do("HSET", fmt.Sprint("user:", id), "state", "old", "n", 1, "kept", "x")
					changed(id)
				}
				l.run()
				before := db.Rows(t, "SELECT made FROM people ORDER BY id")
				l.do("MULTI")
				l.do("DEL", "user:1")
				l.do("HSET", "user:1", "n", 2)
				l.do("EXEC")
				l.do("HDEL", "user:2", "state", "kept")
				l.do("HSET", "user:2", "n", 2)
				l.do("HSET", "user:3", "n", 2)
				for id := 1; id <= 3; id++ {
					changed(id)
				}
				l.run()
				got := fmt.Sprint(db.Rows(t, "SELECT id, state, n, kept FROM people ORDER BY id"))
				if got != "[[1 d 2 x] [2 d 2 x] [3 d 2 k]]" {
					t.Errorf("three equal hashes are %s", got)
				}
				if after := db.Rows(t, "SELECT made FROM people WHERE id < 3 ORDER BY id"); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("a default that is not constant is set once: %v became %v", before, after)
				}
				r := l.verify(verify.Options{})
				l.wants("flushed", r, 3, 0, 0, 0, 0)
				if len(r.Notes) == 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "columns kept, made were compared only") {
					t.Errorf("verify says %q of what it does not compare", r.Notes)
				}
				db.Exec(t, "UPDATE people SET state = 'old' WHERE id = 2")
				idle := func(context.Context, time.Time) (bool, error) { return true, nil }
				l.wants("another program's value", l.verify(verify.Options{Flushed: idle}), 3, 0, 1, 0, 0)
			})
		}
	})
}
