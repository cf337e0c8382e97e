package demo

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// command returns the command `baton demo` with its own TMPDIR. It runs as a separate process.
func command(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, stdout *bytes.Buffer, stderr *lockedBuffer) {
	t.Helper()
	stdout, stderr = &bytes.Buffer{}, &lockedBuffer{}
	cmd = exec.Command(cluster.Build(t), append([]string{"demo"}, args...)...)
	// Variables that configure the user's own nodes must not reach the demo's nodes.
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "BATON_LOCK_KEY=mine", "BATON_REDIS=redis://127.0.0.1:1")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, stdout, stderr
}

func TestCommandPrintsOneObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, stdout, stderr := command(t, dir, "--duration", "7s", "--chaos", "2500ms", "-o", "json")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	var got struct {
		Written          *struct{ Counters, Hashes int64 }
		Lost, Duplicated *int64
		Terms            int
		Failover         struct{ P50, Max float64 } `json:"failover_seconds"`
	}
	dec := json.NewDecoder(stdout)
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Written == nil || got.Written.Counters == 0 || got.Written.Hashes == 0 || got.Lost == nil || *got.Lost != 0 ||
		got.Duplicated == nil || *got.Duplicated != 0 || got.Terms < 2 || got.Failover.P50 <= 0 || got.Failover.Max < got.Failover.P50 {
		t.Errorf("%+v", got)
	}
	if dec.More() {
		t.Error("there is more than the object on standard output")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestInterruptEndsTheCommandInOrder(t *testing.T) {
	t.Parallel()
	cmd, stdout, stderr := command(t, t.TempDir())
	awaitText(t, stderr, "won, term")
	time.Sleep(time.Second)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(stdout.String(), "nothing lost, nothing twice") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
}

// If a terminal closes, the demo ends in the same way as after Ctrl-C, so that it leaves nothing on a server.
func TestHangupLeavesNothingOnTheServer(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t)
	cmd, stdout, stderr := command(t, t.TempDir(), "--redis", redis.URL())
	awaitText(t, stderr, "won, term")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(stdout.String(), "nothing lost, nothing twice") {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	if left, err := redis.Conn().Do("DBSIZE"); err != nil || left != int64(0) {
		t.Errorf("%v keys stay in Redis, %v", left, err)
	}
}

// If Ctrl-C comes before the first write, the demo says so instead of reporting the error that Ctrl-C has caused.
func TestInterruptDuringTheStartIsNoFailureOfIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, redis := range []string{"", testsupport.StartRedis(t).URL()} {
		o, _ := options(t)
		o.Redis = redis
		if _, err := Run(ctx, o); !errors.Is(err, errStopped) {
			t.Errorf("Redis %q: %v", redis, err)
		}
		if left, _ := os.ReadDir(o.TempDir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// However the demo ends, its nodes end as well, and the next run removes the files.
func TestNodesDieWithTheDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, _, stderr := command(t, dir)
	awaitText(t, stderr, "won, term")
	pids := nodePids(stderr.String())
	if len(pids) != nodeCount {
		t.Fatalf("nodes %v\n%s", pids, stderr)
	}
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil { // a frozen node must also end
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	deadline := time.Now().Add(time.Minute)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Fatalf("node %d lives on", pid)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, dirPrefix+"*")); len(left) != 1 {
		t.Fatalf("%v", left)
	}
	next, err := newWorkDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newWorkDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, dirPrefix+"*")); len(left) != 2 {
		t.Errorf("want the two new ones only: %v", left)
	}
	next.keep()
	other.remove()
	sweep(dir)
	if left, _ := filepath.Glob(filepath.Join(dir, dirPrefix+"*")); len(left) != 1 || left[0] != next.path {
		t.Errorf("want the one that is kept: %v", left)
	}
}

func nodePids(log string) (pids []int) {
	for line := range strings.Lines(log) {
		if _, text, ok := strings.Cut(line, "started, pid "); ok {
			text, page, _ := strings.Cut(strings.TrimSpace(text), ": ")
			pid, _ := strconv.Atoi(text)
			if !strings.HasPrefix(page, "http://127.0.0.1:") {
				pid = 0 // the log line about a node also contains its address
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive reports whether a process runs. It returns false for a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && !bytes.Contains(stat, []byte(") Z "))
}

func awaitText(t *testing.T, b *lockedBuffer, text string) {
	t.Helper()
	testsupport.Await(t, text, func() bool { return strings.Contains(b.String(), text) }, b)
}

// If the user may not create a schema or a database, the demo uses an empty database, and never a database that contains tables.
func TestUserWithoutRightsNeedsAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *testsupport.Database{
		"PostgreSQL": testsupport.Postgres, "MariaDB": testsupport.MariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			dsn, list, drop := limitedUser(t, db)
			defer drop()
			d, err := openDatabase(t.Context(), dsn, "", "baton_demo_test")
			if err != nil {
				t.Fatal(err)
			}
			mustExec(t, d, "CREATE TABLE baton_fence (job varchar(9))")
			mustExec(t, d, "CREATE TABLE mine (id integer)") // created after the check
			if err := d.close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if rows := db.Rows(t, list); len(rows) != 1 || rows[0][0] != "mine" {
				t.Errorf("left: %v", rows)
			}
			if d, err := openDatabase(t.Context(), dsn, "", "baton_demo_test"); err == nil || !strings.Contains(err.Error(), "grant CREATE") {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
}

// limitedUser creates a user who has all rights, but only in this database.
func limitedUser(t *testing.T, db *testsupport.Database) (dsn, listTables string, drop func()) {
	t.Helper()
	if db.Driver == "postgres" {
		db.Exec(t, "CREATE ROLE limited LOGIN")
		db.Exec(t, "GRANT ALL ON SCHEMA public TO limited")
		_, at, _ := strings.Cut(db.DSN, "@")
		dsn = "postgres://limited@" + at
		drop = func() {
			own, err := sql.Open("pgx", dsn)
			if err == nil {
				_, err = own.ExecContext(t.Context(), "DROP TABLE mine")
				err = errors.Join(err, own.Close())
			}
			if err != nil {
				t.Error(err)
			}
			db.Exec(t, "REVOKE ALL ON SCHEMA public FROM limited")
			db.Exec(t, "DROP ROLE limited")
		}
		return dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'", drop
	}
	_, at, _ := strings.Cut(db.DSN, "@")
	name, _, _ := strings.Cut(at[strings.LastIndex(at, "/")+1:], "?")
	db.Exec(t, "CREATE USER limited IDENTIFIED BY 'pw'")
	db.Exec(t, "GRANT ALL ON "+name+".* TO limited")
	drop = func() { db.Exec(t, "DROP USER limited") }
	return "limited:pw@" + at, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()", drop
}
