package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/nemesis"
)

const lockKey = "baton"

// These are the jobs, and the tables that they fill.
var (
	// jobNames lists all jobs except visits, which has one run in each term.
	jobNames = []string{"hits", "items", "orders", "plays", "sessions", "totals", "users", "views"}
	// counterTables have sums, or, of events, how often each is there.
	counterTables = map[string]string{"articles": "views", "hits": "hits", "plays": "plays", "downloads": "n", "orders": "count(*)", "visits": "count(*)"}
	rowTables     = []string{"items", "sessions", "users"}
	// liveKeys lists every key that a job empties.
	liveKeys = append(shardKeys(), "hits", "changed:{user}", "changed:{session}", "changed:{play}", "orders")
)

func shardKeys() []string {
	keys := make([]string, shards)
	for i := range keys {
		keys[i] = fmt.Sprintf("views:%d", i)
	}
	return keys
}

const jobsYAML = `
- name: views
  schedule: "@every 500ms"
  flush:
    from: {type: counters, key: "views:[0-7]"}
    to: {database: main, table: articles, key: [id]}
    columns: {id: $field, views: {from: $value, op: add}}
- name: hits
  schedule: "@every 250ms"
  flush:
    from: {type: counters, key: "hits"}
    to: {database: main, table: hits, key: [id]}
    columns: {id: $field, hits: $value}
- name: users
  schedule: "@every 250ms"
  flush:
    from: {type: hashes, key: "user:{user}:<id>", changed: "changed:{user}"}
    to: {database: main, table: users, key: [id]}
- name: sessions
  schedule: "@every 500ms"
  flush:
    from: {type: hashes, key: "session:{session}:<id>", changed: "changed:{session}"}
    to: {database: main, table: sessions, key: [id]}
- name: plays
  schedule: "@every 500ms"
  flush:
    from: {type: counters, key: "play:{play}:<id>", changed: "changed:{play}"}
    to: {database: main, table: plays, key: [id]}
    columns: {id: id, plays: $value}
- name: totals
  schedule: "@every 1s"
  flush:
    from: {type: counters, key: "totals", mode: watermark}
    to: {database: main, table: downloads, key: [id]}
    columns: {id: $field, n: $value}
- name: orders
  schedule: "@every 250ms"
  flush:
    from: {type: list, key: "orders"}
    to: {database: main, table: orders}
- name: visits
  schedule: "@always"
  flush:
    from: {type: stream, key: "visits", retain: 1ms}
    to: {database: main, table: visits}
- name: items
  schedule: "@every 1s"
  flush:
    from: {type: scan, key: "item:{item}:<id>", vanished: delete, max_pct: 90}
    to: {database: main, table: items, key: [id], generation: pass}
`

// The triggers record every change for the report. The ledger's row of the same transaction shows the batch of a change. The trigger of
// the fence records every takeover.
const tablesSQL = `
CREATE TABLE articles (id text PRIMARY KEY, views bigint NOT NULL DEFAULT 0);
CREATE TABLE hits     (id text PRIMARY KEY, hits  bigint NOT NULL DEFAULT 0);
CREATE TABLE users    (id text PRIMARY KEY, name text NOT NULL, version bigint NOT NULL, email text);
CREATE TABLE sessions (id text PRIMARY KEY, name text NOT NULL, version bigint NOT NULL, email text);
CREATE TABLE plays    (id text PRIMARY KEY, plays bigint NOT NULL DEFAULT 0);
CREATE TABLE downloads (id text PRIMARY KEY, n bigint NOT NULL DEFAULT 0);
CREATE TABLE orders   (id text NOT NULL, n bigint NOT NULL);
CREATE TABLE visits   (id text NOT NULL, n bigint NOT NULL);
CREATE TABLE items    (id text PRIMARY KEY, name text NOT NULL, version bigint NOT NULL, email text, pass bigint);
CREATE TABLE chaos_changes (tx text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), tab text NOT NULL, id text NOT NULL, value text);
`

const triggersSQL = `
CREATE FUNCTION chaos_changed_%[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_changes (tx, tab, id, value) SELECT txid_current()::text, '%[1]s', id, %[2]s::text FROM changed; RETURN NULL;
END $$;
CREATE FUNCTION chaos_deleted_%[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_changes (tx, tab, id, value) SELECT txid_current()::text, '%[1]s', id, NULL FROM changed; RETURN NULL;
END $$;
CREATE TRIGGER chaos_i AFTER INSERT ON %[1]s REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION chaos_changed_%[1]s();
CREATE TRIGGER chaos_u AFTER UPDATE ON %[1]s REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION chaos_changed_%[1]s();
CREATE TRIGGER chaos_d AFTER DELETE ON %[1]s REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION chaos_deleted_%[1]s();
`

const fenceSQL = `
CREATE TABLE chaos_fence (n bigserial PRIMARY KEY, job text NOT NULL, epoch bigint NOT NULL, owner text NOT NULL, node_id text NOT NULL);
CREATE FUNCTION chaos_fenced() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO chaos_fence (job, epoch, owner, node_id) VALUES (NEW.job, NEW.epoch, NEW.owner, NEW.node_id); RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER INSERT OR UPDATE ON baton_fence FOR EACH ROW EXECUTE FUNCTION chaos_fenced();
INSERT INTO chaos_fence (job, epoch, owner, node_id) SELECT job, epoch, owner, node_id FROM baton_fence;
`

// lab is the installation. Only the test's goroutine uses the fields, except the fields that have their own locks.
type lab struct {
	*nemesis.Record
	t          *testing.T
	redis      *testsupport.Redis
	data       *testsupport.RedisClusterDaemon // nil: the data is in redis, too
	whole      bool                            // its slots move by CLUSTER MIGRATESLOTS
	draws      *rand.Rand                      // draws the random details of the faults
	db         *testsupport.Database
	cluster    *cluster.Cluster
	ways       [nodes]ways
	keeper     *cluster.Supervisor
	probes     *probes
	history    *history
	writers    []*writer
	heals      map[int]heal   // of faults that last, by their place in strikes
	background sync.WaitGroup // faults that end by themselves
	recoveries []recovery
	drained    time.Duration // the time that it took to flush the rest

	mu      sync.Mutex
	strikes []strike
}

// ways contains the proxies through which one node reaches the servers.
type ways struct{ redis, db *testsupport.Proxy }

// pooled reports whether PgBouncer is in front of PostgreSQL.
func pooled() bool { return os.Getenv("CHAOS_POOLER") != "" }

func start(t *testing.T) *testsupport.Database {
	t.Helper()
	if pooled() {
		return testsupport.StartPooled(t)
	}
	return testsupport.StartPostgres(t)
}

func newLab(t *testing.T, seed uint64) *lab {
	t.Helper()
	l := &lab{t: t, Record: &nemesis.Record{}, draws: rand.New(rand.NewPCG(seed, 1<<32))}
	l.redis = testsupport.StartRedis(t, testsupport.RedisAOF())
	if l.db = start(t); pooled() {
		// After a crash of PostgreSQL, PgBouncer tries again immediately. Each client may have its own session.
		for name, value := range map[string]string{"server_login_retry": "1", "default_pool_size": "60"} {
			if err := l.db.Pooler().Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if clustered() {
		l.startData()
	}
	l.db.Exec(t, tablesSQL)
	for table, value := range map[string]string{"articles": "views", "hits": "hits", "users": "version", "sessions": "version",
		"plays": "plays", "downloads": "n", "orders": "n", "visits": "n"} {
		l.db.Exec(t, fmt.Sprintf(triggersSQL, table, value))
	}
	for i := range l.ways {
		l.ways[i] = ways{redis: l.redis.Proxy(), db: l.db.Proxy()}
	}
	stores, jobs := l.dataYAML()
	l.cluster = cluster.Start(t, cluster.Options{
		Nodes: nodes, TTL: lease, LockKey: lockKey, MayExit: true, TopYAML: stores, JobsYAML: jobs,
		RedisURLOf: func(i int) string { return l.redis.URLThrough(l.ways[i].redis) },
		DatabasesYAMLOf: func(i int) string {
			return fmt.Sprintf("main: {driver: postgres, dsn: %q}\n", l.db.DSNThrough(l.ways[i].db))
		},
	})
	l.keeper = cluster.Supervise(l.cluster, l)
	l.cluster.AwaitLeader(time.Minute)
	l.cluster.Await(time.Minute, "every job to take its fence", func() bool {
		got, err := l.db.Query(t.Context(), "SELECT job FROM baton_fence")
		return err == nil && len(got) == len(jobNames)+1
	})
	l.db.Exec(t, fenceSQL)
	l.probes = startProbes(t, l.cluster.Nodes)
	l.keeper.Moved = l.probes.at
	l.history = startHistory(t, l.redis, l.dataServers)
	l.newWriters(seed)
	return l
}

func (l *lab) newWriters(seed uint64) {
	shard := func(rng *rand.Rand) string { return fmt.Sprintf("views:%d", rng.IntN(shards)) }
	if l.data != nil { // all keys of a writer are in one slot
		for i, key := range shardKeys() {
			l.newWriter(seed, fmt.Sprintf("v%d", i), key, counts("articles", func(*rand.Rand) string { return key }))
		}
	}
	hits := func(*rand.Rand) string { return "hits" }
	for i := range 2 {
		if l.data == nil {
			l.newWriter(seed, fmt.Sprintf("v%d", i), "", counts("articles", shard))
		}
		l.newWriter(seed, fmt.Sprintf("h%d", i), "hits", counts("hits", hits))
		l.newWriter(seed, fmt.Sprintf("u%d", i), "user", rows("users", "user:{user}:", "changed:{user}", "set"))
		l.newWriter(seed, fmt.Sprintf("s%d", i), "session", rows("sessions", "session:{session}:", "changed:{session}", "zset"))
		l.newWriter(seed, fmt.Sprintf("i%d", i), "item", rows("items", "item:{item}:", "no-index:{item}", "none"))
		l.newWriter(seed, fmt.Sprintf("p%d", i), "play", plays)
		l.newWriter(seed, fmt.Sprintf("t%d", i), "totals", counts("downloads", func(*rand.Rand) string { return "totals" }))
		l.newWriter(seed, fmt.Sprintf("o%d", i), "orders", events("orders", "push"))
		l.newWriter(seed, fmt.Sprintf("w%d", i), "visits", events("visits", "append"))
	}
}

// newWriter makes a writer whose keys have the given hash tag. With "" the keys are not in a Cluster.
func (l *lab) newWriter(seed uint64, name, tag string, make func(*writer) (string, []any, func(*state))) {
	rng := rand.New(rand.NewPCG(seed, uint64(len(l.writers)+1)))
	addrs := []string{l.redis.Addr()}
	if l.data != nil {
		addrs = l.data.Addresses()
	}
	l.writers = append(l.writers, &writer{name: name, tag: tag, addrs: addrs, addr: addrs[0], rng: rng, make: make, state: newState()})
}

// leader returns the node that leads according to Redis, or -1. This request is cheap, and unlike a request to a node it never waits for
// a frozen node.
func (l *lab) leader() int {
	id := l.history.leader()
	for i, n := range l.cluster.Nodes {
		if n.ID == id && n.Running() {
			return i
		}
	}
	return -1
}
