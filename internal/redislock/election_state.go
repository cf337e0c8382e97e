package redislock

import (
	"slices"
	"time"
)

const (
	// GoneAfter is the age of the last heartbeat above which a node does not count as live: two heartbeat intervals and a poll.
	GoneAfter = time.Minute
	// ForgottenAfter is the age of the last heartbeat above which a node leaves the list.
	ForgottenAfter = 24 * time.Hour
)

// Candidates returns the live nodes that may lead.
func (p ElectionState) Candidates() []Node {
	var nodes []Node
	for _, n := range p.Nodes {
		if !n.Observer && p.Now.Sub(n.Seen()) <= GoneAfter {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// ConfigSince returns when the node's configuration came into force, by Redis' clock. It is zero if the node does not report it.
func (n Node) ConfigSince() time.Time {
	if n.ConfigMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n.ConfigMS - n.ClockMS)
}

// Drifts reports whether the node would run other jobs than the leader, because their configurations differ.
func (p ElectionState) Drifts(n Node) bool {
	leads := slices.IndexFunc(p.Nodes, func(other Node) bool { return other.ID == p.Leader })
	return leads >= 0 && p.Owner != "" && p.Now.Sub(n.Seen()) <= GoneAfter && n.ConfigHash != p.Nodes[leads].ConfigHash
}
