package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
	"baton/internal/operate/direct"
	"baton/internal/testsupport"
)

// jobCLI returns a cli with a node that leads, and with a job that counts views into a SQLite file.
func jobCLI(t *testing.T, schedule string) (*cli, redis.Conn, *testsupport.Database) {
	t.Helper()
	c, server, db := newCLI(t), useRedis(t), testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	c.file("baton.yaml", fmt.Sprintf(`
redis: {url: %q}
election: {ttl: 10s}
http: {listen: "off"}
databases: {main: {driver: sqlite, dsn: %q}}
jobs:
  - name: views
    schedule: %q
    flush:
      from: {type: counters, key: views}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: $value}
`, server.URL(), db.DSN, schedule))
	c.env["BATON_CONFIG"] = "baton.yaml"
	return c, server.Conn(), db
}

func (c *cli) matches(got result, code int, stdout, stderr string) {
	c.t.Helper()
	if got.code != code || !regexp.MustCompile(stdout).MatchString(got.stdout) || !regexp.MustCompile(stderr).MatchString(got.stderr) {
		c.t.Errorf("got  %d\n%s%s\nwant %d\n%s\n%s", got.code, got.stdout, got.stderr, code, stdout, stderr)
	}
}

func TestJobIsDrivenFromTheCommandLine(t *testing.T) {
	c, conn, db := jobCLI(t, "@yearly")
	c.matches(c.run("job", "next"), cmdline.ExitOK, `^views: `, `^$`) // there is no other job
	c.matches(c.run("job", "show"), cmdline.ExitOK, `^job +views\n`, `^$`)
	c.matches(c.run("job", "history"), cmdline.ExitOK, `^there is no record of job "views"`, `^$`)
	c.matches(c.run("job", "logs"), cmdline.ExitUsage, `^$`, `job "views" is a flush`)
	for _, order := range []string{"run", "cancel", "pause", "resume"} {
		c.matches(c.run("job", order), cmdline.ExitUsage, `^$`, `say which job.*: views\n`)
	}
	c.matches(c.run("job", "run", "views"), cmdline.ExitNoLeader, `^$`, `nobody holds lock "baton"`)
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	for i := range 3 {
		if _, err := conn.Do("HSET", "views", i, 7); err != nil {
			t.Fatal(err)
		}
	}
	c.matches(c.run("job", "list"), cmdline.ExitOK, `(?m)^JOB +SCHEDULE +STATE +NEXT +LAST +WAITING +BEHIND\nviews +@yearly +ready +in \d+d +never +3 +\d\S*$`, `^$`)
	c.matches(c.run("job", "run", "views", "--watch"), cmdline.ExitOK, `succeeded: 3 rows in \S+(, \d+ rows/s)?\n$`, `^$`)
	if rows := db.Rows(t, "SELECT id, views FROM articles"); len(rows) != 3 {
		t.Errorf("rows: %v", rows)
	}
	c.matches(c.run("job", "run", "views"), cmdline.ExitOK, `^run \S+ of job "views" has begun on db1; baton job show views shows its result\n$`, `^$`)
	c.until("ready", "job", "list")
	c.matches(c.run("job", "run", "clicks"), cmdline.ExitUsage, `^$`, `no such job: "clicks": the configuration has views`)

	c.matches(c.run("job", "pause", "views", "--reason", "new column"), cmdline.ExitOK, `^job "views" is paused by \S+: new column\n$`, `^$`)
	c.matches(c.run("job", "pause", "views"), cmdline.ExitOK, `^job "views" was paused already, by \S+: new column; the reason is now: by \S+\n$`, `^$`)
	c.matches(c.run("job", "run", "views"), cmdline.ExitFailure, `^$`, `job "views" is paused by \S+; baton job resume views ends the pause`)
	c.matches(c.run("job", "list"), cmdline.ExitOK, `(?m)^views +@yearly +paused +paused +succeeded \S+ ago +0 +0s$`, `^$`)
	c.matches(c.run("status"), cmdline.ExitOK, `(?m)^views is paused by \S+; baton job resume views ends the pause$`, unhurried)
	c.matches(c.run("job", "show", "views"), cmdline.ExitOK, `(?ms)^paused +by \S+, since .*^next +-$.*^STARTED .* manual +1 +3 `, `^$`)
	c.matches(c.run("job", "resume", "views"), cmdline.ExitOK, `^job "views" is resumed; it was paused by \S+, for \S+\n$`, `^$`)
	c.matches(c.run("job", "resume", "views"), cmdline.ExitOK, `^job "views" was not paused\n$`, `^$`)

	db.Exec(t, "DROP TABLE articles")
	if _, err := conn.Do("HSET", "views", 1, 7); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "run", "views", "-w"), cmdline.ExitFailure, `failed: 0 rows`, `run \S+ of job "views": failed: .*no such table`)
	var shown struct {
		Runs []diagnose.Run `json:"runs"`
	}
	if err := json.Unmarshal([]byte(c.run("job", "show", "views", "-o", "json").stdout), &shown); err != nil || len(shown.Runs) != 3 || shown.Runs[0].State != "failed" {
		t.Errorf("show: %+v, %v", shown, err)
	}
}

func TestJobThatRunsIsNotRunAgainAndCanBeWatched(t *testing.T) {
	c, conn, _ := jobCLI(t, "@always")
	c.daemon("--node-id", "db1")
	c.until("running for", "job", "list")
	c.matches(c.run("job", "run", "views"), cmdline.ExitFailure, `^$`, `job "views" is already running: its run \S+ started \S+ ago`)
	if _, err := conn.Do("HSET", "views", 1, 7); err != nil {
		t.Fatal(err)
	}
	c.until("1 rows", "job", "show", "views")
	c.matches(c.run("status"), cmdline.ExitOK, `(?m)^views +@always +running for `, unhurried)
}

func TestPreviewOfAJobSaysWhatIsWrong(t *testing.T) {
	c, conn, db := jobCLI(t, "@yearly")
	if _, err := conn.Do("HSET", "views", 7, 10); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "preview", "views"), cmdline.ExitOK,
		`(?s)^SOURCE +WAITING\nviews +1\n.*id \(key\) +INTEGER +\$field +integer +set +error +as it is\nviews +INTEGER +\$value +integer +add .*\nID +VIEWS\n7 +10\n$`, `^$`)
	if _, err := conn.Do("HSET", "views", "front page", 1); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "preview", "views", "--all"), cmdline.ExitFailure, `^$`, `(?s)counters`)
	c.matches(c.run("job", "preview", "views", "--rate", "5"), cmdline.ExitUsage, `^$`, `--rate can only be used with --all`)
	c.matches(c.run("job", "preview", "views"), cmdline.ExitFailure, `(?s)dead letter: \{"key":"front page".*\nWrong:\n- views would become a dead letter.*is not a whole number`, `^$`)
	db.Exec(t, "ALTER TABLE articles RENAME COLUMN views TO hits")
	var p direct.Preview
	got := c.run("job", "preview", "views", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &p); err != nil || got.code != cmdline.ExitFailure || len(p.Problems) != 2 {
		t.Errorf("two problems: %+v, %v", got, err)
	}
}
