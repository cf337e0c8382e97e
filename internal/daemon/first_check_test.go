package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"baton/internal/config"
	"baton/internal/doctor"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
)

// twoFlushes returns a configuration with two jobs that write to the database main. Only one of them fits its table.
func twoFlushes(redis string, db config.Database) config.Config {
	c := configFor(redis)
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

func TestAJobWhoseRunsTakeLongerThanItsScheduleIsTold(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t, testsupport.RedisAOF())
	c := configFor(redis.URL())
	slow := config.Job{Name: "slow", Schedule: "@every 1s", Command: config.Command{"sleep", "1.2"}, Policy: config.Policy{Overlap: config.OverlapQueueOne}}
	rare := slow
	rare.Name, rare.Schedule = "rare", "@hourly"
	c.Jobs = []config.Job{slow, rare}
	r := start(t, c.WithDefaults(), nil)
	remote := overServers(t, c.WithDefaults())
	await(t, "some runs", func() bool {
		runs, _ := remote.runs(t.Context(), "slow", 3)
		return len(runs) >= 3
	})
	all := doctor.Examine(t.Context(), c.WithDefaults(), doctor.Options{})
	told := func(job, what string) bool {
		return slices.ContainsFunc(all, func(f doctor.Finding) bool {
			return f.Severity == doctor.SeverityWarning && f.Subject == fmt.Sprintf("job %q", job) && strings.Contains(f.What, what)
		})
	}
	if !told("slow", "half of its last runs took ") || !told("slow", "and it is due again after 1s") || told("rare", "") {
		t.Errorf("%+v", all)
	}
	r.endsWell()
}

func TestTheFirstTermTellsTheLogWhatIsGrave(t *testing.T) {
	t.Parallel()
	redis, db := testsupport.StartRedis(t), testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE users (id INTEGER PRIMARY KEY)")
	r := start(t, twoFlushes(redis.URL(), config.Database{Driver: db.Driver, DSNInline: db.DSN}), nil)
	await(t, "the findings", func() bool { return r.logs.FilterMessageSnippet(`job "page-views": `).Len() > 0 })
	grave := r.logs.FilterMessageSnippet("redis: it keeps nothing on disk").All()
	if len(grave) != 1 || grave[0].Level != zapcore.ErrorLevel || grave[0].ContextMap()["remedy"] == "" || grave[0].ContextMap()["consequence"] == "" {
		t.Errorf("%+v", grave)
	}
	if n := r.logs.FilterMessageSnippet(`job "users": table`).Len(); n != 0 {
		t.Errorf("what is well is told %d times", n)
	}
	r.endsWell()
}

func TestTheFirstCheckUnderSeveralLocksDoesNotMissTheJobsOfTheOthers(t *testing.T) {
	t.Parallel()
	redis, db := testsupport.StartRedis(t), testsupport.SQLite(t)
	c := twoFlushes(redis.URL(), config.Database{Driver: db.Driver, DSNInline: db.DSN})
	c.Jobs[0].Lock = "east"
	r := start(t, c, nil)
	await(t, "a look at the jobs under each lock", func() bool {
		return r.logs.FilterMessageSnippet(`job "page-views": `).Len() > 0 && r.logs.FilterMessageSnippet(`job "users": `).Len() > 0
	})
	if n := r.logs.FilterMessageSnippet("redis: it keeps nothing on disk").Len(); n != 1 {
		t.Errorf("what two locks have in common is told %d times", n)
	}
	if all := r.logs.FilterMessageSnippet("it runs with other jobs").All(); len(all) > 0 {
		t.Errorf("a node finds fault with its own jobs: %+v", all)
	}
	r.endsWell()
}
