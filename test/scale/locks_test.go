package scale

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/child"
	"baton/internal/testsupport/cluster"
)

// scaled is a number of the environment, for longer measurements.
func scaled(t testing.TB, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// field is nodes that contend for many locks, and the Redis behind them.
type field struct {
	*cluster.Cluster
	t     testing.TB
	conn  redis.Conn
	locks []string
}

// ask asks the same of every lock.
func (f *field) ask(command string, key func(lock string) string, more ...any) []any {
	f.t.Helper()
	for _, lock := range f.locks {
		if err := f.conn.Send(command, append([]any{key(lock)}, more...)...); err != nil {
			f.t.Fatal(err)
		}
	}
	replies, err := redis.Values(f.conn.Do(""))
	if err != nil {
		f.t.Fatal(err)
	}
	return replies
}

// leaders is how many locks each node leads; "" those that nobody does.
func (f *field) leaders() map[string]int {
	f.t.Helper()
	owners := f.ask("GET", func(lock string) string { return lock })
	terms := f.ask("HGETALL", func(lock string) string { return "{" + lock + "}:term" })
	count := map[string]int{}
	for i := range f.locks {
		owner, err := redis.String(owners[i], nil)
		if err != nil && !errors.Is(err, redis.ErrNil) {
			f.t.Fatal(err)
		}
		term, err := redis.StringMap(terms[i], nil)
		if err != nil {
			f.t.Fatal(err)
		}
		if owner == "" || owner != term["owner"] {
			count[""]++
			continue
		}
		count[term["node_id"]]++
	}
	return count
}

// transitions are the events of all locks, by kind; balanced are those that spread the work.
func (f *field) transitions() (kinds map[string]int, balanced int) {
	f.t.Helper()
	kinds = map[string]int{}
	for _, reply := range f.ask("XRANGE", func(lock string) string { return "{" + lock + "}:events" }, "-", "+") {
		entries, err := redis.Values(reply, nil)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, entry := range entries {
			fields, err := redis.StringMap(entry.([]any)[1], nil)
			if err != nil {
				f.t.Fatal(err)
			}
			kinds[fields["event"]]++
			if fields["code"] == "balance" {
				balanced++
			}
		}
	}
	return kinds, balanced
}

// stat is a count of Redis' own.
func (f *field) stat(name string) int64 {
	f.t.Helper()
	info, err := redis.String(f.conn.Do("INFO", "stats"))
	if err != nil {
		f.t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n
		}
	}
	return 0
}

// occupy keeps every processor busy until the test ends.
func occupy(t testing.TB) {
	t.Helper()
	for range runtime.NumCPU() {
		p, err := child.Start(exec.Command("/bin/sh", "-c", "while :; do :; done"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Kill() })
	}
}

// Many locks settle on nodes whose processors all are busy, and then stay where they are.
// SCALE_LOCKS is how many, SCALE_SECONDS for how long, SCALE_PROGRAM another build:
// go test -bench ManyLocks -benchtime 1x ./test/scale
func BenchmarkManyLocksOnBusyNodes(t *testing.B) {
	locks, seconds := scaled(t, "SCALE_LOCKS", 300), scaled(t, "SCALE_SECONDS", 60)
	settles := 3 * time.Minute
	server := testsupport.StartRedis(t)
	f := &field{t: t, conn: server.Conn(), locks: []string{"baton"}}
	var jobs strings.Builder
	for i := range locks {
		lock := fmt.Sprintf("lock-%d", i)
		f.locks = append(f.locks, lock)
		fmt.Fprintf(&jobs, "- {name: job-%d, lock: %s, schedule: \"@yearly\", command: [\"true\"]}\n", i, lock)
	}
	occupy(t)
	began := time.Now()
	f.Cluster = cluster.Start(t, cluster.Options{TTL: 10 * time.Second, LockKey: "baton", RedisURL: server.URL(), JobsYAML: jobs.String(), Program: os.Getenv("SCALE_PROGRAM")})

	// Settled: the nodes lead about as many, and have for a while.
	const quiet = 20 * time.Second
	var kinds map[string]int
	for since := time.Now(); time.Since(since) < quiet; time.Sleep(time.Second) {
		leaders := f.leaders()
		least, most := locks, 0
		for _, n := range f.Nodes {
			least, most = min(least, leaders[n.ID]), max(most, leaders[n.ID])
		}
		now, _ := f.transitions()
		if leaders[""] > 0 || most-least > 1 || !maps.Equal(now, kinds) {
			since, kinds = time.Now(), now
		}
		if time.Since(began) > settles {
			t.Errorf("after %v the locks are led %v, and what happened is %v", settles, leaders, now)
			break
		}
	}
	_, balanced := f.transitions()
	t.Logf("%d locks on %d nodes: settled after %v; what happened: %v, of it %d to spread the work", locks+1, len(f.Nodes),
		(time.Since(began) - quiet).Round(time.Second), kinds, balanced)

	commands, dialled, asked := f.stat("total_commands_processed"), f.stat("total_connections_received"), time.Now()
	time.Sleep(time.Duration(seconds) * time.Second)
	commands, dialled = f.stat("total_commands_processed")-commands, f.stat("total_connections_received")-dialled
	took := time.Since(asked).Seconds()
	now, _ := f.transitions()
	if !maps.Equal(now, kinds) {
		t.Errorf("locks moved although nobody had ordered it: %v after %v", now, kinds)
	}
	clients, err := redis.String(f.conn.Do("CLIENT", "LIST"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, n := range f.Nodes {
		log := n.Log()
		lines = append(lines, fmt.Sprintf("%s: %d lines of log, of them %d of redis; %d MB in RAM", n.ID, strings.Count(log, "\n"), len(n.Lines("redis unavailable, retrying")), n.Resident()>>20))
		if told := strings.Count(log, "\n"); told > 6*locks+200 {
			t.Errorf("%s has told %d lines", n.ID, told)
		}
	}
	slices.Sort(lines)
	t.Logf("%.0f commands and %.1f new connections a second, %d connections; %s", float64(commands)/took, float64(dialled)/took, strings.Count(clients, "\n")-1, strings.Join(lines, "; "))
}
