package redisconn_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/finding"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

func TestARedisThatIsTooSlowForTheLeaseIsTold(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	o := redisconn.Options{URL: r.URL()}
	use := redisconn.PreflightOptions{LockKey: "baton", AttemptTimeout: time.Second}
	found := examine(t, o, use)
	wantNothingGrave(t, found)
	if f := wantTold(t, found, finding.SeverityOK, "it answers"); !strings.Contains(f.What, "a round trip takes") ||
		!strings.Contains(f.What, "(median of 40)") {
		t.Errorf("%+v", f)
	}

	use.AttemptTimeout = time.Microsecond
	f := wantTold(t, examine(t, o, use), finding.SeverityError, "too slow for election.attempt_timeout, 1µs")
	if !strings.Contains(f.Remedy, "election.ttl") {
		t.Errorf("%+v", f)
	}
	use.LockKey = "" // the lock is elsewhere
	wantNothingGrave(t, examine(t, o, use))

	// It stalls once while it is measured. On a busy machine that may be over by then.
	use = redisconn.PreflightOptions{LockKey: "baton", AttemptTimeout: 500 * time.Millisecond}
	const stalls = "up to more than half of election.attempt_timeout, 500ms"
	conn := r.Conn()
	for range 20 {
		if err := conn.Send("CONFIG", "RESETSTAT"); err != nil {
			t.Fatal(err)
		}
		stalled := make(chan struct{})
		go func() {
			defer close(stalled)
			for { // until a round trip was measured
				stats, err := redis.String(conn.Do("INFO", "commandstats"))
				if err != nil || strings.Contains(stats, "cmdstat_pttl:") {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			_, _ = conn.Do("CLIENT", "PAUSE", "400", "ALL")
		}()
		found = examine(t, o, use)
		<-stalled
		if strings.Contains(told(found), stalls) {
			break
		}
	}
	wantTold(t, found, finding.SeverityWarning, stalls)
}

func TestAReplicaThatLacksWhatWasWrittenIsTold(t *testing.T) {
	t.Parallel()
	backlog := testsupport.RedisArgs("--repl-backlog-size", "1mb") // Valkey has more
	master, err := testsupport.RunRedis("", testsupport.RedisAOF(), backlog)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Stop() })
	replica, err := testsupport.RunRedis("", testsupport.RedisReplicaOf(master))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = replica.Stop() })
	o := redisconn.Options{URL: master.URL()}
	use := lockAndJobs(redisconn.Options{})
	if found := examine(t, o, use); strings.Contains(told(found), "lacks") {
		t.Errorf("it has all:\n%s", told(found))
	}
	if err := replica.Freeze(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = replica.Thaw() }()
	conn, err := master.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, key := range []string{"a", "b", "c"} {
		if _, err := conn.Do("SET", key, bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	wantTold(t, examine(t, o, use), finding.SeverityWarning, "lacks 3 MiB of what was written")
}
