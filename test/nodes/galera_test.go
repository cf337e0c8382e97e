package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// Each node writes through a server of its own, and one after the other is killed, frozen or
// cut off: batches go on being committed meanwhile, and each change is in the table once.
func TestNodesOnTheirOwnServersOfAGaleraCluster(t *testing.T) {
	t.Parallel()
	rounds, _ := effort(t, "GALERA_ROUNDS", 1)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	lab := startGaleraLab(t)
	faults := []galeraFault{
		{"the leader's process is killed", func(leader int) { lab.Nodes[leader].Kill() }, nil},
		{"the leader is deposed while it stands still, and wakes up",
			func(leader int) { lab.Nodes[leader].Freeze(); lab.AwaitOther(lab.Nodes[leader], soon) }, func(leader int) { lab.Nodes[leader].Thaw() }},
		{"the leader's server is cut off from the others", lab.servers.Cut, lab.servers.Mend},
		{"another server is cut off", func(leader int) { lab.servers.Cut((leader + 1) % 3) }, func(leader int) { lab.servers.Mend((leader + 1) % 3) }},
		{"the leader's server is killed", func(leader int) { lab.servers.Members[leader].Server().Kill() }, func(leader int) { lab.servers.Members[leader].Server().Restart() }},
		{"the leader's server stands still", func(leader int) { lab.servers.Members[leader].Server().Freeze() }, func(leader int) { lab.servers.Members[leader].Server().Thaw() }},
		{"the leader steps down by order", func(leader int) { lab.Nodes[leader].StepDown(t.Context()) }, nil},
	}
	for range rounds {
		order := slices.Clone(faults)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		for _, f := range order {
			lab.under(f)
		}
	}
	lab.wantEachChangeOnce()
}

// galeraFault is done to the leader's node or server, and ended again.
type galeraFault struct {
	what       string
	begin, end func(leader int) // the leader's place: of its node, and of the server that this writes through
}

// galeraLab is three nodes, each with a server of its own, and somebody who counts.
type galeraLab struct {
	*cluster.Cluster
	t       *testing.T
	servers *testsupport.Galera
	stop    func() map[string]int // ends the counting, and tells what was counted
}

func startGaleraLab(t *testing.T) *galeraLab {
	t.Helper()
	server := testsupport.StartRedis(t, testsupport.RedisAOF())
	g := testsupport.StartGalera(t, 3)
	g.Members[0].Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0) COLLATE utf8mb4_nopad_bin")
	for _, m := range g.Members {
		m.Rows(t, "SELECT id FROM articles") // it has the table
	}
	lab := &galeraLab{t: t, servers: g}
	lab.Cluster = cluster.Start(t, cluster.Options{
		Nodes: 3, TTL: ttl, LockKey: lockKey, RedisURL: server.URL(), ElectionYAML: fmt.Sprintf("abdicate_after: %v", ttl), JobsYAML: countersJob, MayExit: true,
		DatabasesYAMLOf: func(node int) string { return cluster.DatabaseYAML("main", g.Members[node]) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	counted, over := map[string]int{}, make(chan struct{})
	conn := server.Conn()
	go func() {
		defer close(over)
		for i := 0; ctx.Err() == nil; i++ {
			field := strconv.Itoa(i % 50)
			if _, err := redis.DoContext(conn, t.Context(), "HINCRBY", "views", field, 1); err != nil {
				t.Errorf("count: %v", err)
				return
			}
			counted[field]++
			time.Sleep(5 * time.Millisecond)
		}
	}()
	lab.Await(soon, "the first batch", func() bool { return lab.batches() > 0 })
	lab.stop = func() map[string]int { cancel(); <-over; return counted }
	t.Cleanup(func() { lab.stop() })
	return lab
}

// under waits, with the fault and after it, for batches to be committed.
func (l *galeraLab) under(f galeraFault) {
	l.t.Helper()
	first := l.AwaitLeader(soon)
	leader := slices.Index(l.Nodes, first)
	before := l.batches()
	f.begin(leader)
	l.Await(2*soon, "batches while "+f.what, func() bool { return l.batches() > before+2 })
	during := l.batches() - before
	if f.end != nil {
		f.end(leader)
	}
	for _, n := range l.Nodes {
		if !n.Running() { // killed, or ended by its own guard after it stood still
			n.Restart()
		}
	}
	l.Await(2*soon, "all servers to be one cluster again", func() bool {
		for _, m := range l.servers.Members {
			if rows, err := l.ask(m, "SHOW STATUS LIKE 'wsrep_cluster_size'"); err != nil || rows[0][1] != "3" {
				return false
			}
		}
		return true
	})
	l.t.Logf("%s: %d batches", f.what, during)
}

// batches are those that some server knows as committed.
func (l *galeraLab) batches() (most int) {
	for _, m := range l.servers.Members {
		if rows, err := l.ask(m, "SELECT count(*) FROM baton_ledger"); err == nil {
			n, _ := strconv.Atoi(rows[0][0]) // a count is a number
			most = max(most, n)
		}
	}
	return most
}

// ask does not wait for a server that stands still.
func (l *galeraLab) ask(m *testsupport.Database, query string) ([][]string, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Second)
	defer cancel()
	return m.Query(ctx, query)
}

func (l *galeraLab) wantEachChangeOnce() {
	l.t.Helper()
	want := l.stop()
	total := 0
	for _, n := range want {
		total += n
	}
	sum := "0"
	l.Await(2*soon, "the table to have all", func() bool {
		sum = l.servers.Members[0].Rows(l.t, "SELECT COALESCE(SUM(views), 0) FROM articles")[0][0]
		n, err := strconv.Atoi(sum)
		return err == nil && n >= total
	})
	for i, m := range l.servers.Members {
		for _, row := range m.Rows(l.t, "SELECT id, views FROM articles") {
			if row[1] != strconv.Itoa(want[row[0]]) {
				l.t.Errorf("server %d: %s has %s, and %d were counted", i, row[0], row[1], want[row[0]])
			}
		}
	}
	l.t.Logf("%d changes, %s in the table", total, sum)
}
