package nodes

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// lieMemory is the most that a node may have, in bytes: what lies announce is far more.
const lieMemory = 300 << 20

// graveLies are a few: a node pauses for longer after each failure. All of them are told where replies are read.
var graveLies = testsupport.GraveLies[:5]

// lying is a Redis of false lengths, as the lock's.
type lying struct {
	redisURL, redisYAML string
	liar                *testsupport.Liar
}

// No Redis can end a node by false lengths, whatever it is for.
func TestNoLieOfTheLocksRedisEndsANode(t *testing.T) {
	t.Parallel()
	pointing := func(liar *testsupport.Liar, reply string) string {
		host, port, _ := net.SplitHostPort(liar.Addr())
		return fmt.Sprintf(reply, len(host), host, len(port), port)
	}
	const role = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
	for name, start := range map[string]func(*testing.T) lying{
		"one server": func(t *testing.T) lying {
			liar := testsupport.NewLiar(t, nil, graveLies...)
			return lying{redisURL: "redis://" + liar.Addr(), liar: liar}
		},
		"a Sentinel": func(t *testing.T) lying {
			liar := testsupport.NewLiar(t, nil, graveLies...)
			return lying{redisYAML: fmt.Sprintf("sentinel: {master: m, addresses: [%q]}", liar.Addr()), liar: liar}
		},
		"the master behind a Sentinel": func(t *testing.T) lying {
			liar := testsupport.NewLiar(t, map[string]string{"ROLE": role}, graveLies...)
			sentinel := testsupport.NewLiar(t, map[string]string{"SENTINEL": pointing(liar, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n")})
			return lying{redisYAML: fmt.Sprintf("sentinel: {master: m, addresses: [%q]}", sentinel.Addr()), liar: liar}
		},
		"a node of a Cluster": func(t *testing.T) lying {
			liar := testsupport.NewLiar(t, nil, graveLies...)
			return lying{redisYAML: fmt.Sprintf("cluster: [%q]", liar.Addr()), liar: liar}
		},
		"the owner of a Cluster's slots": func(t *testing.T) lying {
			liar := testsupport.NewLiar(t, nil, graveLies...)
			host, port, _ := net.SplitHostPort(liar.Addr())
			slots := fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port)
			node := testsupport.NewLiar(t, map[string]string{"CLUSTER": slots})
			return lying{redisYAML: fmt.Sprintf("cluster: [%q]", node.Addr()), liar: liar}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t)
			c := cluster.Start(t, cluster.Options{Nodes: 1, TTL: ttl, LockKey: lockKey, RedisURL: l.redisURL, RedisYAML: l.redisYAML})
			n := c.Nodes[0]
			c.Await(soon, "all lies to be told", func() bool { return l.liar.Told() >= len(graveLies) || !n.Running() })
			lives(t, n)
			told := n.Lines(redisLost)
			if len(told) == 0 {
				t.Fatal("the log does not say that Redis cannot be used")
			}
			says(t, "log", told[0].Text("error"), []string{"announces", "baton accepts at most", "is this server a Redis?", l.liar.Addr()})
		})
	}
}

// lives checks that lies have cost a node nothing.
func lives(t *testing.T, n *cluster.Node) {
	t.Helper()
	if code, ended := n.Exited(); ended {
		t.Fatalf("a lie ended the node with code %d: %.2000s", code, n.Log())
	}
	if n.Answer("/-/healthy") != http.StatusOK {
		t.Error("the node is not healthy")
	}
	if peak := n.Peak(); peak > lieMemory {
		t.Errorf("lies took %d MiB", peak>>20)
	}
}

// A master of a quorum that lies is one that is away, and a store that lies fails its own jobs and no others.
func TestALieOfAStoreOrOfAQuorumsMasterConcernsNobodyElse(t *testing.T) {
	t.Parallel()
	lock, second := testsupport.StartRedis(t), testsupport.StartRedis(t)
	store := testsupport.NewLiar(t, nil, testsupport.Lies...)
	third := testsupport.NewLiar(t, nil, graveLies...)
	db := testsupport.SQLite(t)
	jobs := ""
	for i, source := range []string{"type: counters, key: views", "type: list, key: l", "type: stream, key: s", "type: scan, key: 'u:<id>'",
		"type: hashes, key: 'u:<id>', changed: ids", "type: capture, key: 'u:<id>'"} {
		table := fmt.Sprint("t", i)
		db.Exec(t, "CREATE TABLE "+table+" (id varchar(20) PRIMARY KEY, n bigint)")
		columns := "id: id, n: n"
		if i == 0 {
			columns = "id: $field, n: $value"
		}
		jobs += fmt.Sprintf("  - {name: j%d, schedule: '@every 1s', flush: {from: {store: shop, %s}, to: {database: main, table: %s, key: [id]}, columns: {%s}}}\n",
			i, source, table, columns)
	}
	db.Exec(t, "CREATE TABLE ours (id varchar(20) PRIMARY KEY, n bigint NOT NULL)")
	jobs += "  - {name: ours, schedule: '@every 1s', flush: {from: {type: counters, key: views}, to: {database: main, table: ours, key: [id]}, columns: {id: $field, n: $value}}}\n"
	c := cluster.Start(t, cluster.Options{
		Nodes: 1, TTL: ttl, LockKey: lockKey, RedisURL: lock.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db), JobsYAML: "\n" + jobs,
		RedisYAML: fmt.Sprintf("quorum: [%q, %q, %q]", lock.URL(), second.URL(), "redis://"+third.Addr()),
		TopYAML:   fmt.Sprintf("stores: {shop: {url: %q}}\n", "redis://"+store.Addr()),
	})
	n := c.AwaitLeader(soon)
	c.Await(2*soon, "all lies to be told", func() bool {
		return store.Told() >= len(testsupport.Lies) && third.Told() >= len(graveLies) || !n.Running()
	})
	lives(t, n)
	lock.Client(t).Do("HINCRBY", "views", "a", 7)
	c.Await(soon, "the job of the other Redis", func() bool { return fmt.Sprint(db.Rows(t, "SELECT n FROM ours")) == "[[7]]" })
	c.Await(soon, "the node to lead, which on a busy machine may have lost its lease", n.Leading)
}
