package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
	"baton/internal/testsupport"
	"baton/internal/text"
)

// usersCLI returns a cli with a job of type hashes, and with n users in Redis that are in no index. Counters cannot be used, because they
// have no keys to compare.
func usersCLI(t *testing.T, n int) (*cli, redis.Conn, *testsupport.Database) {
	t.Helper()
	c, server, db := newCLI(t), useRedis(t), testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
	db.Exec(t, "CREATE TABLE ranking (id TEXT PRIMARY KEY, name REAL)")
	c.file("baton.yaml", fmt.Sprintf(`
redis: {url: %q}
election: {ttl: 10s, heartbeat_interval: 200ms, poll_interval: 200ms}
http: {listen: "off"}
databases: {main: {driver: sqlite, dsn: %q}}
jobs:
  - name: users
    schedule: "@every 1s"
    flush:
      from: {type: hashes, key: "user:<id>", changed: "changed:user"}
      to: {database: main, table: users, key: [id]}
  - name: again
    schedule: "@yearly"
    flush:
      from: {type: scan, key: "user:<id>"}
      to: {database: main, table: users, key: [id]}
  - name: views
    schedule: "@yearly"
    flush:
      from: {type: counters, key: views}
      to: {database: main, table: users, key: [id]}
      columns: {id: $field, name: {from: $value, op: add}}
  - name: totals
    schedule: "@yearly"
    flush:
      from: {type: counters, key: totals, mode: watermark}
      to: {database: main, table: users, key: [id]}
      columns: {id: $field, name: {from: $value, op: add}}
  - name: board
    schedule: "@every 1s"
    flush:
      from: {type: zset, key: board, changed: "changed:board"}
      to: {database: main, table: ranking, key: [id]}
      columns: {id: $member, name: $score}
  - {name: report, schedule: "@yearly", command: [/bin/true]}
`, server.URL(), db.DSN))
	c.env["BATON_CONFIG"] = "baton.yaml"
	conn := server.Conn()
	for id := range n {
		if err := conn.Send("HSET", fmt.Sprintf("user:%d", id), "name", fmt.Sprintf("name %d", id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Do("ZADD", "board", 1, "ann", 2, "bob"); err != nil {
		t.Fatal(err)
	}
	return c, conn, db
}

func TestAJobIsBackfilledVerifiedAndRepairedFromTheCommandLine(t *testing.T) {
	const n = 1500
	c, conn, db := usersCLI(t, n)
	c.matches(c.run("job", "verify", "users"), cmdline.ExitNoLeader, `^$`, `nobody holds lock "baton"`)
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	c.matches(c.run("job", "verify", "report"), cmdline.ExitUsage, `^$`, `job "report" cannot be verified: it runs a command`)
	c.matches(c.run("job", "backfill", "views"), cmdline.ExitUsage, `^$`, `job "views": a source of type counters cannot be verified or backfilled: flushed items are no longer in Redis`)
	for _, command := range []string{"backfill", "verify"} {
		c.matches(c.run("job", command, "totals"), cmdline.ExitUsage, `^$`, `which is not in Redis\n$`)
	}
	c.matches(c.run("job", "verify", "board"), cmdline.ExitFailure, `2 records and 0 rows compared in \S+: 2 missing`, `failed: 2 missing`)
	c.matches(c.run("job", "backfill", "board"), cmdline.ExitOK, `^succeeded: 2 keys marked in \S+; the next runs flush them\n$`, `^$`)
	c.matches(c.run("job", "verify", "board"), cmdline.ExitOK, `^2 records and 2 rows compared in \S+: no differences\n$`, `^$`)
	c.matches(c.run("job", "backfill", "again"), cmdline.ExitOK, `^every run of job "again" reads all keys, so there is nothing to mark: baton job run again `, `^$`)
	c.matches(c.run("job", "verify", "users", "--sample", "0"), cmdline.ExitUsage, `^$`, `must be a part of all keys such as 1%`)
	c.matches(c.run("job", "verify", "users"), cmdline.ExitFailure,
		fmt.Sprintf(`(?s)^%s records and 0 rows compared in \S+: %d missing\n(  missing    "user:\d+"\n){5}$`, text.Number(n), n), `verify \S+ of job "users": failed: 1500 missing`)
	c.matches(c.run("job", "backfill", "users"), cmdline.ExitOK, `^succeeded: 1,500 keys marked in \S+; the next runs flush them\n$`, `^$`)
	c.matches(c.run("job", "verify", "users"), cmdline.ExitOK, `^1,500 records and 1,500 rows compared in \S+: no differences\n$`, `^$`)
	c.matches(c.run("job", "verify", "users", "--sample", "10%"), cmdline.ExitOK, `^1?\d\d records and 1?\d\d rows compared in \S+ \(a sample of 10%\): no differences\n$`, `^$`)
	db.Exec(t, "DELETE FROM users WHERE id = 3")
	db.Exec(t, "UPDATE users SET name = 'x' WHERE id = 4")
	db.Exec(t, "INSERT INTO users VALUES (9000, 'nobody')")
	if _, err := conn.Do("HSET", "user:Ann", "name", "Ann"); err != nil {
		t.Fatal(err)
	}
	var found diagnose.Operation
	got := c.run("job", "verify", "users", "--repair", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil || got.code != cmdline.ExitFailure {
		t.Fatalf("%v: %+v", err, got)
	}
	v := found.Progress.Result
	if v.Missing != 1 || v.Different != 1 || v.Extra != 1 || v.Unfit != 1 || v.Marked != 3 || found.Error != "1 missing, 1 different, 1 extra, 1 unfit" || len(v.Examples) != 4 {
		t.Errorf("planted differences: %+v", found)
	}
	c.matches(got, cmdline.ExitFailure, `"name": "name",\n +"redis": "name 4",\n +"table": "x"`, `1 missing, 1 different, 1 extra, 1 unfit`)
	if _, err := conn.Do("DEL", "user:Ann"); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "verify", "users"), cmdline.ExitOK, `: no differences\n$`, `^$`) // the flush has repaired the rows
	c.matches(c.run("job", "history", "users"), cmdline.ExitOK, `(?m)^.* manual +1 +failed .*1 missing, 1 different, 1 extra, 1 unfit \(verify by `, `^$`)
	if left := db.Rows(t, "SELECT count(*) FROM users"); fmt.Sprint(left) != fmt.Sprintf("[[%d]]", n) {
		t.Errorf("the table has %v rows", left)
	}
}

func TestABackfillIsGoneOnWithAfterATakeoverAndCancelled(t *testing.T) {
	const n = 6000
	c, _, db := usersCLI(t, n)
	_, stop := c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	c.daemon("--node-id", "db2")
	c.matches(c.run("job", "backfill", "users", "--rate", "2000", "--detach"), cmdline.ExitOK, `^backfill \S+ of job "users" runs on the leader, db1\n$`, `^$`)
	c.matches(c.run("job", "verify", "users"), cmdline.ExitFailure, `^$`, `a verification or backfill of job "users" has not ended`)
	operation := func() (o diagnose.Operation) {
		t.Helper()
		var j diagnose.Job
		got := c.run("job", "show", "users", "-o", "json")
		if err := json.Unmarshal([]byte(got.stdout), &j); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		if j.Operation != nil {
			o = *j.Operation
		}
		return o
	}
	await := func(what string, so func(diagnose.Operation) bool) (o diagnose.Operation) {
		t.Helper()
		testsupport.Await(t, what, func() bool { o = operation(); return so(o) })
		return o
	}
	begun := await("the first third", func(o diagnose.Operation) bool { return o.Progress.Result.Marked >= n/3 })
	stop()
	over := await("the end", func(o diagnose.Operation) bool { return o.State == "succeeded" })
	if over.ID != begun.ID || over.NodeID != "db2" || over.Progress.Result.Marked < n || over.Progress.Result.Marked > n+n/2 {
		t.Errorf("begun %+v\nover %+v; want all %d keys marked, and few of them twice", begun, over, n)
	}
	testsupport.Await(t, "all rows", func() bool {
		return fmt.Sprint(db.Rows(t, "SELECT count(*) FROM users")) == fmt.Sprintf("[[%d]]", n)
	})
	c.matches(c.run("job", "verify", "users", "--rate", "10", "--detach"), cmdline.ExitOK, `runs on the leader, db2`, `^$`)
	id := await("another one", func(o diagnose.Operation) bool { return o.Kind == "verify" }).ID
	c.matches(c.run("job", "cancel", "users", "--run", id, "--reason", "too slow"), cmdline.ExitOK, `has the order to end`, `^$`)
	if o := operation(); o.State != "cancelled" || !strings.Contains(o.Error, "too slow") {
		t.Errorf("cancelled: %+v", o)
	}
	c.matches(c.run("job", "verify", "users", "--sample", "1%"), cmdline.ExitOK, `no differences`, `^$`) // the cancelled one has ended
}

func TestAJobIsVerifiedBySchedule(t *testing.T) {
	c, _, db := usersCLI(t, 20)
	text, err := os.ReadFile("baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.file("baton.yaml", strings.Replace(string(text), "to: {database: main, table: users, key: [id]}\n",
		"to: {database: main, table: users, key: [id]}\n      verify: {schedule: \"@every 1s\", sample: 100%, rate: 1000}\n", 1))
	c.daemon("--node-id", "db1")
	c.until("verify by schedule", "job", "history", "users")
	c.until("20 missing of 20 records", "job", "show", "users")
	c.matches(c.run("job", "history", "users"), cmdline.ExitOK, `(?m) schedule +1 +failed .* 20 missing \(verify by schedule\)$`, `^$`)
	for id := range 20 {
		db.Exec(t, fmt.Sprintf("INSERT INTO users VALUES (%d, 'name %d')", id, id))
	}
	c.until("no differences of 20 records", "job", "show", "users")
}
