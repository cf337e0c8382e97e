package redislock

import (
	"slices"
	"time"
)

const (
	// GoneAfter is the maximum age of a live node's last heartbeat: two heartbeat intervals
	// and a poll.
	GoneAfter = time.Minute
	// ForgottenAfter is the maximum age of the last heartbeat of a listed node.
	ForgottenAfter = 24 * time.Hour
)

// Candidates are the live nodes that may lead.
func (p Picture) Candidates() []Node {
	var nodes []Node
	for _, n := range p.Nodes {
		if !n.Observer && p.Now.Sub(n.Seen()) <= GoneAfter {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// ConfigSince is since when the node's configuration is in force, by Redis' clock; zero if the node does not say.
func (n Node) ConfigSince() time.Time {
	if n.ConfigMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n.ConfigMS - n.ClockMS)
}

// Drifts reports whether a node would run other jobs than the leader does.
func (p Picture) Drifts(n Node) bool {
	leads := slices.IndexFunc(p.Nodes, func(other Node) bool { return other.ID == p.Leader })
	return leads >= 0 && p.Owner != "" && p.Now.Sub(n.Seen()) <= GoneAfter && n.ConfigHash != p.Nodes[leads].ConfigHash
}
