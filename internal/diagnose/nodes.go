package diagnose

import (
	"slices"
	"time"
)

// ClockOff is from when on a clock is called wrong: slots go by the leader's.
const ClockOff = time.Second

// ClockOffset is how far the clock of the node's host is ahead of that of Redis.
func (n Node) ClockOffset() time.Duration { return time.Duration(n.ClockOffsetMS) * time.Millisecond }

// IsClockOff reports whether the clock of the node's host is wrong.
func (n Node) IsClockOff() bool { return n.ClockOffset().Abs() >= ClockOff }

// leads reports whether the node holds the lock.
func (s Snapshot) leads(id string) bool {
	return s.Leader != nil && !s.Leader.Foreign && s.Leader.NodeID == id
}

// Drifted reports whether a node would run other jobs than the leader does.
func (s Snapshot) Drifted(n Node) bool {
	leader := slices.IndexFunc(s.Nodes, func(other Node) bool { return s.leads(other.ID) })
	return leader >= 0 && !n.Silent() && n.ConfigHash != s.Nodes[leader].ConfigHash
}

// CouldLead reports whether a node that does not lead could take over.
func (s Snapshot) CouldLead(n Node) bool {
	return !s.leads(n.ID) && !n.Silent() && !n.Observer && n.Aside == ""
}

// Census counts the nodes of an election.
type Census struct {
	Live    int // seen lately
	Silent  int // not heard of since, and without a farewell
	Ready   int // could take over
	MayLead int // live, and may lead: also one that stands aside for a while
	Drifted int // live, and configured otherwise than the leader
}

// Count counts the nodes.
func (s Snapshot) Count() (c Census) {
	for _, n := range s.Nodes {
		if n.Silent() {
			c.Silent++
			continue
		}
		c.Live++
		if !n.Observer {
			c.MayLead++
		}
		if s.CouldLead(n) {
			c.Ready++
		}
		if s.Drifted(n) {
			c.Drifted++
		}
	}
	return c
}
