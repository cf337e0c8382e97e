package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
)

// limited adds a user to a Redis, who may run all commands except those in less, and returns the URL of this user.
func limited(t *testing.T, r *testsupport.Redis, less ...string) string {
	t.Helper()
	words := []any{"SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all"}
	for _, name := range less {
		words = append(words, "-"+name)
	}
	r.Client(t).Do("ACL", words...)
	return strings.Replace(r.URL(), "redis://", "redis://limited:pw@", 1)
}

// All parts are checked with the right input, because each of these faults belongs to another part.
func TestTheDoctorAsksEveryPart(t *testing.T) {
	redis, here, other := testsupport.StartRedis(t, testsupport.RedisAOF()), testsupport.SQLite(t), testsupport.SQLite(t)
	here.Exec(t, "CREATE TABLE fits (id INTEGER PRIMARY KEY, name TEXT DEFAULT 'd')")
	other.Exec(t, "CREATE TABLE unused (id INTEGER)")
	now := time.Now().UnixMilli()
	if _, err := redis.Conn().Do("HSET", "{baton}:nodes", "b", fmt.Sprintf(`{"version":"1","state":"live","seen_ms":%d,"clock_ms":5000}`, now),
		"gone", fmt.Sprintf(`{"version":"1","state":"live","seen_ms":%d,"clock_ms":5000}`, now-time.Hour.Milliseconds())); err != nil {
		t.Fatal(err)
	}
	c := configOf(limited(t, redis, "sscan", "lrange", "xread", "getrange", "psetex"))
	c.Election.WaitReplicas = 2
	c.Databases = map[string]config.Database{"main": dialect(here), "other": dialect(other)}
	to := config.To{Database: "main", Table: "fits", Key: []string{"id"}}
	always := flushOf("stream", config.From{Type: spec.Stream, Key: "events"}, to)
	always.Schedule = "@always"
	c.Jobs = []config.Job{
		flushOf("rows", config.From{Type: spec.Hashes, Key: "user:<id>", Changed: "changed:user"}, to),
		flushOf("list", config.From{Type: spec.List, Key: "queue"}, to), always,
		flushOf("totals", config.From{Type: spec.Counters, Key: "count:<id>", Mode: config.ModeWatermark}, to),
		flushOf("astray", config.From{Type: spec.List, Key: "queue2"}, config.To{Database: "other", Table: "fits", Key: []string{"id"}}),
	}
	file := filepath.Join(t.TempDir(), "baton.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, err := redis.Conn().Do("SADD", "changed:user", "1"); err != nil { // a set: SSCAN
		t.Fatal(err)
	}
	answering(t, "bad")
	all := Examine(t.Context(), c.WithDefaults(), Options{ConfigFile: file, Unit: "baton.service"})
	for _, f := range []struct {
		severity      Severity
		subject, what string
	}{
		{SeverityError, "redis", "0 replicas follow it, and election.wait_replicas is 2"},
		{SeverityError, `job "rows"`, "may not use SSCAN"},
		{SeverityError, `job "list"`, "may not use LRANGE"},
		{SeverityError, `job "stream"`, "may not use XREAD"},
		{SeverityError, `job "totals"`, "may not use GETRANGE"},
		{SeverityError, `job "astray"`, `no such table: "fits"`},
		{SeverityInfo, `job "rows"`, `table fits has a default for name: the job sets it where a record`},
		{SeverityOK, `job "rows"`, `table fits of database "main" fits; columns written: `},
		{SeverityWarning, `node "b"`, "its clock is 5s ahead of that of Redis"},
		{SeverityError, "file " + file, "can write to it"},
		{SeverityError, "unit baton.service", "KillMode is process, not mixed"},
	} {
		wantFound(t, all, f.severity, f.subject, f.what)
	}
	wantRemedies(t, all)
	for _, f := range all {
		if f.Subject == `node "gone"` || f.Subject == `job "rows"` && strings.Contains(f.What, "no such table") {
			t.Errorf("%+v", f)
		}
	}
	for i := 1; i < len(all); i++ { // in the order of the configuration, with the jobs at the end
		if strings.HasPrefix(all[i-1].Subject, "job ") && !strings.HasPrefix(all[i].Subject, "job ") {
			t.Errorf("%s stands after %s", all[i].Subject, all[i-1].Subject)
		}
	}
}

func TestEachMasterOfAQuorumIsAskedForItself(t *testing.T) {
	redis := testsupport.StartRedis(t)
	c := configOf(redis.URL())
	c.Redis.Quorum = []string{redis.URL(), "redis://127.0.0.1:1/0", limited(t, redis, "time", "pexpire")}
	all := Examine(t.Context(), c, Options{})
	wantFound(t, all, SeverityOK, "redis.quorum[0]", "it answers")
	wantFound(t, all, SeverityError, "redis.quorum[1]", "does not answer")
	wantFound(t, all, SeverityError, "redis.quorum[2]", "may not use PEXPIRE")
	c.Redis.Quorum[1] = "redis://:pw"
	c.Redis.URL, c.Jobs = "redis://127.0.0.1:1/0", []config.Job{flushOf("list", config.From{Type: spec.List, Key: "queue"}, config.To{Database: "main", Table: "t"})}
	all = Examine(t.Context(), c, Options{})
	wantFound(t, all, SeverityError, "redis", "does not answer") // this Redis has the jobs' data
	wantFound(t, all, SeverityError, "redis.quorum[1]", "set exactly one of")
}
