package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/diagnose"
	"baton/internal/operate/direct"
	"baton/internal/testsupport"
)

// jobCLI has a node that leads, and a job that counts views into a SQLite file.
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
	c.matches(c.run("job", "next"), exitOK, `^views: `, `^$`) // there is no other
	c.matches(c.run("job", "show"), exitOK, `^job +views\n`, `^$`)
	c.matches(c.run("job", "history"), exitOK, `^nothing is known of job "views"`, `^$`)
	c.matches(c.run("job", "logs"), exitUsage, `^$`, `job "views" is a flush`)
	for _, order := range []string{"run", "cancel", "pause", "resume"} {
		c.matches(c.run("job", order), exitUsage, `^$`, `say which job.*: views\n`)
	}
	c.matches(c.run("job", "run", "views"), exitNoLeader, `^$`, `nobody holds lock "baton"`)
	c.daemon("--node-id", "db1")
	c.until("db1\n", "leader")
	for i := range 3 {
		if _, err := conn.Do("HSET", "views", i, 7); err != nil {
			t.Fatal(err)
		}
	}
	c.matches(c.run("job", "list"), exitOK, `(?m)^JOB +SCHEDULE +STATE +LAST +NEXT +WAITING +BEHIND\nviews +@yearly +ready +never +in \d+d +3 +\d\S*$`, `^$`)
	c.matches(c.run("job", "run", "views", "--watch"), exitOK, `succeeded: 3 rows in \S+(, \d+ rows/s)?\n$`, `^$`)
	if rows := db.Rows(t, "SELECT id, views FROM articles"); len(rows) != 3 {
		t.Errorf("rows: %v", rows)
	}
	c.matches(c.run("job", "run", "views"), exitOK, `^run \S+ of job "views" has begun on db1; baton job show views tells how it ends\n$`, `^$`)
	c.until("ready", "job", "list")
	c.matches(c.run("job", "run", "clicks"), exitUsage, `^$`, `no such job: "clicks": the configuration has views`)

	c.matches(c.run("job", "pause", "views", "--reason", "new column"), exitOK, `^job "views" is paused by \S+: new column\n$`, `^$`)
	c.matches(c.run("job", "pause", "views"), exitOK, `^job "views" was paused already, by \S+: new column; the reason is now: by \S+\n$`, `^$`)
	c.matches(c.run("job", "run", "views"), exitFailure, `^$`, `job "views" is paused by \S+; baton job resume views ends that`)
	c.matches(c.run("job", "list"), exitOK, `(?m)^views +@yearly +paused +succeeded \S+ ago +paused +0 +0s$`, `^$`)
	c.matches(c.run("status"), exitOK, `(?m)^views is paused by \S+; baton job resume views ends that$`, `^$`)
	c.matches(c.run("job", "show", "views"), exitOK, `(?ms)^paused +by \S+, since .*^next +-$.*^STARTED .* manual +1 +3 `, `^$`)
	c.matches(c.run("job", "resume", "views"), exitOK, `^job "views" is resumed; it was paused by \S+, for \S+\n$`, `^$`)
	c.matches(c.run("job", "resume", "views"), exitOK, `^job "views" was not paused\n$`, `^$`)

	db.Exec(t, "DROP TABLE articles")
	if _, err := conn.Do("HSET", "views", 1, 7); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "run", "views", "-w"), exitFailure, `failed: 0 rows`, `run \S+ of job "views": failed: .*no such table`)
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
	c.matches(c.run("job", "run", "views"), exitFailure, `^$`, `job "views" is running already: run \S+, for \S+ now`)
	if _, err := conn.Do("HSET", "views", 1, 7); err != nil {
		t.Fatal(err)
	}
	c.until("1 rows", "job", "show", "views")
	c.matches(c.run("status"), exitOK, `(?m)^views +@always +running for `, `^$`)
}

func TestPreviewOfAJobSaysWhatIsWrong(t *testing.T) {
	c, conn, db := jobCLI(t, "@yearly")
	if _, err := conn.Do("HSET", "views", 7, 10); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "preview", "views"), exitOK,
		`(?s)^SOURCE +WAITING\nviews +1\n.*id \(key\) +INTEGER +\$field +integer +set +error +as it is\nviews +INTEGER +\$value +integer +add .*\nID +VIEWS\n7 +10\n$`, `^$`)
	if _, err := conn.Do("HSET", "views", "front page", 1); err != nil {
		t.Fatal(err)
	}
	c.matches(c.run("job", "preview", "views"), exitFailure, `(?s)dead letter: \{"key":"front page".*\nWrong:\n- views would become a dead letter.*is not a whole number`, `^$`)
	db.Exec(t, "ALTER TABLE articles RENAME COLUMN views TO hits")
	var p direct.Preview
	got := c.run("job", "preview", "views", "-o", "json")
	if err := json.Unmarshal([]byte(got.stdout), &p); err != nil || got.code != exitFailure || len(p.Problems) != 2 {
		t.Errorf("two problems: %+v, %v", got, err)
	}
}

func TestProgressOfARun(t *testing.T) {
	began := time.Now()
	var out strings.Builder
	bar := progress{w: &out}
	for i, rows := range []int64{0, 100, 200, 300} {
		bar.show(diagnose.Run{Rows: rows, Backlog: new(int64(1000))}, began.Add(time.Duration(i)*time.Second/2))
	}
	bar.end()
	want := "[..............................]   0 %  0 rows of 1000 changes\n" +
		"[######........................]  20 %  200 rows of 1000 changes, 200 rows/s, 4s left\n"
	if out.String() != want {
		t.Errorf("a line a second:\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	bar = progress{w: &out, inPlace: true}
	bar.show(diagnose.Run{Rows: 5000, Dead: 3, Backlog: new(int64(1000))}, began)
	bar.show(diagnose.Run{Rows: 6000}, began.Add(time.Second))
	bar.end()
	if want := "\r\x1b[K[##############################] 100 %  5000 rows of 1000 changes, 3 dead letters\r\x1b[K6000 rows, 997 rows/s\r\x1b[K"; out.String() != want {
		t.Errorf("in place:\n%q\nwant\n%q", out.String(), want)
	}
}
