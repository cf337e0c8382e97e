package diagnose

import (
	"slices"
	"time"

	"baton/internal/job"
)

// ClockOff is the offset from which a clock counts as wrong: the leader's clock decides the slots.
const ClockOff = time.Second

// ClockOffset is how far the clock of the node's host is ahead of that of Redis.
func (n Node) ClockOffset() time.Duration { return n.ClockAhead.Duration() }

// SlotsByRedis reports whether the clock of the node's host is so wrong that its slots come by the clock of Redis.
func (n Node) SlotsByRedis() bool { return n.ClockOffset().Abs() > job.WrongClock }

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

// Unsettled reports whether a node that drifts still has time: a change of the jobs reaches one node after the other.
func (s Snapshot) Unsettled(n Node) bool {
	changed := n.ConfigSince
	for _, other := range s.Nodes {
		if s.leads(other.ID) && other.ConfigSince.After(changed) {
			changed = other.ConfigSince
		}
	}
	return !changed.IsZero() && s.Clock().Sub(changed) <= s.RolloutWithin.Duration()
}

// Jobless reports whether every live node reports that its configuration has no jobs: then none campaigns.
func (s Snapshot) Jobless() bool {
	live := 0
	for _, n := range s.Nodes {
		switch {
		case n.Silent():
		case n.Jobs == nil || *n.Jobs > 0 || !n.Observer:
			return false
		default:
			live++
		}
	}
	return live > 0
}

// CouldLead reports whether a node that does not lead could take over.
func (s Snapshot) CouldLead(n Node) bool {
	return !s.leads(n.ID) && !n.Silent() && !n.Observer && n.Aside == ""
}

// HandoverWithin is how long a lock may be free after its leader released it in order, before that is a problem.
const HandoverWithin = 10 * time.Second

// InOrder reports whether a term ended as its leader wanted: by a step-down, a reload, a shutdown, or to spread the locks.
func (e Event) InOrder() bool { return e.Event == "stepped_down" || e.Event == "released" }

// HandedOver is the event by which the last leader under a lock has just released it in order, while no node leads under it yet and
// another could; nil otherwise. "" is the node's own lock.
func (s Snapshot) HandedOver(lock string) *Event {
	leader, last := s.Leader, (*Event)(nil)
	if len(s.Events) > 0 {
		last = &s.Events[0]
	}
	for _, l := range s.Locks {
		if lock != "" && l.Key == lock {
			leader, last = l.Leader, l.Last
		}
	}
	if leader != nil || last == nil || !last.InOrder() || s.Clock().Sub(last.At) >= HandoverWithin || s.Count().MayLead == 0 {
		return nil
	}
	return last
}

// Census counts the nodes of an election.
type Census struct {
	Live    int // seen lately
	Silent  int // not seen lately, and without a farewell
	Ready   int // could take over
	MayLead int // live, and may lead, even if it stands aside for a while
	Drifted int // live, with another configuration than the leader
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
