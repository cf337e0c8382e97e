package crash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon"
	"baton/internal/daemon/tasks"
	"baton/internal/testsupport/child"
)

// daemonEnv is the variable with the path of a daemon's configuration.
const daemonEnv = "BATON_TEST_DAEMON"

// runDaemon runs a whole node like `baton run`, without the command line.
func runDaemon(path string) (code int) {
	c, err := config.Read(config.Input{Path: path, Env: os.LookupEnv, Flags: none, Checks: tasks.Checks()})
	if err == nil {
		err = registerStop(path)
	}
	if err == nil {
		var log *zap.Logger
		if log, err = zap.NewProduction(); err == nil {
			err = daemon.Run(context.Background(), c, daemon.Options{Version: "test", Logger: log, Getenv: none, Exit: os.Exit})
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func none(string) (string, bool) { return "", false }

// A leader of two real nodes that is frozen in the middle of a flush, for longer
// than its lease, wakes up deposed: it steps down, or ends as one that cannot stop
// in time must, and what it wrote too late does not stay.
func TestLeaderFrozenPastItsLeaseStepsDownWhenItWakes(t *testing.T) {
	var cells waiting // waits for leases that run out
	for _, d := range databases() {
		cells.run(t, d.name, func(t *testing.T) {
			p := newPair(t, newLab(t, d))
			tables := []string{"people", "counts"}
			if everything() {
				tables = append(tables, captured)
			}
			for round, table := range tables {
				p.round(round, table)
			}
			p.drained()
			p.check()
		})
	}
	cells.wait()
}

// pair contains two nodes, and the data that was written for them to flush.
type pair struct {
	*lab
	t     *testing.T
	conn  redis.Conn // to the data
	lock  redis.Conn
	nodes map[string]*daemonProcess
	dir   string
	lease time.Duration
	names map[string]string
	sums  map[string]int
}

const (
	peopleRows = 11_000 // 3 pages
	countRows  = 11_000 // 3 parts
	// captured is the table with the rows of people again, written by a capture. If there is a store other than the store of the lock,
	// the capture reads that store. The capture adopts the row that makeStops has inserted, because otherwise each pass that ends early
	// would leave rows that wait for an acceptance.
	captured = "captured"
)

func newPair(t *testing.T, l *lab) *pair {
	t.Helper()
	p := &pair{lab: l, t: t, conn: l.data.Conn(), lock: l.redis.Conn(), dir: t.TempDir(),
		lease: 10 * time.Second, nodes: map[string]*daemonProcess{},
		names: map[string]string{}, sums: map[string]int{}}
	l.db.Exec(t, fmt.Sprintf(peopleSQL, captured)+l.engine())
	p.makeStops()
	for _, id := range []string{"one", "two"} {
		p.start(id)
	}
	return p
}

const daemonConfig = `
node: {id: %[1]s}
redis: {url: %[2]s}
stores: {data: {url: %[3]s}}
election: {lock_key: lock, ttl: %[4]s}
http: {listen: "off"}
databases: {main: {driver: %[5]s, dsn: %[6]q}}
jobs:
  - name: people
    schedule: "@every 1s"
    flush:
      from: {%[7]stype: hashes, key: "row:<id>", changed: "pending:people"}
      to: {database: main, table: people, key: [id]}
  - name: counts
    schedule: "@every 1s"
    flush:
      from: {%[7]stype: counters, key: "pending:counts"}
      to: {database: main, table: counts, key: [id]}
      columns: {id: $field, n: {from: $value, op: add}}
  - name: captured
    schedule: "@always"
    flush:
      from: {%[7]stype: capture, key: "row:<id>"}
      to: {database: main, table: captured, key: [id], adopt: delete}
`

func (p *pair) start(id string) {
	p.t.Helper()
	path := filepath.Join(p.dir, id+".yaml")
	store := ""
	if p.data != p.redis {
		store = "store: data, "
	}
	text := fmt.Sprintf(daemonConfig, id, p.redis.URL(), p.data.URL(), p.lease, p.db.Driver, p.db.DSN, store)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	d, err := startDaemon(path, filepath.Join(p.dir, id+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = d.Kill() }) // it may have ended
	p.nodes[id] = d
}

// round freezes the leader during a flush of table, and wakes the leader when its successor works.
func (p *pair) round(round int, table string) {
	p.t.Helper()
	p.drained()
	old := p.freezeInside(round, table)
	frozen := p.nodes[old]
	p.await("a successor", func() bool { return p.leader() != old })
	if p.hasServer() {
		p.drained() // the successor flushes; the frozen leader may hold the lock of a database file
	}
	p.write(fmt.Sprintf("round %d, after the freeze", round), 3)
	woken := frozen.logSize()
	frozen.signal(syscall.SIGCONT)
	p.await("the deposed leader to step down", func() bool {
		return frozen.Exited() || strings.Contains(frozen.logSince(woken), "no longer leading")
	})
	p.t.Logf("%s frozen in %s: %s", old, table, summary(frozen.logSince(woken)))
}

// write changes every nth row.
func (p *pair) write(name string, nth int) {
	p.t.Helper()
	send := func(command string, args ...any) {
		if err := p.conn.Send(command, args...); err != nil {
			p.t.Fatal(err)
		}
	}
	for i := 0; i < peopleRows; i += nth {
		id := fmt.Sprint(i)
		send("HSET", "row:"+id, "name", name, "age", i)
		send("SADD", "pending:people", id)
		p.names[id] = name
	}
	for i := 0; i < countRows; i += nth {
		id := fmt.Sprint(i)
		send("HINCRBY", "pending:counts", id, i+1)
		p.sums[id] += i + 1
	}
	if _, err := p.conn.Do(""); err != nil {
		p.t.Fatal(err)
	}
}

// total returns the sum of all counts.
func (p *pair) total() int {
	total := 0
	for _, n := range p.sums {
		total += n
	}
	return total
}

func (p *pair) rows(table string) map[string]string {
	p.t.Helper()
	query := "SELECT id, n FROM counts"
	if table != "counts" {
		query = "SELECT id, name FROM " + table
	}
	rows := map[string]string{}
	for _, row := range p.db.Rows(p.t, query) {
		rows[row[0]] = row[1]
	}
	return rows
}

// leader returns the node that holds the lock, or "".
func (p *pair) leader() string {
	p.t.Helper()
	held, err := redis.Bool(p.lock.Do("EXISTS", "lock"))
	if err != nil {
		p.t.Fatal(err)
	}
	node, err := redis.String(p.lock.Do("HGET", "{lock}:term", "node_id"))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		p.t.Fatal(err)
	}
	if !held {
		return ""
	}
	return node
}

func (p *pair) drained() {
	p.t.Helper()
	p.await("everything to be flushed", func() bool { return len(pending(p.t, p.conn)) == 0 })
}

func (p *pair) check() {
	p.t.Helper()
	if text := diff(p.names, p.rows("people")); text != "" {
		p.t.Errorf("table people is not exact (-want +got):\n%s", text)
	}
	p.awaitEvery(200*time.Millisecond, "the capture to have followed", func() bool { return diff(p.names, p.rows(captured)) == "" })
	want := map[string]string{}
	for id, n := range p.sums {
		want[id] = fmt.Sprint(n)
	}
	if text := diff(want, p.rows("counts")); text != "" {
		p.t.Errorf("table counts is not exact (-want +got):\n%s", text)
	}
}

func (p *pair) await(what string, ok func() bool) {
	p.t.Helper()
	p.awaitEvery(20*time.Millisecond, what, ok)
}

func (p *pair) awaitEvery(pause time.Duration, what string, ok func() bool) {
	p.t.Helper()
	const patience = 3 * time.Minute // the rest of the matrix runs at the same time
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(pause) {
		p.restart()
		if time.Now().After(deadline) {
			for _, n := range p.nodes {
				n.signal(syscall.SIGQUIT) // the process prints the stack of each goroutine, even if it was frozen
				n.signal(syscall.SIGCONT)
			}
			for id, n := range p.nodes {
				_ = n.Wait(10 * time.Second)
				p.t.Logf("log of node %s:\n%s", id, n.logSince(0))
			}
			p.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// restart restarts the nodes that have ended because they could not stop in time: the frozen node, or on a busy machine another node. A
// node must not end for any other reason.
func (p *pair) restart() {
	p.t.Helper()
	for id, n := range p.nodes {
		if !n.Exited() {
			continue
		}
		if code := n.Code(); code != daemon.ExitCannotStop {
			p.t.Fatalf("node %s ended with code %d:\n%s", id, code, n.logSince(0))
		}
		p.start(id)
	}
}

// summary returns the line of a log about the end of the term.
func summary(log string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "no longer leading") {
			return strings.TrimSpace(line)
		}
	}
	return "ended by itself"
}

// daemonProcess is a node in its own process, which dies with the process of the test.
type daemonProcess struct {
	*child.Process
	log string
}

func startDaemon(config, log string) (*daemonProcess, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), daemonEnv+"="+config, "GORACE=atexit_sleep_ms=0")
	p, err := child.StartLogged(cmd, log)
	return &daemonProcess{p, log}, err
}

func (d *daemonProcess) signal(s syscall.Signal) { _ = d.Signal(s) } // it may have ended

func (d *daemonProcess) logSize() int { return len(d.logSince(0)) }

func (d *daemonProcess) logSince(size int) string {
	text, _ := os.ReadFile(d.log)
	return string(text[min(size, len(text)):])
}
