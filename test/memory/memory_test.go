// Package memory measures what large values cost: the memory of a real `baton run`, and the
// time for which Redis serves nobody else.
package memory

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// mib is what a value has, if nothing else is said.
const mib = 1 << 20

// number is a number of the environment, for measurements by hand.
func number(t testing.TB, name string, usual int) int {
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

// kind is a source, with values that are large.
type kind struct {
	name string
	from string
	to   string // beside database and table
	// put adds the value of an id.
	put func(c redis.Conn, id int, value []byte) error
	// only is the driver of the one database that can hold it; "": any can.
	only string
	// copies of a huge value that may be in memory; 0: three.
	copies int
}

func send(c redis.Conn, commands ...[]any) error {
	for _, cmd := range commands {
		if err := c.Send(cmd[0].(string), cmd[1:]...); err != nil {
			return err
		}
	}
	_, err := c.Do("")
	return err
}

// object is the value in a JSON object with its id.
func object(id int, value []byte) []byte { return fmt.Appendf(nil, `{"id":%d,"v":"%s"}`, id, value) }

// kinds are all sources that may have large values. Members are the key of their row, which only
// SQLite takes in any length.
var kinds = []kind{
	{name: "list", from: `{type: list, key: q}`, to: "mode: upsert, key: [id]", put: func(c redis.Conn, id int, v []byte) error {
		return send(c, []any{"RPUSH", "q", object(id, v)})
	}},
	{name: "stream", from: `{type: stream, key: q, retain: 1ms}`, to: "key: [id]", put: func(c redis.Conn, id int, v []byte) error {
		return send(c, []any{"XADD", "q", "*", "id", id, "v", v})
	}},
	{name: "hashes", from: `{type: hashes, key: "q:<id>", changed: q}`, to: "key: [id]", put: func(c redis.Conn, id int, v []byte) error {
		return send(c, []any{"HSET", fmt.Sprint("q:", id), "v", v}, []any{"SADD", "q", id})
	}},
	{name: "scan of strings", from: `{type: scan, key: "q:<id>", value: string}`, to: "key: [id]", put: func(c redis.Conn, id int, v []byte) error {
		return send(c, []any{"SET", fmt.Sprint("q:", id), v})
	}},
	{name: "scan of JSON", from: `{type: scan, key: "q:<id>", value: json}`, to: "key: [id]", put: func(c redis.Conn, id int, v []byte) error {
		return send(c, []any{"SET", fmt.Sprint("q:", id), object(id, v)})
	}},
	{name: "scan of hashes", from: `{type: scan, key: "q:<id>"}`, to: "key: [id]", put: func(c redis.Conn, id int, v []byte) error {
		return send(c, []any{"HSET", fmt.Sprint("q:", id), "v", v})
	}},
	{name: "zset", from: `{type: zset, key: q, changed: changed}`, to: "key: [v]", only: "sqlite", copies: 9,
		put: func(c redis.Conn, id int, v []byte) error {
			return send(c, []any{"ZADD", "q", id, v}, []any{"SADD", "changed", v})
		}},
	{name: "scan of sets", from: `{type: scan, key: "q:<id>", value: set}`, to: "key: [id, v]", only: "sqlite", put: func(c redis.Conn, _ int, v []byte) error {
		return send(c, []any{"SADD", "q:1", v})
	}},
	{name: "scan of sorted sets", from: `{type: scan, key: "q:<id>", value: zset}`, to: "key: [id, v]", only: "sqlite",
		put: func(c redis.Conn, id int, v []byte) error { return send(c, []any{"ZADD", "q:1", id, v}) }},
}

// columns are what the columns of a row are made of.
func (k kind) columns() string {
	switch k.name {
	case "zset":
		return "{id: $score, v: $member}"
	case "scan of sets", "scan of sorted sets":
		return "{id: id, v: $member}"
	case "scan of strings":
		return "{id: id, v: $value}"
	}
	return "{id: id, v: v}"
}

// textOf makes values: no two are alike, and no database makes one shorter.
func textOf(size int) func(id int) []byte {
	raw := make([]byte, size)
	src := rand.New(rand.NewPCG(1, 2))
	for i := range raw {
		raw[i] = byte(src.Uint32())
	}
	text := []byte(base64.StdEncoding.EncodeToString(raw))[:size]
	return func(id int) []byte {
		return append(fmt.Appendf(nil, "%08d", id), text[8:]...)
	}
}

// measured is what one flush cost.
type measured struct {
	peak    int64
	longest time.Duration // of a command
	command string
}

// measure has a real node flush values.
func measure(t *testing.T, k kind, db *testsupport.Database, values, size int, flush string) (got measured) {
	t.Helper()
	server := testsupport.StartRedis(t)
	c := server.Client(t)
	c.Do("CONFIG", "SET", "slowlog-log-slower-than", "1000", "slowlog-max-len", "100000")
	text := textOf(size)
	for id := range values {
		if err := k.put(c.Conn, id, text(id)); err != nil {
			t.Fatal(err)
		}
	}
	kindOf := map[string]string{"postgres": "TEXT", "mysql": "LONGTEXT", "sqlite": "TEXT"}[db.Driver]
	if db.Driver == "mysql" { // a server takes no more than 16 MiB, unless it is raised
		db.Exec(t, "SET GLOBAL max_allowed_packet = 1073741824")
	}
	key := map[bool]string{true: "VARCHAR(40)" + map[bool]string{true: " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"}[db.Driver == "mysql"] +
		" PRIMARY KEY", false: "BIGINT"}[strings.Contains(k.to, "[id]")]
	more := map[string]string{"key: [v]": ", PRIMARY KEY (v)", "key: [id, v]": ", PRIMARY KEY (id, v)"}[k.to]
	db.Exec(t, fmt.Sprintf("CREATE TABLE q (id %s, v %s%s)", key, kindOf, more))
	c.Do("SLOWLOG", "RESET")
	n := cluster.Start(t, cluster.Options{
		// A statement may take half of the lease: a busy machine needs seconds for one of 24 MiB.
		Nodes: 1, RedisURL: server.URL(), TTL: time.Minute, DatabasesYAML: cluster.DatabaseYAML("main", db),
		JobsYAML: fmt.Sprintf(`- name: large
  schedule: "@every 1s"
  timeout: 10m
  flush:
    from: %s
    to: {database: main, table: q, %s}
    columns: %s
%s`, k.from, k.to, k.columns(), flush),
	})
	began := time.Now()
	n.Await(20*time.Minute, "all rows", func() bool {
		time.Sleep(100 * time.Millisecond)
		return db.Rows(t, "SELECT COUNT(*) FROM q")[0][0] == strconv.Itoa(values)
	})
	took := time.Since(began)
	time.Sleep(500 * time.Millisecond) // what is cleared away afterwards counts
	got.peak = n.Nodes[0].Peak()
	got.command, got.longest = longest(t, c, "baton")
	t.Logf("%s, %s: %d values of %d KiB: %d MB resident, longest command %s %s, %.1f s", k.name, db.Driver, values, size>>10, got.peak/1e6,
		got.longest, got.command, took.Seconds())
	sum := "SELECT SUM(LENGTH(v)) FROM q"
	if all := db.Rows(t, sum)[0][0]; !strings.HasPrefix(all, strconv.Itoa(values*size)) {
		t.Errorf("%s characters, want %d", all, values*size)
	}
	for _, id := range []int{0, values / 2, values - 1} {
		rows := db.Rows(t, fmt.Sprintf("SELECT v FROM q WHERE v LIKE '%08d%%'", id))
		if len(rows) != 1 || !bytes.Equal([]byte(rows[0][0]), text(id)) {
			t.Errorf("value %d is not what it was, or there are %d", id, len(rows))
		}
	}
	return got
}

// longest is the longest command of clients with that name.
func longest(t *testing.T, c testsupport.Client, client string) (name string, took time.Duration) {
	t.Helper()
	logs, err := redis.SlowLogs(c.Do("SLOWLOG", "GET", 100_000), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		if strings.HasPrefix(l.ClientName, client) && l.ExecutionTime > took {
			took, name = l.ExecutionTime, strings.Join(l.Args[:min(7, len(l.Args))], " ")
		}
	}
	return name[:min(len(name), 200)], took
}

// What a node may have in memory, in bytes, however many values of a megabyte there are, with
// batches of the usual size and with such as this test has; and how long a command may take.
const (
	most     = 150 << 20
	mostHere = 110 << 20
	blocked  = 10 * time.Millisecond
)

// Values of a megabyte each take no more memory than small ones: few of them here, in batches that
// are shorter by as much. MEMORY_VALUES=1000 takes that many and batches of the usual size, and
// requires that no command holds Redis up, which a busy machine cannot promise;
// MEMORY_DATABASE=mysql takes another database.
func TestLargeValuesTakeNoMoreMemoryThanABudget(t *testing.T) {
	values, limit, flush := number(t, "MEMORY_VALUES", 60), int64(mostHere), "    batch_bytes: 1048576\n"
	calm := os.Getenv("MEMORY_VALUES") != ""
	if calm {
		limit, flush = most, ""
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			got := measure(t, k, database(k)(t), values, mib, flush)
			if got.peak > limit {
				t.Errorf("%d MiB resident, want %d at most", got.peak>>20, limit>>20)
			}
			if calm && got.longest > blocked {
				t.Errorf("Redis was held up for %s, want %s at most", got.longest, blocked)
			}
		})
	}
}

// A value far beyond the size of a batch is alone in memory, and a few times: also where several follow each
// other. Redis puts two or three members of an index into one reply, by chance of its hash: 150 to 340 MiB were measured for one zset.
// SQLite makes two more copies of a member that is the key of a row with a score.
func TestHugeValuesAreOneAtATime(t *testing.T) {
	size := number(t, "MEMORY_HUGE", 24) * mib
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			limit := int64(most + cmp.Or(k.copies, 3)*size)
			if got := measure(t, k, database(k)(t), 3, size, ""); got.peak > limit {
				t.Errorf("%d MiB resident, want %d at most", got.peak>>20, limit>>20)
			}
		})
	}
}

// database is where values of the kind go.
func database(k kind) func(testing.TB) *testsupport.Database {
	return map[string]func(testing.TB) *testsupport.Database{
		"postgres": testsupport.Postgres, "mysql": testsupport.MariaDB, "sqlite": testsupport.SQLite,
	}[cmp.Or(k.only, os.Getenv("MEMORY_DATABASE"), "postgres")]
}
