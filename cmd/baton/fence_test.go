package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/operate/direct"
	"baton/internal/testsupport"
)

const forgedEpoch = 9007199254740989

// TestAForgedEpochIsRefusedToldAndReset checks that one write to Redis or to a fence cannot stop a cluster permanently.
func TestAForgedEpochIsRefusedToldAndReset(t *testing.T) {
	l := &deadLab{cli: newCLI(t), main: testsupport.SQLite(t)}
	r := useRedis(t)
	l.redis = r.Conn()
	l.main.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER)")
	l.file("baton.yaml", fmt.Sprintf(`
redis: {url: "%s"}
election: {ttl: 6s}
http: {listen: "off"}
databases: {main: {driver: sqlite, dsn: "%s"}}
jobs:
  - name: views
    schedule: "@every 1s"
    flush:
      from: {type: counters, key: views}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: $value}
`, r.URL(), l.main.DSN))
	l.env["BATON_CONFIG"] = "baton.yaml"
	written := func(want string) {
		t.Helper()
		l.rows(l.main, "SELECT id, views FROM articles", want)
	}
	state := func() (f direct.Fences) {
		t.Helper()
		if err := json.Unmarshal([]byte(l.does("fence", "list", "-o", "json")), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	l.send("HINCRBY", "views", "1", 5)
	log, stop := l.daemon()
	written("1|5")
	if got := l.does("fence", "reset"); got != "nothing to reset\n" {
		t.Errorf("where all is well: %q", got)
	}

	// A forged epoch in Redis is corrected by the leader. Then the epoch in the database is forged.
	l.send("HSET", "{baton}:term", "epoch", forgedEpoch)
	testsupport.Await(t, "the leader to put the epoch right", func() bool { return !state().Refused() }, log)
	l.main.Exec(t, fmt.Sprintf("UPDATE baton_fence SET epoch = %d WHERE job = 'views'", forgedEpoch))
	l.send("HINCRBY", "views", "1", 2)
	l.untilLog(log, "baton fence reset", 1)
	f := state()
	if len(f.Locks) != 1 || f.Locks[0].Refused || len(f.Fences) != 1 || !f.Fences[0].Refused || f.Fences[0].Epoch != forgedEpoch {
		t.Errorf("with a forged fence: %+v", f)
	}
	if got := l.does("fence", "list"); !strings.Contains(got, "REFUSED") {
		t.Errorf("fence list:\n%s", got)
	}
	l.fails(cmdline.ExitUsage, "add --yes", "fence", "reset")
	if got := l.run("fence", "reset", "--yes"); got.code != cmdline.ExitOK || !strings.Contains(got.stdout, "1 fence reset") {
		t.Fatalf("reset: %+v\n%s", got, log)
	}
	written("1|7")

	// The epoch in Redis is forged while no node leads.
	if code := stop(); code != cmdline.ExitOK {
		t.Errorf("the daemon ended with %d", code)
	}
	l.send("HSET", "{baton}:term", "epoch", forgedEpoch)
	l.send("HINCRBY", "views", "1", 3)
	log, _ = l.daemon()
	l.untilLog(log, "baton fence reset", 1)
	if got := l.run("explain"); !strings.Contains(got.stdout, "baton fence reset") {
		t.Errorf("explain: %+v", got)
	}
	if got := l.run("fence", "reset", "--yes"); got.code != cmdline.ExitOK {
		t.Fatalf("reset: %+v\n%s", got, log)
	}
	written("1|10")
	if f := state(); f.Refused() || f.Locks[0].Epoch > time.Now().Add(time.Hour).UnixMilli() {
		t.Errorf("afterwards: %+v", f)
	}
}
