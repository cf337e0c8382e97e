package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// goesOn is what a leader says that nobody can relieve.
const goesOn = "a database does not answer, and no other node can take over: this node goes on leading"

// A leader that alone has lost its database lets another node lead, which flushes
// what waits; where all have lost it, the last that has tried goes on.
func TestAbdicationWhereADatabaseIsAwayFromOneNode(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	db := testsupport.Postgres(t)
	db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
	ways := []*testsupport.Proxy{db.Proxy(), db.Proxy()}
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, TTL: ttl, LockKey: lockKey, RedisURL: server.URL(), ElectionYAML: fmt.Sprintf("abdicate_after: %v", ttl), JobsYAML: countersJob,
		DatabasesYAMLOf: func(node int) string {
			return fmt.Sprintf("main: {driver: postgres, dsn: %q}\n", db.DSNThrough(ways[node]))
		},
	})
	f := failover{Cluster: c, t: t, server: server, conn: server.Conn()}
	first := f.settled()
	index := map[string]int{"n1": 0, "n2": 1}
	second := c.Nodes[1-index[first.ID]]

	ways[index[first.ID]].Block()
	f.increment("a")
	c.AwaitOther(first, soon)
	f.Await(soon, second.ID+" to flush what waited", func() bool { return f.pending() == 0 })
	if got := db.Rows(t, "SELECT views FROM articles WHERE id = 'a'"); len(got) != 1 || got[0][0] != "1" {
		t.Errorf("the table has %v", got)
	}
	// On a busy machine a lease may have run out before. Then the first node led again, and abdicated in that term.
	ended := first.Lines("no longer leading")
	if len(ended) == 0 || !strings.HasPrefix(ended[len(ended)-1].Text("error"), `abdicated: database "main" has not answered here for `) {
		t.Fatalf("%s ended its term with %v", first.ID, ended)
	}
	var abdicated cluster.Event
	f.Await(soon, "the history to say so", func() bool {
		s, _ := second.Status()
		at := slices.IndexFunc(s.Events, func(e cluster.Event) bool { return e.Code == "abdicated" })
		if at >= 0 {
			abdicated = s.Events[at]
		}
		return at >= 0
	})
	if abdicated.Event != "stepped_down" || !strings.HasPrefix(abdicated.Reason, `database "main"`) {
		t.Fatalf("the history: %+v", abdicated)
	}
	for _, secret := range []string{"password", "127.0.0.1", "sslmode"} {
		if strings.Contains(abdicated.Reason, secret) {
			t.Errorf("the reason tells how to connect: %q", abdicated.Reason)
		}
	}

	// Away from both, the lead must not go round, which would end every run under the lock.
	ways[index[second.ID]].Block()
	c.Await(soon, second.ID+" to tell that it goes on", func() bool { return len(second.Lines(goesOn)) > 0 })
	// By this slot the cool-down of the first is over, and the second has been without the database for as long.
	over := abdicated.At.Add(2 * ttl)
	c.Await(2*soon, "a slot after the cool-down", func() bool {
		s, ok := second.Status()
		return ok && s.Jobs[0].LastRun != nil && s.Jobs[0].LastRun.Slot.After(over)
	})
	expired := 0 // terms whose lease ran out on a busy machine: the other node led then, and abdicated as the first did
	for _, n := range c.Nodes {
		for _, end := range n.Lines("no longer leading") {
			if end.Text("event") == "expired" {
				expired++
			}
		}
	}
	for _, n := range c.Nodes {
		want := map[*cluster.Node]int{first: 1}[n]
		if got := len(n.Lines("abdicating, so that another node can try")); got < want || got > want+expired {
			t.Errorf("%s has abdicated %d times, want %d, and %d leases ran out: the nodes play ping-pong", n.ID, got, want, expired)
		}
	}
	for _, way := range ways {
		way.Unblock()
	}
	f.increment("a")
	f.Await(soon, "the flush to go on", func() bool { return f.pending() == 0 })
}

// A lone node has nobody to abdicate to.
func TestAbdicationNeedsAnotherNode(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	db := testsupport.Postgres(t)
	db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
	way := db.Proxy()
	c := cluster.Start(t, cluster.Options{ // a lease that a busy machine keeps: the next term would tell again
		Nodes: 1, TTL: 2 * ttl, LockKey: lockKey, RedisURL: server.URL(), ElectionYAML: fmt.Sprintf("abdicate_after: %v", 2*ttl), JobsYAML: countersJob,
		DatabasesYAML: fmt.Sprintf("main: {driver: postgres, dsn: %q}\n", db.DSNThrough(way)),
	})
	leader := c.AwaitLeader(soon)
	way.Hang()
	c.Await(soon, "the leader to tell that it goes on", func() bool { return len(leader.Lines(goesOn)) > 0 })
	way.Unhang()
	command(t, server, "HINCRBY", "views", "a", 1)
	c.Await(soon, "the flush to go on", func() bool {
		rows := db.Rows(t, "SELECT views FROM articles")
		return len(rows) == 1 && rows[0][0] == "1"
	})
	if n := len(leader.Lines(goesOn)); n != 1 {
		t.Errorf("it was told %d times", n)
	}
	if !leader.Leading() || len(leader.Lines("leading")) != 1 {
		t.Error("the only node has given the lead up")
	}
}
