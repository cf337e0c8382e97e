package diagnose

import (
	"cmp"
	"slices"

	"baton/internal/text"
)

// Aged is for a state that could not be refreshed since it was read. It reduces this state to the parts that may still be true. s.Age is
// the age of the state, and s.Error is the reason why it could not be refreshed. The status page, the API and the commands all show the
// reduced state. If the leader's lease must have ended since the state was read, the leader no longer leads. Its runs have also ended,
// because they end before the lease does. It is unknown whether another node leads. Aged does not change a fresh state.
func Aged(s Snapshot) Snapshot {
	if s.Error == "" {
		return s
	}
	over := map[string]bool{}
	// A leader knows that it leads, so another part of the state could not be read.
	leads := s.Role == RoleLeading && s.Leader != nil && s.Leader.NodeID == s.NodeID
	if l := s.Leader; l.lapsed(s.Age) && !leads {
		over[s.LockKey] = true
		s.Leader, s.LastLeader, s.Vacancy = nil, l, l.ledLast()
		s.Nodes = slices.Clone(s.Nodes)
		for i, n := range s.Nodes {
			switch {
			case n.State != string(RoleLeading) || n.ID != l.NodeID:
			case n.ID == s.NodeID: // this node has reported the state
				s.Nodes[i].State = string(RoleStandby)
			default:
				s.Nodes[i].State, s.Nodes[i].Led = StateSilent, true
			}
		}
	}
	s.Locks = slices.Clone(s.Locks)
	for i, l := range s.Locks {
		if l.Leader.lapsed(s.Age) {
			over[l.Key] = true
			s.Locks[i].Leader, s.Locks[i].Vacancy = nil, l.Leader.ledLast()
		}
	}
	s.Jobs = slices.Clone(s.Jobs)
	for i, j := range s.Jobs {
		if over[cmp.Or(j.Lock, s.LockKey)] {
			s.Jobs[i].Running, s.Jobs[i].Open, s.Jobs[i].Awaited = nil, nil, false
		}
	}
	return s
}

// lapsed reports whether the leader's lease must have ended. The argument age is the time since the leader was last seen.
func (l *Leader) lapsed(age text.Seconds) bool {
	return l != nil && l.LeaseLeft >= 0 && age >= l.LeaseLeft
}

// ledLast returns a text that describes a leader whose lease has ended.
func (l *Leader) ledLast() string {
	who := cmp.Or(l.NodeID, "an unnamed node")
	if l.Foreign {
		who = "another program"
	}
	return "the leader is unknown: " + who + " led when last seen, and its lease has run out since"
}
