package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// beside returns another job of the same process.
func (j *captureJob) beside(name string) *captureJob {
	j.t.Helper()
	j.live()
	other := &captureJob{t: j.t, table: newScanTable("id", "v"), name: name, columns: j.columns}
	other.open = func(func(string) error) *redisconn.Store { return j.store }
	return other
}

// connections counts the connections of followers.
func connections(c testsupport.Client) int {
	return strings.Count(c.Str("CLIENT", "LIST", "TYPE", "replica"), "id=")
}

func TestAllCapturesOfAStoreShareOneConnection(t *testing.T) {
	g := newRig(t)
	first := newCaptureJob(t, g.redis)
	g.Do("SET", "s:1", "a")
	first.mustEqual(g.Client)
	second, third := first.beside("second"), first.beside("third")
	for _, j := range []*captureJob{second, third} {
		j.must(g.Client)
		if notes := j.told(); !strings.Contains(notes, "the job is new") {
			t.Errorf("notes: %q", notes)
		}
	}
	first.told()
	for i := range 20 {
		g.Do("SET", fmt.Sprintf("s:%d", i), i)
		g.Do("DEL", fmt.Sprintf("s:%d", i-3))
	}
	for _, j := range []*captureJob{first, second, third} {
		j.mustEqual(g.Client)
		if notes := j.told(); notes != "" {
			t.Errorf("notes: %q", notes)
		}
	}
	if n := connections(g.Client); n != 1 {
		t.Errorf("%d connections follow", n)
	}
	for i, j := range []*captureJob{second, first, third} {
		if err := j.pipeline.Release(); err != nil {
			t.Fatal(err)
		}
		if i < 2 && connections(g.Client) != 1 {
			t.Error("the others are not followed any more")
		}
	}
	for limit := time.Now().Add(time.Minute); connections(g.Client) > 0; time.Sleep(time.Millisecond) { // no event shows the moment
		if time.Now().After(limit) {
			t.Fatal("the stream is followed without a job")
		}
	}
}

// The last job that follows the streams ends them, maybe while another job begins.
func TestAJobThatEndsInterruptsNoOtherThatBegins(t *testing.T) {
	g := newRig(t)
	ends := newCaptureJob(t, g.redis)
	begins := ends.beside("second")
	g.Do("SET", "s:1", "a")
	ends.mustEqual(g.Client)
	begins.mustEqual(g.Client)
	if err := begins.pipeline.Release(); err != nil {
		t.Fatal(err)
	}
	ends.told()
	begins.told()
	for i := range 200 {
		released := make(chan error, 1)
		go func() { released <- ends.pipeline.Release() }()
		if err := errors.Join(begins.run(t.Context()), <-released); err != nil {
			t.Fatalf("the job that began for the %dth time: %v", i, err)
		}
		if notes := begins.told(); strings.Contains(notes, "all keys") {
			t.Fatalf("the job that began for the %dth time: %s", i, notes)
		}
		ends, begins = begins, ends
	}
}

// A job whose position is further back receives all changes after it, even if the other jobs are far ahead.
func TestAJobThatBeginsLaterJoinsAtItsOwnPlace(t *testing.T) {
	g := newRig(t)
	first := newCaptureJob(t, g.redis)
	second := first.beside("second")
	for i := range 10 {
		g.Do("SET", fmt.Sprintf("s:%d", i), "old")
	}
	first.mustEqual(g.Client)
	second.mustEqual(g.Client)
	first.die()
	second.store = nil
	g.Do("SET", "s:1", "while nobody followed")
	g.Do("DEL", "s:2")
	first.must(g.Client)
	g.Do("SET", "s:3", "while the first one did")
	first.mustEqual(g.Client)
	first.told()
	second.told()
	second.mustEqual(g.Client)
	if notes := second.told(); !strings.Contains(notes, "+CONTINUE") || strings.Contains(notes, "all keys") {
		t.Errorf("notes: %q", notes)
	}
	g.Do("SET", "s:4", "after")
	first.mustEqual(g.Client)
	if notes := first.told(); notes != "" {
		t.Errorf("notes of the first one: %q", notes)
	}
}

// A job that stands still must not delay other jobs, no matter how much it has not written.
func TestAJobThatStandsStillHoldsUpNoOther(t *testing.T) {
	g := newRig(t)
	first := newCaptureJob(t, g.redis)
	first.options.Rows = 1000
	still := first.beside("still")
	still.options.Rows = 1000
	first.mustEqual(g.Client)
	still.mustEqual(g.Client)
	long := strings.Repeat("k", 20_000)
	for round := range 4 {
		for i := range 600 {
			g.Send("SET", fmt.Sprintf("s:%s%d-%d", long, round, i), "x")
		}
		g.Do("")
		first.must(g.Client)
	}
	first.told()
	g.Do("SET", "s:1", "a")
	first.mustEqual(g.Client)
	if notes := first.told(); notes != "" {
		t.Errorf("notes: %q", notes)
	}
	still.must(g.Client)
	if notes := still.told(); !strings.Contains(notes, "memory") {
		t.Errorf("notes of the one that stood still: %q", notes)
	}
	still.mustEqual(g.Client)
}

// If another job makes the stream begin further back, a command that emptied the database before this job's position must not count again.
func TestAnotherJobsPastEmptiesNothing(t *testing.T) {
	g := newRig(t)
	first := newCaptureJob(t, g.redis)
	first.options.OnFlush = "delete"
	second := first.beside("second")
	g.Do("SET", "s:1", "a")
	first.mustEqual(g.Client)
	second.mustEqual(g.Client)
	first.die()
	second.store = nil
	g.Do("FLUSHALL")
	g.Do("SET", "s:2", "b")
	first.mustEqual(g.Client)
	first.options.OnFlush = "stop"
	first.die()
	first.must(g.Client)
	if err := second.until(func() bool { return false }); !errors.Is(err, flush.ErrEmptied) {
		t.Errorf("the second job's run ended with %v", err)
	}
	first.told()
	g.Do("SET", "s:3", "c")
	first.mustEqual(g.Client)
	if notes := first.told(); notes != "" {
		t.Errorf("notes: %q", notes)
	}
}

// A key that changed right before FLUSHALL is missing. Its row stays until an operator decides.
func TestKeysThatChangedBeforeTheDatabaseWasEmptiedStay(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	for i := range 20 {
		g.Do("SET", fmt.Sprintf("s:%d", i), "a")
	}
	j.mustEqual(g.Client)
	other := g.redis.Client(t)
	for i := range 20 {
		g.Send("SET", fmt.Sprintf("s:%d", i), "b")
	}
	g.Do("")
	emptied := false
	j.watch(at("staged", func() {
		if !emptied {
			emptied = true
			other.Do("FLUSHALL")
		}
	}))
	err := j.until(func() bool { return false })
	if !errors.Is(err, flush.ErrEmptied) {
		t.Errorf("the run ended with %v", err)
	}
	if n := j.table.Count("rows"); n < 20 || !emptied {
		t.Errorf("%d rows are left", n)
	}
}

// If the store is closed during a run, the run must fail: nothing follows the stream any longer.
func TestACaptureOfAClosedStoreFails(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	g.Do("SET", "s:1", "a")
	j.mustEqual(g.Client)
	if err := j.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.run(t.Context()); err == nil || !strings.Contains(err.Error(), "its store was closed") {
		t.Errorf("the run ended with %v", err)
	}
	for i := 0; strings.Contains(g.Str("INFO", "replication"), "slave0:"); i++ { // until Redis has noticed
		if i == 6000 {
			t.Fatal("the stream is followed")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
