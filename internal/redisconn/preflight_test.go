package redisconn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/finding"
	"baton/internal/flush/source"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// lockAndJobs returns the options for a Redis with the lock, its ledger, and the data of jobs: page-views and the given jobs.
func lockAndJobs(o redisconn.Options, jobs ...source.Options) redisconn.PreflightOptions {
	lock := redislock.Access(redislock.LockOptions{Key: "baton"})
	lock.Keys = append(lock.Keys, redisledger.Access("baton"))
	all := redisconn.PreflightOptions{LockKey: "baton", Data: true, Accesses: []redisconn.Access{lock}}
	for _, job := range append([]source.Options{{Job: "page-views", Type: "counters", Key: "views:1"}}, jobs...) {
		s, err := source.Describe(job)
		if err != nil {
			panic(err)
		}
		all.Accesses = append(all.Accesses, s.Access(false, len(o.Cluster) > 0))
	}
	return all
}

// examine opens a Redis and examines it.
func examine(t *testing.T, opts redisconn.Options, o redisconn.PreflightOptions) []finding.Finding {
	t.Helper()
	s, err := redisconn.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	found, usable := redisconn.Preflight(t.Context(), s, o)
	if !usable {
		t.Fatalf("not usable:\n%s", told(found))
	}
	return found
}

func told(all []finding.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s: %s: %s | %s | %s\n", f.Severity, f.Subject, f.What, f.Consequence, f.Remedy)
	}
	return b.String()
}

// wantTold fails the test unless a finding of that severity contains the text what, and names the possible loss and the remedy.
func wantTold(t *testing.T, all []finding.Finding, severity finding.Severity, what string) finding.Finding {
	t.Helper()
	for _, f := range all {
		if f.Severity == severity && strings.Contains(f.Subject+": "+f.What, what) {
			if severity != finding.SeverityOK && (f.Consequence == "" || f.Remedy == "") {
				t.Errorf("it lacks something: %+v", f)
			}
			return f
		}
	}
	t.Errorf("no %s with %q in:\n%s", severity, what, told(all))
	return finding.Finding{}
}

func wantNothingGrave(t *testing.T, all []finding.Finding) {
	t.Helper()
	for _, f := range all {
		if f.Severity.Rank() < finding.SeverityInfo.Rank() {
			t.Errorf("want nothing grave, got:\n%s", told(all))
			return
		}
	}
}

func TestASoundRedisHasNoGraveFinding(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	found := examine(t, redisconn.Options{URL: r.URL()}, lockAndJobs(redisconn.Options{}))
	wantNothingGrave(t, found)
	wantTold(t, found, finding.SeverityOK, "redis: it answers")
	wantTold(t, found, finding.SeverityInfo, "no replica")
	keys, err := r.Conn().Do("DBSIZE")
	if err != nil || keys != int64(0) {
		t.Errorf("it left %v keys, %v", keys, err)
	}
}

func TestWhatRedisMayForgetIsTold(t *testing.T) {
	t.Parallel()
	use := lockAndJobs(redisconn.Options{})
	r := testsupport.StartRedis(t)
	o := redisconn.Options{URL: r.URL()}
	conn := r.Conn()
	for _, c := range []struct {
		set      string
		severity finding.Severity
		what     string
	}{
		{"save=", finding.SeverityError, "keeps nothing on disk"},
		{"save=3600 1 300 100", finding.SeverityWarning, "snapshots only (save 3600 1 300 100)"},
		{"maxmemory-policy=allkeys-lru", finding.SeverityInfo, "without effect"},
		{"maxmemory=100mb", finding.SeverityError, "maxmemory-policy is allkeys-lru, at 100 MiB"},
		{"maxmemory-policy=volatile-ttl", finding.SeverityWarning, "maxmemory-policy is volatile-ttl"},
		{"appendonly=yes", finding.SeverityInfo, "appendfsync is everysec"},
		{"appendfsync=no", finding.SeverityWarning, "appendfsync is no"},
		{"maxmemory-policy=noeviction", finding.SeverityWarning, "appendfsync is no"},
		{"maxmemory=500kb", finding.SeverityError, "of its maxmemory of 500 KiB"}, // less than an empty server of any version needs
	} {
		name, value, _ := strings.Cut(c.set, "=")
		if _, err := conn.Do("CONFIG", "SET", name, value); err != nil {
			t.Fatal(c.set, err)
		}
		found := examine(t, o, use)
		wantTold(t, found, c.severity, c.what)
		for _, f := range found {
			if f.Severity == finding.SeverityOK && c.severity != finding.SeverityInfo {
				t.Errorf("%s: not all is well: %+v", c.set, f)
			}
		}
	}
	if f := wantTold(t, examine(t, o, use), finding.SeverityWarning, "appendfsync"); !strings.Contains(f.Consequence, "half a minute") {
		t.Errorf("%+v", f)
	}
}

func TestARedisThatHasOnlyTheLockMayForget(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	found := examine(t, redisconn.Options{URL: r.URL()}, redisconn.PreflightOptions{LockKey: "baton", Subject: "quorum"})
	wantNothingGrave(t, found)
	wantTold(t, found, finding.SeverityInfo, "quorum: it keeps nothing on disk")
}

func TestAReplicaAndANodeOfAClusterAreTold(t *testing.T) {
	t.Parallel()
	master := testsupport.StartRedis(t, testsupport.RedisAOF())
	replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	o := redisconn.PreflightOptions{LockKey: "baton", WaitReplicas: 2, Data: true}
	wantTold(t, examine(t, redisconn.Options{URL: replica.URL()}, o), finding.SeverityError, "it is a replica of 127.0.0.1:")
	wantTold(t, examine(t, redisconn.Options{URL: master.URL()}, o), finding.SeverityError,
		"1 replicas follow it, and election.wait_replicas is 2")
	node := testsupport.StartRedis(t, testsupport.RedisClusterNode())
	wantTold(t, examine(t, redisconn.Options{URL: node.URL()}, o), finding.SeverityError, "it is a node of a Cluster")
}

func TestTheMasterBehindSentinelsIsExamined(t *testing.T) {
	t.Parallel()
	s := testsupport.StartSentinel(t, testsupport.RedisAOF())
	found := examine(t, redisconn.Options{Sentinel: &redisconn.SentinelOptions{Master: s.Name(), Addresses: s.Addresses()}},
		lockAndJobs(redisconn.Options{}))
	wantTold(t, found, finding.SeverityWarning, "min-replicas-to-write is 0")
	must(t, s.Master(), "CONFIG", "SET", "min-replicas-to-write", "1")
	wantNothingGrave(t, examine(t, redisconn.Options{Sentinel: &redisconn.SentinelOptions{Master: s.Name(), Addresses: s.Addresses()}},
		lockAndJobs(redisconn.Options{})))
}

func TestEveryMasterOfAClusterIsExamined(t *testing.T) {
	t.Parallel()
	c := testsupport.StartCluster(t)
	must(t, c.Owner("views:1"), "CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "100mb")
	opts := redisconn.Options{Cluster: c.Addresses()}
	found := examine(t, opts, lockAndJobs(opts, source.Options{Job: "users", Type: "hashes", Changed: "changed:user", Key: "user:<id>"},
		source.Options{Job: "all", Type: "scan", Value: "hash", Key: "all:<id>"}))
	owner := wantTold(t, found, finding.SeverityError, "maxmemory-policy is allkeys-lru")
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
	r, url := testsupport.StartRedisWithUser(t)
	opts := redisconn.Options{URL: url, Username: "baton", ClientName: "baton:test", Password: func() (string, error) {
		return "PASSWORD",
			nil
	}}
	must(t, r, "CONFIG", "SET", "appendonly", "yes")
	o := lockAndJobs(opts, source.Options{Job: "users", Type: "hashes", Changed: "changed:user", Key: "user:<id>"})
	found := examine(t, opts, o)
	wantNothingGrave(t, found) // the documented user must be enough
	wantTold(t, found, finding.SeverityInfo, "appendfsync could not be checked")
	if f := wantTold(t, found, finding.SeverityOK, "it answers: "); strings.Contains(f.What, "keep") {
		t.Errorf("what was not checked is called good: %s", f.What)
	}

	must(t, r, "ACL", "SETUSER", "baton", "-rename", "-hmget")
	found = examine(t, opts, o)
	f := wantTold(t, found, finding.SeverityError, `job "users": the redis user may not use HMGET, RENAME`)
	if !strings.Contains(f.Remedy, "ACL SETUSER … +hmget +rename") {
		t.Errorf("%+v", f)
	}
	must(t, r, "ACL", "SETUSER", "baton", "+rename", "+hmget", "resetkeys", "~baton", "~{baton}:*", "~views:*", "~{views:*}:baton:*",
		"~changed:user", "~{changed:user}:baton:*")
	f = wantTold(t, examine(t, opts, o), finding.SeverityError, `job "users": the redis user may not use user:*`)
	if !strings.Contains(f.Remedy, "~user:*") {
		t.Errorf("%+v", f)
	}
	must(t, r, "ACL", "SETUSER", "baton", "~user:*", "resetchannels", "-eval", "-info", "-time")
	found = examine(t, opts, o)
	wantTold(t, found, finding.SeverityError, "redis: the redis user may not use EVAL, TIME, {baton}:wake")
	wantTold(t, found, finding.SeverityError, "scripts are refused")
	wantTold(t, found, finding.SeverityWarning, "INFO is refused")
	wantTold(t, found, finding.SeverityInfo, "clock could not be checked")
}

// The rules that the preflight prints are sufficient, and grant nothing else.
func TestTheRulesForALockWithSignsOfAPatternAreOfThatLock(t *testing.T) {
	t.Parallel()
	r, url := testsupport.StartRedisWithUser(t)
	opts := redisconn.Options{URL: url, Username: "baton", ClientName: "baton:test"}
	opts.Password = func() (string, error) { return "PASSWORD", nil }
	lock := redislock.Access(redislock.LockOptions{Key: `a*[b]?\`})
	lock.Keys = append(lock.Keys, redisledger.Access(`a*[b]?\`))
	use := redisconn.PreflightOptions{LockKey: `a*[b]?\`, Accesses: []redisconn.Access{lock}}
	must(t, r, "ACL", "SETUSER", "baton", "resetkeys", "resetchannels")
	f := wantTold(t, examine(t, opts, use), finding.SeverityError, "the redis user may not use")
	rules, _, _ := strings.Cut(strings.TrimPrefix(f.Remedy, "ACL SETUSER … "), " (")
	if strings.Contains(rules, "more") {
		t.Fatal(rules)
	}
	for rule := range strings.SplitSeq(rules, " ") {
		must(t, r, "ACL", "SETUSER", "baton", rule)
	}
	wantNothingGrave(t, examine(t, opts, use))
	for _, key := range []string{"ab[b]xx", `a*[b]?\x`, "abbc"} {
		if c := r.Client(t); c.Str("ACL", "DRYRUN", "baton", "GET", key) == "OK" {
			t.Errorf("with %s it may read %s", rules, key)
		}
	}
}

func TestClocksThatDifferAreTold(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisClock(), testsupport.RedisAOF())
	r.StepClock(-90 * time.Second)
	found := examine(t, redisconn.Options{URL: r.URL()}, redisconn.PreflightOptions{LockKey: "baton"})
	wantTold(t, found, finding.SeverityWarning, "its clock is 1m30s behind this host's")
}

func TestARedisThatIsAwayOrHangsIsNotUsable(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	p := r.Proxy()
	p.Hang()
	for name, url := range map[string]string{"away": "redis://127.0.0.1:1/0", "hangs": r.URLThrough(p)} {
		s, err := redisconn.Open(redisconn.Options{URL: url, Timeout: time.Hour}) // only the context ends a preflight
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		var found []finding.Finding
		looked := make(chan bool, 1)
		go func() {
			var usable bool
			found, usable = redisconn.Preflight(ctx, s, redisconn.PreflightOptions{LockKey: "baton"})
			looked <- usable
		}()
		if testsupport.Receive(t, name+": the look ends with its context", looked) {
			t.Errorf("%s: usable", name)
		}
		wantTold(t, found, finding.SeverityError, "it does not answer")
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
	// The snapshot cannot replace a directory that is not empty.
	if err := os.MkdirAll(filepath.Join(dir[1], "dump.rdb", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, r, "BGSAVE")
	testsupport.AwaitNoError(t, "the snapshot fails", func() error {
		if info, err := redis.String(conn.Do("INFO", "persistence")); err != nil || !strings.Contains(info, "rdb_last_bgsave_status:err") {
			return fmt.Errorf("not yet: %w", err)
		}
		return nil
	})
	found := examine(t, redisconn.Options{URL: r.URL()}, lockAndJobs(redisconn.Options{}))
	wantTold(t, found, finding.SeverityError, "its last snapshot failed")
}

func must(t *testing.T, r *testsupport.Redis, name string, args ...any) {
	t.Helper()
	if _, err := r.Conn().Do(name, args...); err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
}

func TestOfAStoreNothingIsToldThatOnlyALockHas(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	r.Client(t).Do("CONFIG", "SET", "save", "")
	found := examine(t, redisconn.Options{URL: r.URL()}, redisconn.PreflightOptions{Subject: `store "shop"`, Data: true, Store: true})
	wantTold(t, found, finding.SeverityError, "keeps nothing on disk")
	for _, f := range found {
		if strings.Contains(f.Consequence, "lease") || strings.Contains(f.Consequence, "when jobs ran last") {
			t.Errorf("it has no lock, and no history: %+v", f)
		}
	}
}
