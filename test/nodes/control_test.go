package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// ordered runs a command that must succeed, and returns what it prints.
func ordered(t *testing.T, c *cluster.Cluster, args ...string) string {
	t.Helper()
	out := c.Command(args...)
	if out.Code != 0 {
		t.Fatalf("baton %s: code %d: %s", strings.Join(args, " "), out.Code, out.Stderr)
	}
	return out.Stdout
}

// listed waits until the leader, or in a pause any node, lists all nodes as live.
func listed(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	c.Await(soon, "every node to be listed", func() bool {
		s, ok := c.Nodes[0].Status()
		return ok && len(s.Nodes) == len(c.Nodes)
	})
}

// events is the history, the oldest first, without the times.
func events(t *testing.T, n *cluster.Node) (kinds []string) {
	t.Helper()
	s, ok := n.Status()
	if !ok {
		t.Fatalf("%s does not answer", n.ID)
	}
	for _, e := range s.Events {
		kinds = append(kinds, e.Event)
	}
	slices.Reverse(kinds)
	return kinds
}

// A pause outlives every process and a restart of Redis, and ends for all at once.
func TestPauseSurvivesRestartsOfEverything(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t, testsupport.RedisAOF())
	c := cluster.Start(t, cluster.Options{TTL: ttl, LockKey: lockKey, RedisURL: server.URL()})
	leader := c.AwaitLeader(soon)
	listed(t, c)
	out := ordered(t, c, "pause", "--reason", "upgrade")
	if !strings.Contains(out, ": upgrade: no node leads, ") || !strings.Contains(out, leader.ID+" led before") {
		t.Errorf("pause says %q", out)
	}
	t.Logf("%s", out)
	for _, n := range c.Nodes {
		n.Restart()
	}
	server.Restart()
	for _, n := range c.Nodes {
		c.Await(soon, n.ID+" to say why it waits", func() bool {
			s, ok := n.Status()
			return ok && s.Paused != nil && strings.HasSuffix(s.Paused.Reason, ": upgrade") && strings.HasPrefix(s.Waiting, "paused by ") && s.Vacancy == s.Waiting
		})
	}
	// Each node asks again and again, as a term would have to begin.
	conn := server.Conn()
	asked := calls(t, conn, "evalsha")
	c.Await(soon, "many more attempts", func() bool { return calls(t, conn, "evalsha") >= asked+4*len(c.Nodes) })
	for _, n := range c.Nodes {
		told := 0
		for _, line := range n.Lines("standing by: no node leads") {
			if strings.HasPrefix(line.Text("reason"), "paused by ") {
				told++
			}
		}
		if without := len(n.Lines(redisBack)); told < 1 || told > 2+max(1, without) {
			t.Errorf("%s, started twice and %d times without redis, told %d times of the pause", n.ID, without, told)
		}
	}

	out = ordered(t, c, "resume")
	t.Logf("%s", out)
	c.AwaitLeader(soon)
	got := ""
	c.Await(soon, "the history to have the next term", func() bool {
		got = strings.Join(events(t, c.Nodes[0]), " ")
		return strings.HasSuffix(got, "resumed won")
	})
	if !strings.HasPrefix(got, "won paused stepped_down ") || strings.Count(got, "won") != 2 {
		t.Errorf("events %s", got)
	}
}

// Of the nodes that are there the one with the highest priority goes first; one that
// is not there any more costs half a second, once.
func TestPriorityDecidesWhoGoesFirst(t *testing.T) {
	t.Parallel()
	clock, server := startPulse(t), testsupport.StartRedis(t)
	c := cluster.Start(t, cluster.Options{
		TTL: ttl, LockKey: lockKey, RedisURL: server.URL(),
		NodeYAMLOf: func(node int) string { return fmt.Sprintf("priority: %d", 5*node) },
	})
	n1, n2, n3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	standsBy := func(n *cluster.Node, leader *cluster.Node) {
		t.Helper()
		c.Await(soon, n.ID+" to stand by for "+leader.ID, func() bool {
			lines := n.Lines("standing by")
			return len(lines) > 0 && lines[len(lines)-1].Text("leader") == leader.ID && leader.Leading()
		})
	}
	leads := func(want *cluster.Node, after string) {
		t.Helper()
		c.Await(soon, want.ID+" to lead after "+after, func() bool {
			l := c.Leader()
			if l != nil && l != want && l.Lines("leading") != nil {
				s, _ := l.Status()
				t.Logf("%s leads (%v)", l.ID, s.Leader)
			}
			return l == want
		})
	}
	first := c.AwaitLeader(soon)
	listed(t, c)
	if s, ok := n1.Status(); !ok || s.Nodes[0].Priority != 0 || s.Nodes[1].Priority != 5 || s.Nodes[2].Priority != 10 {
		t.Errorf("nodes %+v", s.Nodes)
	}
	if first != n3 {
		standsBy(n3, first)
		ordered(t, c, "stepdown", "--to", "n3")
	}
	leads(n3, "the order")
	standsBy(n1, n3)
	standsBy(n2, n3)

	ordered(t, c, "stepdown")
	leads(n2, "a step-down of n3, which has a higher priority")
	standsBy(n1, n2)
	standsBy(n3, n2)
	n2.Kill()
	leads(n3, "the death of n2")

	n2.Start()
	standsBy(n2, n3)
	standsBy(n1, n3)
	n3.Kill()
	leads(n2, "the death of n3")
	standsBy(n1, n2)
	n2.Kill()
	since := clock.beats()
	leads(n1, "the deaths of n2 and n3")
	clock.within(1, since, "two nodes of a higher priority have died → n1 leads")
}

func TestObserverNeverLeads(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, TTL: ttl, LockKey: lockKey, RedisURL: server.URL(),
		NodeYAMLOf: func(node int) string { return fmt.Sprintf("candidate: %v", node == 1) },
	})
	observer, candidate := c.Nodes[0], c.Nodes[1]
	c.Await(soon, "the candidate to lead", candidate.Leading)
	listed(t, c)
	if s, ok := observer.Status(); !ok || !s.Nodes[0].Observer || s.Nodes[1].Observer {
		t.Errorf("nodes %+v", s.Nodes)
	}
	if out := c.Command("stepdown", "--to", observer.ID); out.Code != 1 || !strings.Contains(out.Stderr, `node "n1" never leads: node.candidate is false`) {
		t.Errorf("a step-down in favour of an observer: %+v", out)
	}
	ordered(t, c, "stepdown", "--no-wait")
	c.Await(soon, "the only candidate to come back", func() bool { return len(candidate.Lines("leading")) == 2 })
	candidate.Kill()
	c.Await(soon, "the observer to tell why no node leads", func() bool {
		s, ok := observer.Status()
		return ok && s.Leader == nil && s.Waiting == "left to others: this node does not campaign"
	})
	conn := server.Conn()
	asked := calls(t, conn, "evalsha")
	c.Await(soon, "many more times that the observer looks", func() bool { return calls(t, conn, "evalsha") >= asked+4 })
	if n := len(observer.Lines("leading")); n != 0 {
		t.Errorf("the observer has led %d times", n)
	}
}
