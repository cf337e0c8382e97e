package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// databases are the three kinds that a flush writes to.
var databases = []struct {
	driver string
	start  func(testing.TB) *testsupport.Database
}{{"postgres", testsupport.Postgres}, {"mysql", testsupport.MariaDB}, {"sqlite", testsupport.SQLite}}

// badJobs are jobs of one configuration that each have something wrong in the
// database or in Redis, and what their last run says. NAME.DSN goes nowhere.
var badJobs = []struct{ name, table, columns, database, want string }{
	{"table", "artcles", "{id: $field, views: $value}", "main", `no such table: "artcles": did you mean articles?`},
	{"nothing-like-it", "xyz", "{id: $field, views: $value}", "main", "no such table: \"xyz\": create it, or correct the job's `table`"},
	{"column", "articles", "{id: $field, vews: $value}", "main", "table \"articles\": column \"vews\" does not exist: correct `columns`, or add it to the table (it has id, views)"},
	{"key", "loose", "{id: $field, views: $value}", "main", `table "loose": no unique index has exactly the columns of ` + "`key` (id)"},
	{"source", "articles", "{id: $field, views: $value}", "main", `"pending:source" is a set, but job "source" needs a hash: correct the key`},
	{"database", "articles", "{id: $field, views: $value}", "gone", `database "gone"`},
}

func badJobsYAML() string {
	var b strings.Builder
	for _, j := range badJobs {
		fmt.Fprintf(&b, "- name: %s\n  schedule: \"@every 1s\"\n  flush:\n    from: {type: counters, key: \"pending:%s\"}\n"+
			"    to: {database: %s, table: %s, key: [id]}\n    columns: %s\n", j.name, j.name, j.database, j.table, j.columns)
	}
	return b.String()
}

// A job that cannot run says why in its history and in the log, harms no other
// job, loses nothing, and runs once it is mended.
func TestBadTablesFailTheirJobsAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range databases {
		t.Run(kind.driver, func(t *testing.T) {
			t.Parallel()
			db, server := kind.start(t), testsupport.StartRedis(t)
			db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
			db.Exec(t, "CREATE TABLE loose (id INTEGER, views BIGINT NOT NULL DEFAULT 0)")
			for _, j := range badJobs {
				if j.name != "source" {
					command(t, server, "HINCRBY", "pending:"+j.name, "7", 1)
				}
			}
			command(t, server, "SADD", "pending:source", "7")
			command(t, server, "HINCRBY", "views", "1", 5)
			nowhere := map[string]string{"postgres": "postgres://u:" + wrongSecret + "@127.0.0.1:1/x", "mysql": "u:" + wrongSecret + "@tcp(127.0.0.1:1)/x", "sqlite": "/nonexistent/x.db"}
			nodes := cluster.Start(t, cluster.Options{
				Nodes: 1, RedisURL: server.URL(), JobsYAML: badJobsYAML() + countersJob[1:],
				DatabasesYAML: cluster.DatabaseYAML("main", db) + fmt.Sprintf("gone: {driver: %s, dsn: %q}\n", kind.driver, nowhere[kind.driver]),
			})
			n := nodes.AwaitLeader(soon)
			runs := firstRuns(t, nodes, n, len(badJobs)+1)
			for _, j := range badJobs {
				run := runs[j.name]
				if run.State != "failed" || !strings.Contains(run.Error, j.want) {
					t.Errorf("job %s: %s: %q; want it to fail and say %q", j.name, run.State, run.Error, j.want)
				}
				if strings.Contains(run.Error, wrongSecret) {
					t.Errorf("job %s tells a password: %s", j.name, run.Error)
				}
				nodes.Await(soon, "the log to say why job "+j.name+" failed", func() bool {
					return slices.ContainsFunc(n.Lines("the run failed"), func(l cluster.Line) bool {
						return l.Text("job") == j.name && strings.Contains(l.Text("error"), j.want)
					})
				})
			}
			// By now it may have run again, with nothing to do.
			if good, rows := runs["views"], db.Rows(t, "SELECT id, views FROM articles"); good.State != "succeeded" || len(rows) != 1 || !slices.Equal(rows[0], []string{"1", "5"}) {
				t.Errorf("the good job beside them: %+v; it has written %v", good, rows)
			}

			db.Exec(t, "CREATE TABLE artcles (id INTEGER PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
			nodes.Await(soon, "the job to run once its table is there", func() bool {
				rows := db.Rows(t, "SELECT id, views FROM artcles")
				return len(rows) == 1 && slices.Equal(rows[0], []string{"7", "1"})
			})
			if strings.Contains(n.Log(), wrongSecret) {
				t.Error("a password is in the log")
			}
		})
	}
}

// firstRuns waits until every job has run and returns the first run of each that is seen:
// the next one finds nothing left to do.
func firstRuns(t *testing.T, nodes *cluster.Cluster, n *cluster.Node, jobs int) map[string]cluster.Run {
	t.Helper()
	runs := map[string]cluster.Run{}
	nodes.Await(soon, "every job to have run", func() bool {
		s, ok := n.Status()
		if !ok || len(s.Jobs) != jobs {
			return false
		}
		for _, j := range s.Jobs {
			if _, seen := runs[j.Name]; !seen && j.LastRun != nil {
				runs[j.Name] = *j.LastRun
			}
		}
		return len(runs) == jobs
	})
	return runs
}

const usersJob = `
- name: users
  schedule: "@every 1s"
  flush:
    from: {type: hashes, key: "user:<id>", changed: "changed:user"}
    to: {database: main, table: users, key: [id]}
`

// A value that does not fit its column is put aside with the reason; the rest of
// the batch goes through; nothing is silently changed. What fits is for the
// database to say: SQLite has no lengths and no ranges.
func TestValueThatDoesNotFitIsADeadLetter(t *testing.T) {
	t.Parallel()
	hashes := []struct{ id, name, age, why string }{
		{"1", "Ada", "36", ""},
		{"2", "Bob", "old", `column "age" (integer): "old" is not a whole number`},
		{"3", "far too long a name", "1", `column "name" (text): "far too long a name" is longer than 10 characters`},
		{"4", "Eve", "99999999999", `column "age" (integer): "99999999999" is outside of -2147483648 to 2147483647`},
		{"x", "Xi", "1", `column "id" (integer): "x" is not a whole number`},
		{"6", "", "60", `column "name" (text): the source has no such field, and the column must not be NULL`},
		{"7", "Gil", "70", ""},
	}
	for _, kind := range databases {
		t.Run(kind.driver, func(t *testing.T) {
			t.Parallel()
			db, server := kind.start(t), testsupport.StartRedis(t)
			db.Exec(t, "CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(10) NOT NULL, age INTEGER)")
			db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
			var wantRows, wantDead []string
			for _, h := range hashes {
				command(t, server, "HSET", "user:"+h.id, "age", h.age)
				if h.name != "" {
					command(t, server, "HSET", "user:"+h.id, "name", h.name)
				}
				command(t, server, "SADD", "changed:user", h.id)
				if h.why == "" || kind.driver == "sqlite" && (h.id == "3" || h.id == "4") {
					wantRows = append(wantRows, h.id+" "+h.name+" "+h.age)
				} else {
					wantDead = append(wantDead, h.why)
				}
			}
			command(t, server, "HSET", "views", "1", "5", "x", "6", "2", "7")
			wantDead = append(wantDead, `column "id" (integer) from $field: "x" is not a whole number`)

			nodes := cluster.Start(t, cluster.Options{
				Nodes: 1, RedisURL: server.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db),
				// Time enough between two runs to see the first.
				JobsYAML: strings.ReplaceAll(usersJob+countersJob[1:], "@every 1s", fmt.Sprintf("@every %ds", int(3*ttl/time.Second)/2)),
			})
			n := nodes.AwaitLeader(soon)
			runs := firstRuns(t, nodes, n, 2)
			if r := runs["users"]; r.State != "succeeded" || r.Rows != int64(len(wantRows)) || r.Dead != int64(len(wantDead)-1) {
				t.Errorf("users: %+v; want %d rows and %d dead letters", r, len(wantRows), len(wantDead)-1)
			}
			if r := runs["views"]; r.State != "succeeded" || r.Rows != 2 || r.Dead != 1 {
				t.Errorf("views: %+v", r)
			}
			if told := n.Lines("records were put aside as dead letters"); len(told) != 2 || told[0].Level != "warn" {
				t.Errorf("the log tells of dead letters in %d lines; want a warning a job", len(told))
			}
			if got := joined(db.Rows(t, "SELECT id, name, age FROM users ORDER BY id")); !slices.Equal(got, wantRows) {
				t.Errorf("rows %q, want %q", got, wantRows)
			}
			if got := joined(db.Rows(t, "SELECT id, views FROM articles ORDER BY id")); !slices.Equal(got, []string{"1 5", "2 7"}) {
				t.Errorf("articles %q", got)
			}
			dead := db.Rows(t, "SELECT error, record FROM baton_dead_letter")
			if len(dead) != len(wantDead) {
				t.Errorf("dead letters %q, want %d", dead, len(wantDead))
			}
			for _, why := range wantDead {
				if !slices.ContainsFunc(dead, func(row []string) bool { return strings.HasPrefix(row[0], why) && strings.HasPrefix(row[1], "{") }) {
					t.Errorf("no dead letter says %q: %q", why, dead)
				}
			}
		})
	}
}

func joined(rows [][]string) []string {
	var lines []string
	for _, r := range rows {
		lines = append(lines, strings.Join(r, " "))
	}
	return lines
}
