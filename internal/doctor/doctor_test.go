package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
)

// doctorFor returns a configuration with two jobs that write to the database main.
func doctorFor(redis string, db config.Database) config.Config {
	c := configOf(redis)
	c.Databases = map[string]config.Database{"main": db}
	c.Jobs = []config.Job{
		{Name: "users", Schedule: "@every 1h", Flush: config.Flush{
			From: config.From{Type: spec.Hashes, Key: "user:<id>", Changed: "changed:user"},
			To:   config.To{Database: "main", Table: "users", Key: []string{"id"}},
		}},
		{Name: "page-views", Schedule: "@every 1h", Flush: config.Flush{
			From:    config.From{Type: spec.Counters, Key: "views:[0-3]"},
			To:      config.To{Database: "main", Table: "articles", Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
		}},
	}
	return c.WithDefaults()
}

func dialect(db *testsupport.Database) config.Database {
	return config.Database{Driver: db.Driver, DSNInline: db.DSN}
}

func found(all []Finding, severity Severity, subject, what string) bool {
	return slices.ContainsFunc(all, func(f Finding) bool {
		return f.Severity == severity && f.Subject == subject && strings.Contains(f.What, what)
	})
}

func wantFound(t *testing.T, all []Finding, severity Severity, subject, what string) {
	t.Helper()
	if !found(all, severity, subject, what) {
		var b strings.Builder
		for _, f := range all {
			fmt.Fprintf(&b, "%+v\n", f)
		}
		t.Errorf("no %s of %s with %q in:\n%s", severity, subject, what, b.String())
	}
}

func TestTheDoctorFindsAHealthyInstallationHealthy(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t, testsupport.RedisAOF())
	db := testsupport.Postgres(t)
	db.Exec(t, "CREATE TABLE users (id bigint PRIMARY KEY, name text); CREATE TABLE articles (id bigint PRIMARY KEY, views bigint)")
	var mu sync.Mutex
	var seen []string
	all := Examine(t.Context(), doctorFor(redis.URL(), dialect(db)), Options{Seen: func(subject string, over bool) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(subject, " ", over))
	}})
	var subjects []string
	for _, f := range all {
		if f.Subject == subjectHost {
			continue // the severity depends on this host
		}
		if f.Severity.Rank() <= SeverityWarning.Rank() {
			t.Errorf("%+v", f)
		}
		if f.Severity == SeverityOK {
			subjects = append(subjects, f.Subject)
		}
	}
	if want := []string{"redis", `database "main"`, `job "users"`, `job "page-views"`}; !slices.Equal(subjects, want) {
		t.Errorf("well are %q, want %q", subjects, want)
	}
	slices.Sort(seen)
	if want := []string{"configuration false", "configuration true", `database "main" false`, `database "main" true`,
		"fences false", "fences true", "files false", "files true", "host false", "host true", "nodes false",
		"nodes true", "redis false", "redis true"}; !slices.Equal(seen, want) {
		t.Errorf("told %q, want %q", seen, want)
	}
}

func TestTheDoctorFindsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t)
	redis.Client(t).Do("SET", "views:2", "1")
	db := testsupport.MariaDB(t)
	db.Exec(t, "CREATE TABLE articles (id bigint, views text, born date NOT NULL)")
	all := Examine(t.Context(), doctorFor(redis.URL(), dialect(db)), Options{})
	wantFound(t, all, SeverityError, "redis", "keeps nothing on disk")
	wantFound(t, all, SeverityError, `job "users"`, `no such table: "users"`)
	wantFound(t, all, SeverityError, `job "page-views"`, `column "views" is a text (text) and cannot be added to`)
	wantFound(t, all, SeverityError, `job "page-views"`, `column "born" is NOT NULL`)
	wantFound(t, all, SeverityError, `job "page-views"`, "no unique index has exactly the columns of `key` (id)")
	wantFound(t, all, SeverityError, `job "page-views"`, `"views:2" is a string`)
	for _, f := range all {
		if f.Severity.Rank() <= SeverityWarning.Rank() && (f.Consequence == "" || f.Remedy == "") || strings.Contains(f.What, "\n") {
			t.Errorf("%+v", f)
		}
	}
}

// Examine returns findings, whatever hangs.
func TestATableThatTheFirstFlushMakesIsAsItShouldBe(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t, testsupport.RedisAOF())
	for name, db := range map[string]*testsupport.Database{"postgres": testsupport.Postgres(t), "sqlite": testsupport.SQLite(t)} {
		c := doctorFor(redis.URL(), dialect(db))
		c.Jobs = c.Jobs[1:]
		c.Jobs[0].Flush.To.Schema = "create"
		c.Jobs[0].Flush.Columns = map[string]config.Column{"id": {From: "$field", Type: "integer"}, "views": {From: "$value", Op: "add", Type: "integer"}}
		if name == "sqlite" {
			db.Exec(t, "CREATE TABLE other (id integer)") // the file exists
		}
		all := Examine(t.Context(), c, Options{})
		wantFound(t, all, SeverityOK, `job "page-views"`, "is not there yet: the first flush makes it")
		for _, f := range all {
			if f.Subject == `job "page-views"` && f.Severity != SeverityOK {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

func TestWhatHangsDoesNotHangTheDoctor(t *testing.T) {
	t.Parallel()
	redis, db := testsupport.StartRedis(t), testsupport.Postgres(t)
	redisProxy, dbProxy := redis.Proxy(), db.Proxy()
	redisProxy.Hang()
	dbProxy.Hang()
	c := doctorFor(redis.URLThrough(redisProxy), config.Database{Driver: db.Driver, DSNInline: db.DSNThrough(dbProxy)})
	examined := make(chan []Finding, 1)
	go func() { examined <- Examine(t.Context(), c, Options{}) }()
	all := testsupport.Receive(t, "the doctor's findings", examined)
	wantFound(t, all, SeverityError, "redis", "does not answer")
	wantFound(t, all, SeverityError, `database "main"`, "does not answer")

	// A system call cannot be ended.
	stuck := make(chan struct{})
	defer close(stuck)
	e := examination{`database "files"`, func(context.Context) []Finding { <-stuck; return nil }}
	wantFound(t, e.within(t.Context(), time.Millisecond), SeverityError, `database "files"`, "it hangs")
}

func TestADatabaseWithoutItsDSNIsAFindingAmongOthers(t *testing.T) {
	c := doctorFor("redis://127.0.0.1:1/0", config.Database{Driver: "sqlite", DSNInline: filepath.Join(t.TempDir(), "none.db")})
	c.Databases["other"] = config.Database{Driver: "postgres", DSNFile: "/nonexistent/dsn"}
	all := Examine(t.Context(), c, Options{})
	wantFound(t, all, SeverityError, `database "other"`, "/nonexistent/dsn")
	wantFound(t, all, SeverityWarning, `database "main"`, "is not there")
	for i := range c.Jobs {
		c.Jobs[i].Flush.To.Schema = "create"
	}
	wantFound(t, Examine(t.Context(), c, Options{}), SeverityInfo, `database "main"`, "is not there yet")
	wantFound(t, all, SeverityError, "redis", "does not answer")
}

func TestEveryMasterOfAQuorumIsExamined(t *testing.T) {
	t.Parallel()
	c := configOf(testsupport.StartRedis(t).URL())
	for range 3 {
		c.Redis.Quorum = append(c.Redis.Quorum, testsupport.StartRedis(t).URL())
	}
	all := Examine(t.Context(), c, Options{})
	for i := range 3 {
		wantFound(t, all, SeverityOK, fmt.Sprintf("redis.quorum[%d]", i), "it answers")
	}
	if slices.ContainsFunc(all, func(f Finding) bool { return f.Subject == "redis" }) {
		t.Errorf("nothing uses redis.url: %+v", all)
	}
}

func TestTheDoctorFindsCommandsThatCannotStartHere(t *testing.T) {
	t.Parallel()
	redis, dir := testsupport.StartRedis(t), t.TempDir()
	c := configOf(redis.URL())
	missing := filepath.Join(dir, "missing")
	of := func(name string, set func(*config.Job)) config.Job {
		j := config.Job{Name: name, Schedule: "@hourly", Command: config.Command{"true"}}
		set(&j)
		return j
	}
	c.Jobs = []config.Job{
		of("good", func(*config.Job) {}),
		of("program", func(j *config.Job) { j.Command = config.Command{missing, "--password=treasure"} }),
		of("directory", func(j *config.Job) { j.WorkingDir = missing }),
		of("env", func(j *config.Job) { j.EnvFile = missing }),
		of("secret", func(j *config.Job) { j.Secrets = map[string]string{"TOKEN": missing} }),
		of("switch", func(j *config.Job) { j.DeadMansSwitch = &config.Webhook{URLFile: missing} }),
	}
	c.Notify = []config.Notify{{Name: "ops", Command: config.Command{missing}}, {Name: "hook", Webhook: &config.Webhook{URLFile: missing}}}
	all := Examine(t.Context(), c.WithDefaults(), Options{})
	wantFound(t, all, SeverityOK, `job "good"`, "can be started")
	wantFound(t, all, SeverityError, `job "program"`, "command not found: "+missing)
	wantFound(t, all, SeverityError, `job "directory"`, "is gone")
	wantFound(t, all, SeverityError, `job "env"`, missing)
	wantFound(t, all, SeverityError, `job "secret"`, missing)
	wantFound(t, all, SeverityError, `job "switch"'s dead man's switch`, missing)
	wantFound(t, all, SeverityError, `notification "ops"`, missing)
	wantFound(t, all, SeverityError, `notification "hook"`, missing)
	for _, f := range all {
		if strings.Contains(fmt.Sprint(f), "treasure") {
			t.Errorf("an argument is told: %+v", f)
		}
	}
}

// configOf returns a node's configuration without jobs.
func configOf(url string) config.Config {
	c := config.Default()
	c.Node.ID = "a"
	c.Redis.URL = url
	c.Election.TTL = 10 * time.Second
	c.HTTP.Listen = "127.0.0.1:0"
	return c.WithDefaults()
}
