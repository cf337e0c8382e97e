package diagnose

import (
	"slices"
	"time"

	"baton/internal/job"
)

// ClockOff is the minimum offset from which a clock counts as wrong. A wrong clock matters because the leader's clock decides when the
// slots are due.
const ClockOff = time.Second

// ClockOffset returns how far the clock of the node's host is ahead of Redis' clock.
func (n Node) ClockOffset() time.Duration { return n.ClockAhead.Duration() }

// SlotsByRedis reports whether the clock of the node's host is so wrong that the node uses Redis' clock to decide when its slots are due.
func (n Node) SlotsByRedis() bool { return n.ClockOffset().Abs() > job.WrongClock }

// IsClockOff reports whether the clock of the node's host is wrong.
func (n Node) IsClockOff() bool { return n.ClockOffset().Abs() >= ClockOff }

// leads reports whether the node with this id holds the lock.
func (s Snapshot) leads(id string) bool {
	return s.Leader != nil && !s.Leader.Foreign && s.Leader.NodeID == id
}

// Drifted reports whether a node's jobs differ from the jobs that the leader runs.
func (s Snapshot) Drifted(n Node) bool {
	leader := slices.IndexFunc(s.Nodes, func(other Node) bool { return s.leads(other.ID) })
	return leader >= 0 && !n.Silent() && n.ConfigHash != s.Nodes[leader].ConfigHash
}

// Unsettled reports whether a node that has drifted may still get its update. This is possible for a while after a change of the jobs,
// because the change reaches one node after the other.
func (s Snapshot) Unsettled(n Node) bool {
	changed := n.ConfigSince
	for _, other := range s.Nodes {
		if s.leads(other.ID) && other.ConfigSince.After(changed) {
			changed = other.ConfigSince
		}
	}
	return !changed.IsZero() && s.Clock().Sub(changed) <= s.RolloutWithin.Duration()
}

// Jobless reports whether all live nodes report that their configurations contain no jobs, so that no node campaigns. It returns false if
// the list of nodes is incomplete, because the missing nodes may have jobs.
func (s Snapshot) Jobless() bool {
	live := 0
	if s.NodesRead > 0 {
		return false
	}
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

// CouldLead reports whether a node could take over. It returns false for the leader itself.
func (s Snapshot) CouldLead(n Node) bool {
	return !s.leads(n.ID) && !n.Silent() && !n.Observer && n.Aside == ""
}

// HandoverWithin is how long a lock may be free after an orderly release before this counts as a problem.
const HandoverWithin = 10 * time.Second

// InOrder reports whether a term ended because the leader released the lock by itself. It does so for a step-down, a reload or a shutdown,
// or to spread the locks over the nodes.
func (e Event) InOrder() bool { return e.Event == "stepped_down" || e.Event == "released" }

// HandedOver returns the event of an orderly release, if the last leader under a lock has released it in this way a moment ago. It returns
// nil if a node already leads under that lock, or if no other node could lead. The lock "" means the node's own lock.
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

// Census counts the nodes of an election by their states.
type Census struct {
	Live    int // nodes that have registered recently
	Silent  int // nodes that have not registered recently and have not reported their end
	Ready   int // nodes that could take over
	MayLead int // live nodes that may lead, even if they let others lead for a while
	Drifted int // live nodes whose configuration differs from the leader's
}

// Count returns how many nodes of each kind the snapshot contains.
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
