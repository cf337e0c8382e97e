package redisconn_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"baton/internal/finding"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

func TestARedisThatIsTooSlowForTheLeaseIsTold(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	o := redisconn.Options{URL: r.URL()}
	use := redisconn.PreflightOptions{LockKey: "baton", AttemptTimeout: time.Hour} // no machine is that slow
	var found []finding.Finding
	testsupport.Await(t, "a measurement that no busy machine cuts short", func() bool {
		found = examine(t, o, use)
		return strings.Contains(told(found), "(median of 40)")
	})
	wantNothingGrave(t, found)
	if f := wantTold(t, found, finding.SeverityOK, "it answers"); !strings.Contains(f.What, "a round trip takes") {
		t.Errorf("%+v", f)
	}

	use.AttemptTimeout = time.Microsecond
	f := wantTold(t, examine(t, o, use), finding.SeverityError, "too slow for election.attempt_timeout, 1µs")
	if !strings.Contains(f.Remedy, "election.ttl") {
		t.Errorf("%+v", f)
	}
	use.LockKey = "" // the lock is in another store
	wantNothingGrave(t, examine(t, o, use))

	// The server hangs once during the measurement, after the first round trip.
	proxy := r.Proxy()
	measured := proxy.HangAfterRequest("PTTL")
	go func() {
		<-measured
		time.Sleep(2 * time.Second)
		proxy.Unhang()
	}()
	use = redisconn.PreflightOptions{LockKey: "baton", AttemptTimeout: 500 * time.Millisecond}
	found = examine(t, redisconn.Options{URL: r.URLThrough(proxy)}, use)
	wantTold(t, found, finding.SeverityWarning, "up to more than half of election.attempt_timeout, 500ms")
}

func TestAReplicaThatLacksWhatWasWrittenIsTold(t *testing.T) {
	t.Parallel()
	backlog := testsupport.RedisArgs("--repl-backlog-size", "1mb") // the default of Valkey is larger
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
