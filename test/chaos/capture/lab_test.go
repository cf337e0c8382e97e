package capture

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/nemesis"
)

const (
	nodes   = 3
	lease   = 2 * time.Second
	lockKey = "baton"
	writers = 4
)

// job captures one pattern of one database of Redis.
type job struct {
	name, key, value string
	db               int
	schedule         string
	columns          string // of its table, beside id
	mapping          string
	members          bool // its keys have a row for each of their members, m
}

var jobs = []job{
	{"strings", "s:", "string", 0, "@always", "v bytea NOT NULL", "{id: id, v: $value}", false},
	{"hashes", "h:", "hash", 0, "@always", "f text, g text", "{id: id, f: f, g: g}", false},
	{"objects", "j:", "json", 0, "@every 500ms", "n bigint NOT NULL, v text NOT NULL", "{id: id, n: n, v: v}", false},
	{"others", "s:", "string", 1, "@every 300ms", "v bytea NOT NULL", "{id: id, v: $value}", false},
	{"sets", "t:", "set", 0, "@always", "m text", "{id: id, m: $member}", true},
	{"boards", "z:", "zset", 0, "@always", "m text, score double precision NOT NULL", "{id: id, m: $member, score: $score}", true},
}

func (j job) yaml() string {
	return fmt.Sprintf(`
- name: %s
  schedule: "%s"
  flush:
    from: {store: db%d, type: capture, key: "%s<id>", value: %s, on_flush: pass, max_pct: 100}
    to: {database: main, table: %s, key: [%s]}
    columns: %s
    lanes: 2
`, j.name, j.schedule, j.db, j.key, j.value, j.name, j.primary(), j.mapping)
}

// primary is the key of its table.
func (j job) primary() string {
	if j.members {
		return "id, m"
	}
	return "id"
}

// lab is the installation: the lock is in a Redis of its own. Its fields belong to the test's goroutine,
// except for what guards itself.
type lab struct {
	*nemesis.Record
	t          *testing.T
	redis      *testsupport.Redis // of the lock
	store      store              // of the data
	jobs       []job
	db         *testsupport.Database
	cluster    *cluster.Cluster
	ways       [nodes]ways
	keeper     *cluster.Supervisor
	nemesis    *nemesis.Nemesis
	writers    []*writer
	down       map[*testsupport.RedisDaemon]bool
	background sync.WaitGroup

	rows    int           // that were compared
	settled time.Duration // what it took
}

// ways are how one node reaches two of the servers. Where the others are, Sentinels or the Cluster say.
type ways struct{ redis, db *testsupport.Proxy }

func newLab(t *testing.T, to topology, seed uint64) *lab {
	t.Helper()
	l := &lab{t: t, Record: &nemesis.Record{}, down: map[*testsupport.RedisDaemon]bool{}}
	l.redis = testsupport.StartRedis(t, testsupport.RedisAOF())
	l.store = to.start(l, testsupport.RedisArgs("--repl-backlog-size", "16mb"))
	l.db = testsupport.StartPostgres(t)
	yaml := ""
	for _, j := range jobs {
		if j.db >= to.databases {
			continue
		}
		l.jobs = append(l.jobs, j)
		l.db.Exec(t, fmt.Sprintf("CREATE TABLE %s (id text, %s, PRIMARY KEY (%s))", j.name, j.columns, j.primary()))
		yaml += j.yaml()
	}
	for i := range l.ways {
		l.ways[i] = ways{redis: l.redis.Proxy(), db: l.db.Proxy()}
	}
	stores := "stores:\n"
	for db := range to.databases {
		stores += fmt.Sprintf("  db%d: {%s}\n", db, l.store.yaml(db))
	}
	l.cluster = cluster.Start(t, cluster.Options{
		Nodes: nodes, TTL: lease, LockKey: lockKey, MayExit: true, JobsYAML: yaml, TopYAML: stores,
		RedisURLOf: func(i int) string { return l.redis.URLThrough(l.ways[i].redis) },
		DatabasesYAMLOf: func(i int) string {
			return fmt.Sprintf("main: {driver: postgres, dsn: %q}\n", l.db.DSNThrough(l.ways[i].db))
		},
	})
	l.keeper = cluster.Supervise(l.cluster, l)
	l.nemesis = &nemesis.Nemesis{Begin: l.begin, Tick: l.keeper.Tick, Log: &l.Timeline}
	l.cluster.AwaitLeader(time.Minute)
	for i := range writers {
		l.writers = append(l.writers, &writer{
			store: l.store, commands: to.commands(), tags: to.tags, databases: to.databases, rng: rand.New(rand.NewPCG(seed, uint64(i+1))),
		})
	}
	return l
}

// leader is the node that leads as far as Redis says, or any: unlike the nodes' own answers this is never
// kept waiting by one that is frozen.
func (l *lab) leader() int {
	c, err := redis.Dial("tcp", l.redis.Addr(), redis.DialConnectTimeout(patience), redis.DialReadTimeout(patience))
	if err != nil {
		return 0
	}
	defer c.Close()
	id, err := redis.String(c.Do("HGET", "{"+lockKey+"}:term", "node_id"))
	for i, n := range l.cluster.Nodes {
		if err == nil && n.ID == id {
			return i
		}
	}
	return 0
}
