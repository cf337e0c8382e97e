package demo

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// options returns the options of a short run.
func options(t *testing.T) (Options, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	return Options{Program: cluster.Build(t), Environ: os.Environ(), TempDir: t.TempDir(), Log: log, NoNaive: true}, log
}

// runUntil runs the demo until the log contains all texts of told, and a node has won after that and has led for a moment.
func runUntil(t *testing.T, o Options, log *lockedBuffer, told ...string) Report {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var report Report
	var err error
	ended := make(chan struct{})
	go func() { defer close(ended); report, err = Run(ctx, o) }()
	for deadline := time.Now().Add(2 * time.Minute); !log.wonAfter(told...); {
		select {
		case <-ended:
			t.Fatalf("it ended by itself: %v\n%s", err, log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Errorf("nobody has won after %q", told)
			break
		}
	}
	time.Sleep(time.Second) // a second of traffic
	end()
	<-ended
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return report
}

// These texts in the log mean that a leader was attacked.
const (
	killed = "is gone: signal: killed"
	frozen = "is frozen"
)

// mustBeClean runs the demo, and fails the test unless the audit finds no damage.
func mustBeClean(t *testing.T, o Options, log *lockedBuffer, told ...string) Report {
	t.Helper()
	report := runUntil(t, o, log, told...)
	if !report.Clean() || report.Flushed != report.Written {
		t.Errorf("lost or duplicated: %+v\n%s", report, log)
	}
	if report.Written.Counters < 200 || report.Written.Hashes < 60 {
		t.Errorf("hardly anything was written: %+v", report.Written)
	}
	// A leader that cannot stop its work before its lease ends exits by itself, with this code.
	if late := strings.Count(log.String(), "is gone: exit status 4"); report.NodeExits > late {
		t.Errorf("nodes ended by themselves, %d times, %d of them too late\n%s", report.NodeExits, late, log)
	}
	return report
}

func TestNothingIsLostWhileLeadersDieAndFreeze(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	o.Chaos, o.Seed = ttl+500*time.Millisecond, 3 // with this seed chaos kills the first leader and freezes the next one
	began := time.Now()
	report := mustBeClean(t, o, log, killed, frozen)
	if report.Faults.Killed == 0 || report.Faults.Frozen == 0 {
		t.Errorf("want both kinds of faults: %+v", report.Faults)
	}
	done := report.Faults.Killed + report.Faults.Frozen
	if report.Terms < done || report.Failover.Count == 0 { // no term ends if a frozen node continues before its lease is over
		t.Errorf("%d leaders went down, and there were %d terms and %d failovers\n%s", done, report.Terms, report.Failover.Count, log)
	}
	if id := diedAndLedAgain(log.String()); id != "" {
		t.Errorf("%s was killed, and led again although others stood by\n%s", id, log)
	}
	// Only the speed of the machine delays the first election, so its duration scales the limit for failovers.
	first := log.when("won, term").Sub(began)
	if most := *report.Failover.Max; most > (ttl + 3*time.Second + 3*first).Seconds() {
		t.Errorf("a failover took %v s, and the first election with the start of all nodes %v", most, first)
	}
	if !strings.Contains(log.String(), "running: ") || !strings.Contains(log.String(), "won, term") {
		t.Errorf("the log tells neither progress nor events:\n%s", log)
	}
	if left, _ := os.ReadDir(o.TempDir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// diedAndLedAgain returns a node that died as the leader and later led again.
func diedAndLedAgain(log string) string {
	leader, dead := "", ""
	for line := range strings.Lines(log) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 1 && strings.Contains(line, ": won, term"):
			if leader = strings.TrimSuffix(fields[1], ":"); leader == dead {
				return dead
			}
			dead = ""
		case len(fields) > 1 && strings.Contains(line, killed) && fields[1] == leader:
			dead = leader
		}
	}
	return ""
}

func TestRealServersAreLeftAsTheyWereFound(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *testsupport.Database{
		"PostgreSQL": testsupport.Postgres, "MariaDB": testsupport.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			// The user's own tables and keys have the same names as those of the demo.
			db.Exec(t, "CREATE TABLE users (id integer)")
			db.Exec(t, "INSERT INTO users VALUES (7)")
			r := testsupport.StartRedis(t, testsupport.RedisPassword("se cret"))
			conn := r.Conn()
			if _, err := conn.Do("SET", "views:1", "mine"); err != nil {
				t.Fatal(err)
			}
			before := schemas(t, db)

			o, log := options(t)
			o.Redis, o.Database = "redis://:se%20cret@"+r.Addr()+"/0", db.DSN
			if name == "MariaDB" {
				o.Database = "mysql://" + strings.NewReplacer("tcp(", "", ")", "").Replace(db.DSN)
			}
			o.Chaos, o.Seed = time.Second, 3 // with this seed chaos kills the first leader
			mustBeClean(t, o, log, killed)

			if got := schemas(t, db); got != before {
				t.Errorf("the database has %s, before it had %s", got, before)
			}
			if rows := db.Rows(t, "SELECT id FROM users"); len(rows) != 1 || rows[0][0] != "7" {
				t.Errorf("the user's own table: %v", rows)
			}
			keys, err := redis.Strings(conn.Do("KEYS", "*"))
			if err != nil || len(keys) != 1 || keys[0] != "views:1" {
				t.Errorf("redis has %q, %v", keys, err)
			}
		})
	}
}

func schemas(t *testing.T, db *testsupport.Database) string {
	t.Helper()
	var all []string
	for _, row := range db.Rows(t, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema <> 'pg_catalog' ORDER BY 1, 2") {
		if strings.HasPrefix(row[0], "test_") && !strings.HasSuffix(db.DSN, "/"+row[0]) {
			continue // a key of another test, which comes and goes
		}
		all = append(all, strings.Join(row, "."))
	}
	return strings.Join(all, " ")
}

func TestEndOfTheContextEndsTheTrafficAndStillAudits(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	if report := runUntil(t, o, log); !report.Clean() || report.Written.Counters == 0 {
		t.Errorf("%+v\n%s", report, log)
	}
}

// If the program ends at once, it is no node. The demo then shows its log and does not remove it.
func TestNodesThatDoNotStartAreReportedWithTheirLog(t *testing.T) {
	t.Parallel()
	o, _ := options(t)
	o.Program = filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(o.Program, []byte("#!/bin/sh\necho no such luck >&2; exit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Fatalf("%v", err)
	}
	if logs, _ := filepath.Glob(filepath.Join(o.TempDir, "*", "*.log")); len(logs) == 0 {
		t.Error("the logs are gone")
	}
}

func TestUnusableOptionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Chaos = time.Millisecond }, "--chaos"},
		{func(o *Options) { o.Duration = -1 }, "--duration"},
		{func(o *Options) { o.Rate = 1 << 30 }, "--rate"},
		{func(o *Options) { o.Redis = "localhost:6379" }, "--redis"},
		{func(o *Options) { o.Redis = "redis://:secret@127.0.0.1:1" }, "connect to Redis redis://127.0.0.1:1"},
		{func(o *Options) { o.Database = "/tmp/my.db" }, "--database"},
		{func(o *Options) { o.Database = "postgres://me:secret@127.0.0.1:1/x" }, "connect to PostgreSQL"},
		{func(o *Options) { o.Database = "me:secret@tcp(127.0.0.1:1)/x" }, "connect to MySQL"},
		{func(o *Options) { o.Database = "mysql://me:secret@127.0.0.1:1/x" }, "connect to MySQL"},
		{func(o *Options) { o.Database = "postgres://me:secret@127.0.0.1:port/x" }, "--database: the DSN cannot be read"},
	} {
		o := Options{Program: "/bin/false", TempDir: t.TempDir(), Log: &lockedBuffer{}}
		c.change(&o)
		_, err := Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", o, err, c.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("a password in %v", err)
		}
		if left, _ := os.ReadDir(o.TempDir); len(left) > 0 {
			t.Errorf("%q left %v", c.want, left)
		}
	}
}

// lockedBuffer collects the lines that many goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	came []arrival
}

// arrival is the length of a log at a time.
type arrival struct {
	at     time.Time
	length int
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.b.Write(p)
	l.came = append(l.came, arrival{time.Now(), l.b.Len()})
	return n, err
}

// wonAfter reports whether a node has won after the first occurrence of each of these texts.
func (l *lockedBuffer) wonAfter(texts ...string) bool {
	log, last := l.String(), 0
	for _, text := range texts {
		at := strings.Index(log, text)
		if at < 0 {
			return false
		}
		last = max(last, at)
	}
	return strings.Contains(log[last:], "won, term")
}

// when returns the time when a text appeared first, or the present time if it has not appeared.
func (l *lockedBuffer) when(text string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := strings.Index(l.b.String(), text)
	for _, a := range l.came {
		if at >= 0 && a.length > at {
			return a.at
		}
	}
	return time.Now()
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
