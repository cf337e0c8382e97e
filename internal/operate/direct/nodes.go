package direct

import (
	"cmp"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/redislock"
	"baton/internal/text"
)

// ElectionOf returns the part of a Snapshot that comes from the state of an election alone: the leader and the nodes.
func ElectionOf(p redislock.ElectionState, poll time.Duration) diagnose.Snapshot {
	s := diagnose.Snapshot{Leader: leaderOf(p), Nodes: nodesOf(p, poll)}
	if p.Cut || len(s.Nodes) > operate.MostListed {
		s.NodesRead = len(p.Nodes)
	}
	return s
}

// shown returns the nodes that [operate.Bounded] does not cut: the leader, and the nodes that registered last.
func shown(nodes []diagnose.Node, leader string) []diagnose.Node {
	if len(nodes) <= operate.MostListed {
		return nodes
	}
	slices.SortStableFunc(nodes, func(a, b diagnose.Node) int {
		switch leader {
		case a.ID:
			return -1
		case b.ID:
			return 1
		}
		return cmp.Compare(a.LastSeenAgo, b.LastSeenAgo)
	})
	nodes = nodes[:operate.MostListed]
	slices.SortFunc(nodes, func(a, b diagnose.Node) int { return cmp.Compare(a.ID, b.ID) })
	return nodes
}

// nodesOf returns the nodes of an election that are not forgotten yet.
func nodesOf(p redislock.ElectionState, poll time.Duration) (nodes []diagnose.Node) {
	for _, n := range p.Nodes {
		ago := p.Now.Sub(n.Seen())
		if ago > redislock.ForgottenAfter {
			continue
		}
		nodes = append(nodes, diagnose.Node{
			ID: n.ID, State: nodeState(n, p, SilentAfter(poll)), Led: ledLast(n, p),
			Version: n.Version, ConfigHash: n.ConfigHash, Address: n.Address,
			Priority: n.Priority, Observer: n.Observer, Aside: CoolDownOf(p, n.ID),
			LastSeenAgo: text.Seconds(max(ago, 0)), Stale: ago > redislock.GoneAfter,
			Instance: n.Instance, Twin: n.Twin, ClockAhead: text.Seconds(n.ClockMS) * text.Millisecond,
			Jobs: countOf(n.Jobs), ConfigSince: n.ConfigSince(),
		})
	}
	return nodes
}

// countOf returns the number of a node's jobs, or nil if the node does not report its jobs.
func countOf(jobs []string) *int {
	if jobs == nil {
		return nil
	}
	return new(len(jobs))
}

// SeenNow sets the last sign of life of the answering node to now, because its entry in Redis is older. It does not change a node that has
// not registered for long, or a node whose id another process also uses.
func SeenNow(nodes []diagnose.Node, id string) {
	for i, n := range nodes {
		if n.ID == id && !n.Stale && n.Twin == "" {
			nodes[i].LastSeenAgo = 0
			if n.State == diagnose.StateSilent {
				nodes[i].State, nodes[i].Led = string(diagnose.RoleStandby), false
			}
		}
	}
}

// missingAfter is the maximum silence of a former leader that has not reported the end of its term. After that time the node counts as
// silent. A leader registers at least this often, and a node that steps down reports that immediately.
const missingAfter = 3 * time.Second

// SilentAfter returns the time within which a live node must have registered.
func SilentAfter(poll time.Duration) time.Duration { return diagnose.SeenWithin + poll }

// nodeState returns the state of a node. It corrects the state that the node last wrote, because the node may have died since.
func nodeState(n redislock.Node, p redislock.ElectionState, silent time.Duration) string {
	ago := p.Now.Sub(n.Seen())
	switch {
	case n.ID == p.Leader:
		return n.State
	case ledLast(n, p), ago > silent:
		return diagnose.StateSilent
	}
	return string(diagnose.RoleStandby)
}

// ledLast reports whether a node was the leader when it last registered, but no longer leads.
func ledLast(n redislock.Node, p redislock.ElectionState) bool {
	return n.ID != p.Leader && n.State == string(diagnose.RoleLeading) && p.Now.Sub(n.Seen()) > missingAfter
}
