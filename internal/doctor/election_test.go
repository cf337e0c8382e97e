package doctor

import (
	"fmt"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/flush"
	"baton/internal/testsupport"
)

// The first run under a changed lock key fails. doctor reports this in advance, with the statement that moves the job to the new
// election.
func TestAFenceOfAnotherElectionIsFound(t *testing.T) {
	for name, db := range map[string]*testsupport.Database{"sqlite": testsupport.SQLite(t), "postgres": testsupport.Postgres(t)} {
		t.Run(name, func(t *testing.T) {
			db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
			c := configOf("redis://127.0.0.1:1")
			c.Databases = map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}
			c.Jobs = []config.Job{{Name: "views", Flush: config.Flush{
				From: config.From{Type: "counters", Key: "views"},
				To:   config.To{Database: "main", Table: "articles", Key: []string{"id"}},
			}}}
			told := func(lockKey string) (all []string) {
				c.Election.LockKey = lockKey
				for _, f := range examineDatabase(t.Context(), c, "main") {
					if strings.Contains(f.What, "its fence") {
						all = append(all, fmt.Sprint(f.Severity, ": ", f.What, ": ", f.Remedy))
					}
				}
				return all
			}
			if got := told("old"); len(got) != 0 {
				t.Errorf("before the first run: %q", got)
			}
			store, err := site.OpenDatabase(c, "main")
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := store.TakeOver(t.Context(), flush.Fence{Job: "views", Epoch: 1, Owner: "o", NodeID: "a"}); err != nil {
				t.Fatal(err)
			}
			if got := told("old"); len(got) != 0 {
				t.Errorf("its own: %q", got)
			}
			const move = "UPDATE baton_fence SET lock_key = 'new' WHERE lock_key = 'old'; " +
				"UPDATE baton_deleted SET lock_key = 'new' WHERE lock_key = 'old'"
			if got := told("new"); len(got) != 1 || !strings.HasPrefix(got[0], "error: its fence in database \"main\" belongs to lock \"old\"") ||
				!strings.HasSuffix(got[0], move) {
				t.Fatalf("after a change of the lock key: %q", got)
			}
			db.Exec(t, move)
			if got := told("new"); len(got) != 0 {
				t.Errorf("after it was handed over: %q", got)
			}
		})
	}
}
