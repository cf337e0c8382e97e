package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/redisstore"
	"baton/internal/testsupport"
)

// views is what a job reads: without it there is only a lock to lose.
var views = redisstore.PreflightUse{Job: "page-views", Type: "counters", Live: []string{"views:1"}}

// examine opens a Redis and examines it.
func examine(t *testing.T, opts redisstore.Options, o redisstore.PreflightOptions) []flush.Finding {
	t.Helper()
	s, err := redisstore.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	found, usable := s.Preflight(t.Context(), o)
	if !usable {
		t.Fatalf("not usable:\n%s", told(found))
	}
	return found
}

func told(all []flush.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s: %s: %s | %s | %s\n", f.Severity, f.Subject, f.What, f.Consequence, f.Remedy)
	}
	return b.String()
}

// wantTold fails unless a finding of that severity has what, and says what can be lost
// and how to mend it.
func wantTold(t *testing.T, all []flush.Finding, severity flush.Severity, what string) flush.Finding {
	t.Helper()
	for _, f := range all {
		if f.Severity == severity && strings.Contains(f.Subject+": "+f.What, what) {
			if severity != flush.SeverityOK && (f.Consequence == "" || f.Remedy == "") {
				t.Errorf("it lacks something: %+v", f)
			}
			return f
		}
	}
	t.Errorf("no %s with %q in:\n%s", severity, what, told(all))
	return flush.Finding{}
}

func wantNothingGrave(t *testing.T, all []flush.Finding) {
	t.Helper()
	for _, f := range all {
		if f.Severity.Rank() < flush.SeverityInfo.Rank() {
			t.Errorf("want nothing grave, got:\n%s", told(all))
			return
		}
	}
}

func TestASoundRedisHasNoGraveFinding(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	found := examine(t, redisstore.Options{URL: r.URL()}, redisstore.PreflightOptions{LockKey: "baton", Uses: []redisstore.PreflightUse{views}})
	wantNothingGrave(t, found)
	wantTold(t, found, flush.SeverityOK, "redis: it answers")
	wantTold(t, found, flush.SeverityInfo, "no replica")
	keys, err := r.Conn().Do("DBSIZE")
	if err != nil || keys != int64(0) {
		t.Errorf("it left %v keys, %v", keys, err)
	}
}

func TestWhatRedisMayForgetIsTold(t *testing.T) {
	t.Parallel()
	use := redisstore.PreflightOptions{LockKey: "baton", Uses: []redisstore.PreflightUse{views}}
	r := testsupport.StartRedis(t)
	o := redisstore.Options{URL: r.URL()}
	conn := r.Conn()
	for _, c := range []struct {
		set      string
		severity flush.Severity
		what     string
	}{
		{"save=", flush.SeverityError, "keeps nothing on disk"},
		{"save=3600 1 300 100", flush.SeverityWarning, "snapshots only (save 3600 1 300 100)"},
		{"maxmemory-policy=allkeys-lru", flush.SeverityInfo, "without effect"},
		{"maxmemory=100mb", flush.SeverityError, "maxmemory-policy is allkeys-lru, at 100 MiB"},
		{"maxmemory-policy=volatile-ttl", flush.SeverityWarning, "maxmemory-policy is volatile-ttl"},
		{"appendonly=yes", flush.SeverityInfo, "appendfsync is everysec"},
		{"appendfsync=no", flush.SeverityWarning, "appendfsync is no"},
		{"maxmemory-policy=noeviction", flush.SeverityWarning, "appendfsync is no"},
		{"maxmemory=1mb", flush.SeverityError, "of its maxmemory of 1 MiB"},
	} {
		name, value, _ := strings.Cut(c.set, "=")
		if _, err := conn.Do("CONFIG", "SET", name, value); err != nil {
			t.Fatal(c.set, err)
		}
		found := examine(t, o, use)
		wantTold(t, found, c.severity, c.what)
		for _, f := range found {
			if f.Severity == flush.SeverityOK && c.severity != flush.SeverityInfo {
				t.Errorf("%s: not all is well: %+v", c.set, f)
			}
		}
	}
	if f := wantTold(t, examine(t, o, use), flush.SeverityWarning, "appendfsync"); !strings.Contains(f.Consequence, "half a minute") {
		t.Errorf("%+v", f)
	}
}

func TestARedisThatHasOnlyTheLockMayForget(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	found := examine(t, redisstore.Options{URL: r.URL()}, redisstore.PreflightOptions{LockKey: "baton", Subject: "quorum"})
	wantNothingGrave(t, found)
	wantTold(t, found, flush.SeverityInfo, "quorum: it keeps nothing on disk")
}

func TestAReplicaAndANodeOfAClusterAreTold(t *testing.T) {
	t.Parallel()
	master := testsupport.StartRedis(t, testsupport.RedisAOF())
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	o := redisstore.PreflightOptions{LockKey: "baton", WaitReplicas: 2, Uses: []redisstore.PreflightUse{views}}
	wantTold(t, examine(t, redisstore.Options{URL: replica.URL()}, o), flush.SeverityError, "it is a replica of 127.0.0.1:")
	wantTold(t, examine(t, redisstore.Options{URL: master.URL()}, o), flush.SeverityError, "1 replicas follow it, and election.wait_replicas is 2")
	node := testsupport.StartRedis(t, testsupport.RedisClusterNode())
	wantTold(t, examine(t, redisstore.Options{URL: node.URL()}, o), flush.SeverityError, "it is a node of a Cluster")
}

func TestTheMasterBehindSentinelsIsExamined(t *testing.T) {
	t.Parallel()
	s := testsupport.StartSentinel(t, testsupport.RedisAOF())
	found := examine(t, redisstore.Options{Sentinel: &redisstore.SentinelOptions{Master: s.Name(), Addresses: s.Addresses()}},
		redisstore.PreflightOptions{LockKey: "baton", Uses: []redisstore.PreflightUse{views}})
	wantTold(t, found, flush.SeverityWarning, "min-replicas-to-write is 0")
	must(t, s.Master(), "CONFIG", "SET", "min-replicas-to-write", "1")
	wantNothingGrave(t, examine(t, redisstore.Options{Sentinel: &redisstore.SentinelOptions{Master: s.Name(), Addresses: s.Addresses()}},
		redisstore.PreflightOptions{LockKey: "baton", Uses: []redisstore.PreflightUse{views}}))
}

func TestEveryMasterOfAClusterIsExamined(t *testing.T) {
	t.Parallel()
	c := testsupport.StartCluster(t)
	must(t, c.Owner("views:1"), "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb")
	o := redisstore.PreflightOptions{LockKey: "baton", Uses: []redisstore.PreflightUse{views,
		{Job: "users", Type: "hashes", Live: []string{"changed:user"}, Key: "user:<id>"}, {Job: "all", Type: "scan", Value: "hash", Key: "all:<id>"}}}
	found := examine(t, redisstore.Options{Cluster: c.Addresses()}, o)
	owner := wantTold(t, found, flush.SeverityError, "maxmemory-policy is allkeys-lru")
	if want := "redis " + c.Owner("views:1").Addr(); owner.Subject != want {
		t.Errorf("it is said of %s, want %s", owner.Subject, want)
	}
	subjects := map[string]bool{}
	for _, f := range found {
		subjects[f.Subject] = true
	}
	if len(subjects) != 3 {
		t.Errorf("want every master, and no fault of a job:\n%s", told(found))
	}
}

func TestWhatAUserMayNotDoIsNamed(t *testing.T) {
	t.Parallel()
	r, opts := redisstore.StartWithUser(t)
	must(t, r, "CONFIG", "SET", "appendonly", "yes")
	o := redisstore.PreflightOptions{LockKey: "baton", Uses: []redisstore.PreflightUse{views,
		{Job: "users", Type: "hashes", Live: []string{"changed:user"}, Key: "user:<id>"}}}
	found := examine(t, opts, o)
	wantNothingGrave(t, found) // the documented user
	wantTold(t, found, flush.SeverityInfo, "appendfsync could not be checked")

	must(t, r, "ACL", "SETUSER", "baton", "-rename", "-hmget")
	found = examine(t, opts, o)
	f := wantTold(t, found, flush.SeverityError, `job "users": the redis user may not use HMGET, RENAME`)
	if !strings.Contains(f.Remedy, "ACL SETUSER … +hmget +rename") {
		t.Errorf("%+v", f)
	}
	must(t, r, "ACL", "SETUSER", "baton", "+rename", "+hmget", "resetkeys", "~baton", "~{baton}:*", "~views:*", "~{views:*}:baton:*", "~changed:user", "~{changed:user}:baton:*")
	f = wantTold(t, examine(t, opts, o), flush.SeverityError, `job "users": the redis user may not use user:1`)
	if !strings.Contains(f.Remedy, "~user:1") {
		t.Errorf("%+v", f)
	}
	must(t, r, "ACL", "SETUSER", "baton", "~user:*", "resetchannels", "-eval", "-info", "-time")
	found = examine(t, opts, o)
	wantTold(t, found, flush.SeverityError, "redis: the redis user may not use EVAL, TIME, {baton}:wake")
	wantTold(t, found, flush.SeverityError, "scripts are refused")
	wantTold(t, found, flush.SeverityWarning, "INFO is refused")
	wantTold(t, found, flush.SeverityInfo, "clock could not be checked")
}

func TestClocksThatDifferAreTold(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisClock(), testsupport.RedisAOF())
	r.StepClock(-90 * time.Second)
	found := examine(t, redisstore.Options{URL: r.URL()}, redisstore.PreflightOptions{LockKey: "baton"})
	wantTold(t, found, flush.SeverityWarning, "its clock is 1m30s behind this host's")
}

func TestARedisThatIsAwayOrHangsIsNotUsable(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	p := r.Proxy()
	p.Hang()
	for name, url := range map[string]string{"away": "redis://127.0.0.1:1/0", "hangs": r.URLThrough(p)} {
		s, err := redisstore.Open(redisstore.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		began := time.Now()
		found, usable := s.Preflight(ctx, redisstore.PreflightOptions{LockKey: "baton"})
		if took := time.Since(began); usable || took > testsupport.Paced(2*time.Second) {
			t.Errorf("%s: usable %v after %v", name, usable, took)
		}
		wantTold(t, found, flush.SeverityError, "it does not answer")
		cancel()
		_ = s.Close()
	}
}

func TestAFailedSnapshotIsTold(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	conn := r.Conn()
	dir, err := redis.Strings(conn.Do("CONFIG", "GET", "dir"))
	if err != nil {
		t.Fatal(err)
	}
	// A directory that is not empty is in the way of the snapshot's file.
	if err := os.MkdirAll(filepath.Join(dir[1], "dump.rdb", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, r, "BGSAVE")
	await(t, "the snapshot fails", func() error {
		if info, err := redis.String(conn.Do("INFO", "persistence")); err != nil || !strings.Contains(info, "rdb_last_bgsave_status:err") {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	found := examine(t, redisstore.Options{URL: r.URL()}, redisstore.PreflightOptions{LockKey: "baton", Uses: []redisstore.PreflightUse{views}})
	wantTold(t, found, flush.SeverityError, "its last snapshot failed")
}
