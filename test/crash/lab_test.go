package crash_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// lab contains one kind of database, a Redis for locks, and a Redis for data, which may be the same Redis.
type lab struct {
	name  string // the name of the kind of database
	db    *testsupport.Database
	redis *testsupport.Redis
	data  *testsupport.Redis
	cells atomic.Int64
	// stores contains the stores of the test's own process, for users whose steps in the database are not observed.
	stores *stores

	test *testing.T
	mu   sync.Mutex
	free map[time.Duration][]*observed // by their lease
}

// observed contains stores whose steps in the database are reported to one cell after the other.
type observed struct {
	*stores
	now atomic.Pointer[tally]
}

// observed lends stores with a given lease to a cell. The steps of the stores are reported to at.
func (c *cell) observed(lease time.Duration, at *tally) *stores {
	c.t.Helper()
	o := c.lab.observed(lease)
	o.now.Store(at)
	c.t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.free[lease] = append(c.free[lease], o)
	})
	return o.stores
}

func (l *lab) observed(lease time.Duration) *observed {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.free[lease]) - 1; last >= 0 {
		o := l.free[lease][last]
		l.free[lease] = l.free[lease][:last]
		return o
	}
	o, s := &observed{}, l.spec("observed")
	s.TTL = lease
	o.stores = l.open(l.test, s, func(b boundary) error { return o.now.Load().observe(b) })
	return o
}

// everywhere runs a test with every kind of database, in parallel with other tests.
func everywhere(t *testing.T, test func(t *testing.T, l *lab)) {
	t.Helper()
	t.Parallel()
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, newLab(t, d))
		})
	}
}

type database struct {
	name string
	make func(testing.TB) *testsupport.Database
}

func databases() []database {
	return []database{
		{inPostgres, testsupport.Postgres}, {inPool, testsupport.Pooled}, {inMariaDB, testsupport.MariaDB}, {inSQLite, testsupport.SQLite},
	}
}

// These are the kinds of databases.
const (
	inPostgres = "postgres"
	inPool     = "pgbouncer" // a PostgreSQL behind a PgBouncer in transaction mode
	inMariaDB  = "mariadb"
	inSQLite   = "sqlite"
)

func newLab(t *testing.T, d database) *lab {
	t.Helper()
	db := d.make(t)
	l := &lab{name: d.name, db: db, redis: testsupport.StartRedis(t), test: t, free: map[time.Duration][]*observed{}}
	if l.data = l.redis; db.Driver == "mysql" { // with one kind of database the data is in a separate store
		l.data = testsupport.StartRedis(t)
	}
	engine := l.engine()
	db.Exec(t, "CREATE TABLE counts (id bigint PRIMARY KEY, n bigint NOT NULL)"+engine)
	db.Exec(t, fmt.Sprintf(peopleSQL, "people")+engine)
	// The table has no key, so a row that is written twice is in the table twice.
	db.Exec(t, "CREATE TABLE events (id bigint NOT NULL, name varchar(40) NOT NULL, age integer CHECK (age >= 0))"+engine)
	l.stores = l.open(t, l.spec("test"), ignore)
	l.beginBacklog()
	return l
}

// beginBacklog makes the server keep a backlog of its stream, as the first replica does. The server then gives its history another name,
// which a leader confirms at its next renewal. The leaders of a cell make no renewal.
func (l *lab) beginBacklog() {
	l.test.Helper()
	replica, c := l.data.Conn(), l.data.Client(l.test)
	if err := errors.Join(replica.Send("PSYNC", "?", "-1"), replica.Flush()); err != nil {
		l.test.Fatal(err)
	}
	testsupport.Await(l.test, "a backlog", func() bool { return strings.Contains(c.Str("INFO", "replication"), "repl_backlog_active:1") })
	_ = replica.Close()
}

const peopleSQL = "CREATE TABLE %s (id bigint PRIMARY KEY, name varchar(40) NOT NULL, age integer CHECK (age >= 0), pass bigint)"

const boardsSQL = "CREATE TABLE %s (board bigint, id bigint, age integer CHECK (age >= 0), PRIMARY KEY (board, id))"

func (l *lab) engine() string { return map[string]string{"mysql": " ENGINE=InnoDB"}[l.db.Driver] }

// spec returns the settings that all cells have in common.
func (l *lab) spec(nodeID string) spec {
	return spec{Driver: l.db.Driver, DSN: l.db.DSN, RedisURL: l.data.URL(), LockURL: l.redis.URL(), TTL: ttl, NodeID: nodeID}
}

// open opens stores that are closed at the test's end.
func (l *lab) open(t *testing.T, s spec, observe func(boundary) error) *stores {
	t.Helper()
	st, err := openStores(s, observe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func ignore(boundary) error { return nil }

// hasServer reports whether the database has a server, so that a connection can break.
func (l *lab) hasServer() bool { return l.name != inSQLite }

// nothingLeft asserts that no stage, id or mark of any cell has stayed in Redis.
func (l *lab) nothingLeft(t *testing.T) {
	t.Helper()
	if keys := pending(t, l.data.Conn()); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// pending lists the existing live keys, and the keys that a source stores beside them. Those keys are in the slot of the live key, so
// they contain its name.
func pending(t *testing.T, conn redis.Conn) []string {
	t.Helper()
	keys, err := redis.Strings(conn.Do("KEYS", "*"+livePrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

const livePrefix = "pending:"

// cell is one experiment: a job with its own rows and keys.
type cell struct {
	*lab
	t    *testing.T
	name string // the fault of the cell, if the name of the test does not say it
	kind kind
	n    int64
	conn redis.Conn
	want map[string]string // id → the content that the row must have at the end
	sums map[int64]int64
	dead int

	events      int64 // the number of written events
	rounds      int64 // the number of rounds of moreHashes
	removeEvery time.Duration
}

func (l *lab) cell(t *testing.T, k kind) *cell {
	t.Helper()
	conn := l.data.Conn()
	t.Cleanup(func() { _ = conn.Close() }) // otherwise Redis would keep the connection for the whole test
	return &cell{lab: l, t: t, kind: k, n: l.cells.Add(1), conn: conn, want: map[string]string{}, sums: map[int64]int64{}}
}

func (c *cell) id(i int64) int64 { return c.n*1000 + i }

func (c *cell) spec(nodeID string) spec {
	s := c.lab.spec(nodeID)
	s.LockKey, s.Job, s.Source = c.lockKey(), fmt.Sprintf("job-%d", c.n), c.kind
	s.Live, s.Kept, s.Rows = livePrefix+fmt.Sprint(c.n), fmt.Sprint("kept:", c.n), fmt.Sprintf("row:%d:<id>", c.n)
	s.RemoveEvery = cmp.Or(c.removeEvery, 1) // immediately, so that every step is reached
	s.Table = c.kind.fixture().table
	if c.kind == scan || c.kind.follows() {
		s.Table = fmt.Sprintf("scan_%d", c.n)
	}
	return s
}

func (c *cell) lockKey() string { return fmt.Sprintf("{lock:%d}", c.n) }

// expire replaces the wait until a lease runs out.
func (c *cell) expire() {
	c.t.Helper()
	conn := c.redis.Conn()
	defer conn.Close()
	if _, err := conn.Do("DEL", c.lockKey()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cell) send(command string, args ...any) {
	c.t.Helper()
	if err := c.conn.Send(command, args...); err != nil {
		c.t.Fatal(err)
	}
}

// flushed waits until all sent commands are executed.
func (c *cell) flushed() {
	c.t.Helper()
	if _, err := c.conn.Do(""); err != nil {
		c.t.Fatal(err)
	}
}

// fill writes the data of the first run, in addition to existing rows.
func (c *cell) fill() {
	c.t.Helper()
	c.kind.fixture().fill(c)
	c.flushed()
}

func (c *cell) insert(into string, rows []string) {
	c.db.Exec(c.t, "INSERT INTO "+into+" VALUES "+strings.Join(rows, ","))
}

// traffic writes more data.
func (c *cell) traffic(round string) {
	c.t.Helper()
	c.kind.fixture().traffic(c, round)
	c.flushed()
}

// fresh makes a node, and lets the node flush until nothing is pending.
func (c *cell) fresh() {
	c.t.Helper()
	n := c.leader("fresh", c.stores, ignore)
	if err := n.flush(c.t.Context()); err != nil {
		c.t.Fatalf("a fresh node could not finish: %v", err)
	}
	c.release(n)
}

// leader makes a node that holds the lock.
func (c *cell) leader(nodeID string, st *stores, observe func(boundary) error) *node {
	c.t.Helper()
	n, err := newNode(c.spec(nodeID), st, observe)
	if err != nil {
		c.t.Fatal(err)
	}
	// The node's work between its runs ends with the cell. Otherwise this work would reach the steps of the next cell.
	c.t.Cleanup(func() {
		if err := n.pipeline.Release(); err != nil {
			c.t.Error(err)
		}
	})
	if err := n.lead(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *cell) release(n *node) {
	c.t.Helper()
	if err := n.release(c.t.Context()); err != nil {
		c.t.Error(err)
	}
}

// check fails the test if anything is lost or written twice.
func (c *cell) check() {
	c.t.Helper()
	for _, problem := range c.problems() {
		c.t.Errorf("%s: %s", c.name, problem)
	}
}

// problems returns the differences between the database and the written data.
func (c *cell) problems() (found []string) {
	c.t.Helper()
	table := c.spec("").Table
	query := map[string]string{
		"people": "SELECT id, name, age FROM " + table + " WHERE %s",
		"boards": "SELECT id, board, age FROM " + table + " WHERE %s",
		"counts": "SELECT id, n FROM counts WHERE %s",
		"events": "SELECT id, name, age, count(*) FROM events WHERE %s GROUP BY id, name, age",
	}[c.kind.fixture().table]
	for id, n := range c.sums {
		c.want[fmt.Sprint(id)] = fmt.Sprint(n)
	}
	got := map[string]string{}
	for _, row := range c.db.Rows(c.t, fmt.Sprintf(query, fmt.Sprintf("id >= %d AND id < %d", c.id(0), c.id(1000)))) {
		got[row[0]] = strings.Join(row[1:], " ")
	}
	if text := diff(c.want, got); text != "" {
		found = append(found, fmt.Sprintf("table %s is not exact (-want +got):\n%s", table, text))
	}
	dead := c.db.Rows(c.t, fmt.Sprintf("SELECT record, error FROM baton_dead_letter WHERE job = '%s'", c.spec("").Job))
	if len(dead) != c.dead {
		found = append(found, fmt.Sprintf("got %d dead letters, want %d: %q", len(dead), c.dead, dead))
	}
	return found
}
