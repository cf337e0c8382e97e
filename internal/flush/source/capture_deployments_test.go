package source

import (
	"crypto/tls"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// The master behind Sentinels is cut off from its replicas, accepts writes that are captured, and dies. Writes that the promoted replica
// does not have must not stay in the table.
func TestASentinelFailoverThatLosesWritesIsMadeUpFor(t *testing.T) {
	t.Parallel()
	all := testsupport.StartSentinel(t)
	first := all.Master()
	j := captureAt(t, redisconn.Options{
		Sentinel:   &redisconn.SentinelOptions{Addresses: all.Addresses(), Master: all.Name()},
		ClientName: "baton-test", Timeout: 2 * time.Second,
	})
	j.options.MaxPct = 100
	c := first.Client(t)
	for i := range 20 {
		c.Do("SET", fmt.Sprintf("s:%d", i), "kept")
	}
	j.mustEqual(c)
	if n := c.Num("WAIT", 2, 60_000); n != 2 { // and it does not count our connection as a replica
		t.Fatalf("WAIT says %d", n)
	}
	replicas := all.Replicas()
	for _, r := range replicas {
		r.Freeze()
	}
	c.Do("CLIENT", "KILL", "TYPE", "replica") // commands that are on their way to the replicas would still arrive
	for i := range 5 {
		c.Do("SET", fmt.Sprintf("s:%d", i), "lost")
	}
	c.Do("SET", "s:new", "lost, too")
	c.Do("DEL", "s:9")
	j.again(func() error { return j.run(t.Context()) })
	j.must(c)
	if texts := fmt.Sprint(j.table.texts()); !strings.Contains(texts, "lost") {
		t.Fatalf("the table has no row of a lost write: %s", texts)
	}
	j.told()
	first.Kill()
	for _, r := range replicas {
		r.Thaw()
	}
	all.AwaitMaster(first).Client(t).Do("SET", "s:11", "after the failover")
	// On a busy machine there may be another failover.
	for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := j.run(t.Context())
		c := all.AwaitMaster(first).Client(t)
		want, got := contentsOf(t, c), j.table.texts()
		if err == nil && fmt.Sprint(want) == fmt.Sprint(got) {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%v; the rows are %v, want %v; the server says %s", err, got, want, c.Str("INFO", "replication"))
		}
	}
	if texts := fmt.Sprint(j.table.texts()); strings.Contains(texts, "lost") {
		t.Errorf("rows: %s", texts)
	}
	if notes := j.told(); !strings.Contains(notes, "all keys are read") {
		t.Errorf("notes: %q", notes)
	}
}

// again repeats try until it succeeds.
func (j *captureJob) again(try func() error) {
	j.t.Helper()
	testsupport.AwaitNoError(j.t, "it succeeds", try)
}

// The commands that doctor checks are enough, over TLS with a client certificate. If one is missing, the error names it.
func TestACaptureNeedsNoMoreThanDoctorAsksFor(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisTLS(true))
	c := r.Client(t)
	described, err := Describe(Options{Job: "capture", Type: "capture", Key: "s:<id>", Value: "string"})
	if err != nil {
		t.Fatal(err)
	}
	rights := "+hello +auth +ping +client|setname +psync +select" // for connections, and commands that cannot be in a transaction
	for _, p := range described.Access(false, false).Keys {
		for _, command := range p.Sent("string") {
			rights += " +" + strings.ToLower(strings.Fields(command)[0])
		}
	}
	open := func(rights string) *captureJob {
		args := []any{"SETUSER", "baton", "reset", "on", ">secret", "~s:*", "&baton:capture"}
		for right := range strings.FieldsSeq(rights) {
			args = append(args, right)
		}
		c.Do("ACL", args...)
		return captureAt(t, redisconn.Options{
			URL: r.URL(), Username: "baton", Password: func() (string, error) { return "secret", nil },
			TLS: func() (*tls.Config, error) { return r.TLSConfig(), nil }, ClientName: "baton-test",
		})
	}
	j := open(rights)
	c.Do("SET", "s:1", "a")
	c.Do("SET", "s:2", "b")
	j.mustEqual(c)
	c.Do("DEL", "s:1")
	c.Do("SET", "other:1", "x")
	j.mustEqual(c)
	j.die()
	for _, right := range []string{"+psync", "+replconf", "+command"} {
		j := open(strings.Replace(rights, right, "", 1))
		err := j.run(t.Context())
		if err == nil || !strings.Contains(err.Error(), right[1:]) || !strings.Contains(err.Error(), "ACL SETUSER") {
			t.Errorf("without %s the run ended with %v", right, err)
		}
		if right == "+psync" {
			healsByItself(t, c, j, rights)
		}
		j.die()
	}
}

// healsByItself checks that after a refusal the stream is requested again every few seconds, so that a granted permission soon has an
// effect.
func healsByItself(t *testing.T, c testsupport.Client, j *captureJob, rights string) {
	t.Helper()
	rejected := func() int {
		_, stats, _ := strings.Cut(c.Str("INFO", "commandstats"), "cmdstat_psync:")
		_, calls, _ := strings.Cut(stats, "rejected_calls=")
		n, _ := strconv.Atoi(calls[:max(0, strings.IndexByte(calls, ','))])
		return n
	}
	limit := time.Now().Add(time.Minute)
	for before := rejected(); rejected() < before+8; time.Sleep(50 * time.Millisecond) { // only the server counts the refusals
		if time.Now().After(limit) {
			t.Fatal("in a minute the stream was not asked for eight times")
		}
	}
	for right := range strings.FieldsSeq(rights) {
		c.Do("ACL", "SETUSER", "baton", right)
	}
	c.Do("SET", "s:healed", "a")
	for j.run(t.Context()) != nil {
		if time.Now().After(limit) {
			t.Fatal("the stream is granted, and not followed")
		}
	}
	j.mustEqual(c)
}
