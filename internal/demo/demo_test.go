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

// options are a short run's.
func options(t *testing.T) (Options, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	return Options{Program: cluster.Build(t), Environ: os.Environ(), TempDir: t.TempDir(), Log: log}, log
}

// mustBeClean runs the demo and fails unless the audit finds everything in place.
func mustBeClean(t *testing.T, o Options, log *lockedBuffer) Report {
	t.Helper()
	report, err := Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if !report.Clean() || report.Flushed != report.Written {
		t.Errorf("lost or duplicated: %+v\n%s", report, log)
	}
	if report.Written.Counters < 1000 || report.Written.Hashes < 300 {
		t.Errorf("hardly anything was written: %+v", report.Written)
	}
	if report.NodeExits > 0 {
		t.Errorf("nodes ended by themselves, %d times\n%s", report.NodeExits, log)
	}
	return report
}

func TestNothingIsLostWhileLeadersDieAndFreeze(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	o.Duration, o.Chaos, o.Seed = 13*time.Second, 3*time.Second, 3 // this seed kills and freezes
	report := mustBeClean(t, o, log)
	if report.Faults.Killed == 0 || report.Faults.Frozen == 0 {
		t.Errorf("want both kinds of faults: %+v", report.Faults)
	}
	done := report.Faults.Killed + report.Faults.Frozen
	if report.Terms < done || report.FailoverMS.Count < done-1 {
		t.Errorf("%d leaders went down, and there were %d terms and %d failovers\n%s", done, report.Terms, report.FailoverMS.Count, log)
	}
	if most := *report.FailoverMS.Max; most > (ttl + 3*time.Second).Milliseconds() {
		t.Errorf("a failover took %d ms", most)
	}
	if !strings.Contains(log.String(), "running: node-") || !strings.Contains(log.String(), "won, epoch") {
		t.Errorf("the log tells neither progress nor events:\n%s", log)
	}
	if left, _ := os.ReadDir(o.TempDir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRealServersAreLeftAsTheyWereFound(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *testsupport.Database{
		"PostgreSQL": testsupport.Postgres, "MariaDB": testsupport.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			// The user's own things have the demo's names.
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
			o.Duration, o.Chaos = 6*time.Second, 2500*time.Millisecond
			mustBeClean(t, o, log)

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
			continue // another test's, which comes and goes
		}
		all = append(all, strings.Join(row, "."))
	}
	return strings.Join(all, " ")
}

func TestEndOfTheContextEndsTheTrafficAndStillAudits(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(4*time.Second, cancel)
	report, err := Run(ctx, o)
	if err != nil || !report.Clean() || report.Written.Counters == 0 {
		t.Errorf("%+v, %v\n%s", report, err, log)
	}
}

// A program that ends at once is no node: its log is shown, and kept.
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

// lockedBuffer takes the lines of many goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
