package daemon

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
)

// A flush that runs all the time and waits for work with a blocking read writes single changes at once. The test prints the figures. It
// fails if the flush waits for a clock, because then even the quickest change would take a whole tick.
func TestTrickleIsWrittenAtOnceWhereTheSourceCanWait(t *testing.T) {
	t.Parallel()
	const writes = 40
	for _, kind := range []string{spec.List, spec.Stream} {
		t.Run(kind, func(t *testing.T) {
			server := testsupport.StartRedis(t)
			db := testsupport.Postgres(t)
			db.Exec(t, "CREATE TABLE notes (id bigint PRIMARY KEY, at timestamptz NOT NULL, seen timestamptz NOT NULL DEFAULT clock_timestamp())")
			c := configFor(server.URL())
			c.Databases = map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}
			c.Jobs = []config.Job{{Name: "notes", Schedule: "@always", Flush: config.Flush{
				From:    config.From{Type: kind, Key: "notes"},
				To:      config.To{Database: "main", Table: "notes", Key: []string{"id"}},
				Columns: map[string]config.Column{"id": {From: "id"}, "at": {From: "at"}},
			}}}
			r := start(t, c.WithDefaults(), nil)
			r.leads()
			conn := server.Conn()
			look := math.Inf(1) // the quickest read of the table, in milliseconds: the machine cannot be faster now
			for i := range writes {
				at := time.Now().UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
				args := []any{"notes", fmt.Sprintf(`{"id": %d, "at": %q}`, i, at)}
				command := "RPUSH"
				if kind == spec.Stream {
					command, args = "XADD", []any{"notes", "*", "id", i, "at", at}
				}
				if _, err := conn.Do(command, args...); err != nil {
					t.Fatal(err)
				}
				await(t, "the row", func() bool { return db.Rows(t, "SELECT count(*) FROM notes")[0][0] == fmt.Sprint(i+1) })
				began := time.Now()
				db.Rows(t, "SELECT count(*) FROM notes")
				look = min(look, time.Since(began).Seconds()*1000)
				time.Sleep(20 * time.Millisecond) // so that the next change comes while the job waits
			}
			var took []float64
			for _, row := range db.Rows(t, "SELECT extract(epoch FROM seen - at) * 1000 FROM notes WHERE id >= 10") {
				var ms float64
				if _, err := fmt.Sscan(row[0], &ms); err != nil {
					t.Fatal(err)
				}
				took = append(took, ms)
			}
			slices.Sort(took)
			quickest, p50 := took[0], took[len(took)/2]
			t.Logf("%s: from the write in Redis to the row (not yet its commit): %.1f ms at least, p50 %.1f ms", kind, quickest, p50)
			if limit := 50 + 30*look; quickest > limit {
				t.Errorf("it takes %.1f ms at least, and the machine does as much in less than %.1f: something waits for a clock", quickest, limit)
			}
			r.endsWell()
		})
	}
}
