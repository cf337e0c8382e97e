package crash_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// lab is one kind of database, and a Redis.
type lab struct {
	db    *testsupport.Database
	redis *testsupport.Redis
	cells atomic.Int64
	// stores of the test's own process, for all whose steps in the database matter to nobody.
	stores *stores
}

// everywhere runs a test against every kind of database, two at a time or so.
func everywhere(t *testing.T, test func(t *testing.T, l *lab)) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, newLab(t, d.make(t)))
		})
	}
}

type database struct {
	name string
	make func(testing.TB) *testsupport.Database
}

func databases() []database {
	return []database{{"postgres", testsupport.Postgres}, {"mariadb", testsupport.MariaDB}, {"sqlite", testsupport.SQLite}}
}

func newLab(t *testing.T, db *testsupport.Database) *lab {
	t.Helper()
	l := &lab{db: db, redis: testsupport.StartRedis(t)}
	engine := map[string]string{"mysql": " ENGINE=InnoDB"}[db.Driver]
	db.Exec(t, "CREATE TABLE counts (id bigint PRIMARY KEY, n bigint NOT NULL)"+engine)
	db.Exec(t, "CREATE TABLE people (id bigint PRIMARY KEY, name varchar(40) NOT NULL, age integer CHECK (age >= 0))"+engine)
	l.stores = l.open(t, l.spec("test"), ignore)
	return l
}

// spec has all that cells have in common.
func (l *lab) spec(nodeID string) spec {
	return spec{Driver: l.db.Driver, DSN: l.db.DSN, RedisURL: l.redis.URL(), TTL: ttl, NodeID: nodeID}
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

// hasServer says whether there is a connection to the database that can break.
func (l *lab) hasServer() bool { return l.db.Driver != "sqlite" }

// nothingLeft asserts that no stage, id or mark of any cell has stayed in Redis.
func (l *lab) nothingLeft(t *testing.T) {
	t.Helper()
	if keys := pending(t, l.redis.Conn()); len(keys) > 0 {
		t.Errorf("left in Redis: %q", keys)
	}
}

// pending lists the live keys that are there, and what a source keeps beside them:
// that is in the slot of the live key, so it has its name in it.
func pending(t *testing.T, conn redis.Conn) []string {
	t.Helper()
	keys, err := redis.Strings(conn.Do("KEYS", "*"+livePrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

const livePrefix = "pending:"

// cell is one experiment: a job with rows and keys of its own.
type cell struct {
	*lab
	t    *testing.T
	name string // what befalls it, if its test is not named for that
	kind kind
	n    int64
	conn redis.Conn
	want map[string]string // id → what its row must hold in the end
	sums map[int64]int64
	dead int
}

func (l *lab) cell(t *testing.T, k kind) *cell {
	t.Helper()
	conn := l.redis.Conn()
	t.Cleanup(func() { _ = conn.Close() }) // its Redis would keep it for the whole test
	return &cell{lab: l, t: t, kind: k, n: l.cells.Add(1), conn: conn, want: map[string]string{}, sums: map[int64]int64{}}
}

func (c *cell) id(i int64) int64 { return c.n*1000 + i }

func (c *cell) spec(nodeID string) spec {
	s := c.lab.spec(nodeID)
	s.LockKey, s.Job, s.Source = c.lockKey(), fmt.Sprintf("job-%d", c.n), c.kind
	s.Live, s.Rows = livePrefix+fmt.Sprint(c.n), fmt.Sprintf("row:%d:<id>", c.n)
	return s
}

func (c *cell) lockKey() string { return fmt.Sprintf("{lock:%d}", c.n) }

// expire stands for the time that it takes a lease to run out.
func (c *cell) expire() { c.send("DEL", c.lockKey()); c.flushed() }

func (c *cell) send(command string, args ...any) {
	c.t.Helper()
	if err := c.conn.Send(command, args...); err != nil {
		c.t.Fatal(err)
	}
}

// flushed waits until everything that was sent is done.
func (c *cell) flushed() {
	c.t.Helper()
	if _, err := c.conn.Do(""); err != nil {
		c.t.Fatal(err)
	}
}

// fill writes what the first run finds, beside rows that are there already.
func (c *cell) fill() {
	c.t.Helper()
	if c.kind == counters {
		c.fillCounters()
	} else {
		c.fillHashes()
	}
	c.flushed()
}

// 40 fields are two parts.
func (c *cell) fillCounters() {
	var rows []string
	for i := range int64(8) {
		c.sums[c.id(i*5)] = 100
		rows = append(rows, fmt.Sprintf("(%d,100)", c.id(i*5)))
	}
	c.db.Exec(c.t, "INSERT INTO counts (id, n) VALUES "+strings.Join(rows, ","))
	for i := range int64(39) {
		c.add(i, i+1)
	}
	c.send("HINCRBY", c.spec("").Live, "no number", 1)
	c.dead = 1
}

func (c *cell) add(i, n int64) {
	c.send("HINCRBY", c.spec("").Live, c.id(i), n)
	c.sums[c.id(i)] += n
}

// 30 ids are three pages: one is gone, two do not fit.
func (c *cell) fillHashes() {
	var rows []string
	for i := range int64(10) {
		rows = append(rows, fmt.Sprintf("(%d,'old',1)", c.id(i*3)))
	}
	c.db.Exec(c.t, "INSERT INTO people (id, name, age) VALUES "+strings.Join(rows, ","))
	for i := range int64(30) {
		switch i {
		case 6:
			c.gone(i)
		case 13: // not a number: the mapping puts it aside
			c.change(i, "misfit", "unknown")
			delete(c.want, fmt.Sprint(c.id(i)))
		case 22: // the database refuses it
			c.change(i, "refused", "-1")
			delete(c.want, fmt.Sprint(c.id(i)))
		default:
			c.change(i, "first", fmt.Sprint(i))
		}
	}
	c.dead = 2
}

// change writes a hash and then, as it must be, its mark.
func (c *cell) change(i int64, name, age string) {
	c.send("HSET", fmt.Sprintf("row:%d:%d", c.n, c.id(i)), "name", name, "age", age)
	c.mark(i)
	c.want[fmt.Sprint(c.id(i))] = name + " " + age
}

func (c *cell) gone(i int64) {
	c.send("DEL", fmt.Sprintf("row:%d:%d", c.n, c.id(i)))
	c.mark(i)
	delete(c.want, fmt.Sprint(c.id(i)))
}

// mark enters an id into the index of changes; every other cell's is a sorted set.
func (c *cell) mark(i int64) {
	if c.n%2 == 0 {
		c.send("SADD", c.spec("").Live, c.id(i))
	} else {
		c.send("ZADD", c.spec("").Live, i, c.id(i))
	}
}

// traffic writes on. It touches every part or page of what fill wrote.
func (c *cell) traffic(round string) {
	c.t.Helper()
	if c.kind == counters {
		for i := int64(1); i < 45; i += 4 {
			c.add(i, 1000)
		}
	} else {
		for i := int64(1); i < 34; i += 4 {
			if i != 13 {
				c.change(i, round, fmt.Sprint(40+i))
			}
		}
		c.gone(2)
		c.change(6, round, "7")
	}
	c.flushed()
}

// fresh makes a node, and lets it flush until nothing is pending.
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

// check is the proof: nothing lost, nothing twice.
func (c *cell) check() {
	c.t.Helper()
	table := "people"
	query := "SELECT id, name, age FROM people"
	if c.kind == counters {
		table, query = "counts", "SELECT id, n FROM counts"
		for id, n := range c.sums {
			c.want[fmt.Sprint(id)] = fmt.Sprint(n)
		}
	}
	got := map[string]string{}
	for _, row := range c.db.Rows(c.t, fmt.Sprintf("%s WHERE id >= %d AND id < %d", query, c.id(0), c.id(1000))) {
		got[row[0]] = strings.Join(row[1:], " ")
	}
	if text := diff(c.want, got); text != "" {
		c.t.Errorf("%s: table %s is not exact (-want +got):\n%s", c.name, table, text)
	}
	dead := c.db.Rows(c.t, fmt.Sprintf("SELECT record, error FROM baton_dead_letter WHERE job = '%s'", c.spec("").Job))
	if len(dead) != c.dead {
		c.t.Errorf("%s: got %d dead letters, want %d: %q", c.name, len(dead), c.dead, dead)
	}
}
