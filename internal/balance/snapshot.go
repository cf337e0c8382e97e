package balance

import (
	"hash/fnv"
	"slices"
	"time"
)

// snapshot is the state of a node's elections at one moment.
type snapshot struct {
	self        string
	now         time.Time // by Redis' clock
	lease       time.Duration
	candidacies []candidacy
	of          map[string]candidacy // the candidacies by lock; set by complete
	// reluctant means that this node recently stepped down by an operator's order.
	reluctant bool
	// peers maps each node that shares this node's locks, and this node itself, to the number of locks that it leads. A node counts only if
	// it contends for the same locks under the same conditions. The configuration must be the same, because this node cannot see the
	// leaders of another configuration's locks, and two nodes that count differently would hand a lock back and forth. The priority must be
	// the same, because a node of a higher priority goes first.
	peers map[string]int
}

// candidacy describes one election, and this node's part in that election.
type candidacy struct {
	lock   string
	leads  bool   // this node leads, by its own knowledge
	idle   bool   // a handover would cut off no run
	leader string // the leader's id, by Redis
	free   bool   // no client holds the lock
	barred bool   // the lock cannot change hands now: paused, in quarantine, or an order is under way
	nodes  []Node
}

// add adds one election. The snapshot takes its time and its lease from the election e.
func (s *snapshot) add(c candidacy, e Election) {
	s.candidacies = append(s.candidacies, c)
	s.now, s.lease = e.Now, max(s.lease, e.Lease)
}

// candidacyOf returns the state of an election in Redis, with this node's part in it.
func candidacyOf(lockKey string, leads, idle bool, e Election) candidacy {
	return candidacy{lock: lockKey, leads: leads, idle: idle, leader: e.Leader, free: e.Free, barred: e.Barred, nodes: e.Nodes}
}

// complete finds the peers, which are the nodes that share this node's locks, after all elections were added. It skips reluctant nodes, and
// nodes that are suspected to be dead.
func (s *snapshot) complete(suspected func(id string, seen time.Time) bool) {
	s.of = make(map[string]candidacy, len(s.candidacies))
	for _, c := range s.candidacies {
		s.of[c.lock] = c
	}
	s.reluctant = s.saysReluctant(s.self)
	s.peers = map[string]int{}
	count := map[string]int{}
	seen := s.seen()
	for _, c := range s.candidacies {
		me, ok := c.find(s.self)
		if !ok {
			return // even this node is not listed yet
		}
		for _, n := range c.nodes {
			if n.Priority == me.Priority && n.Config == me.Config {
				count[n.ID]++
			}
		}
	}
	for id, n := range count {
		if n == len(s.candidacies) && (id == s.self || !suspected(id, seen[id]) && !s.saysReluctant(id)) {
			s.peers[id] = 0
		}
	}
	for _, c := range s.candidacies {
		if _, ok := s.peers[c.leader]; ok {
			s.peers[c.leader]++
		}
	}
}

// saysReluctant reports whether a node is reluctant in any of the elections. A reluctant node takes no lock to spread the work.
func (s *snapshot) saysReluctant(id string) bool {
	return slices.ContainsFunc(s.candidacies, func(c candidacy) bool {
		n, _ := c.find(id)
		return n.Reluctant
	})
}

// seen returns when each node last registered in any of the elections.
func (s *snapshot) seen() map[string]time.Time {
	latest := map[string]time.Time{}
	for _, c := range s.candidacies {
		for _, n := range c.nodes {
			if n.Seen.After(latest[n.ID]) {
				latest[n.ID] = n.Seen
			}
		}
	}
	return latest
}

// unsettled reports whether a lock is about to change hands, or has just changed hands.
func (s *snapshot) unsettled() bool {
	return slices.ContainsFunc(s.candidacies, func(c candidacy) bool {
		return c.free && !c.barred || c.leads != (c.leader == s.self)
	})
}

func (c candidacy) find(id string) (Node, bool) {
	i := slices.IndexFunc(c.nodes, func(n Node) bool { return n.ID == id })
	if i < 0 {
		return Node{}, false
	}
	return c.nodes[i], true
}

// These are the delays before a node asks for a free lock.
const (
	// shortestAcquireDelay is long enough for nodes that lead fewer locks to ask first: they need a hint and a round trip.
	shortestAcquireDelay = 150 * time.Millisecond
	acquireDelayStep     = 50 * time.Millisecond // for each lock more than the share
	longestAcquireDelay  = 400 * time.Millisecond
)

// role says whether this node leads one election.
type role struct {
	lock string
	ours bool
}

// acquireDelayFor returns how long a node leaves a free lock to others. The delay is 0 while the node leads fewer locks than its share, and
// very short if no other node leads fewer. s is the state at the last reading, or nil before the first reading.
//
// Many locks may be free at the same moment, for example at the start or after a quarantine. Then no node leads a lock, and the first node
// that asks would win all locks. So each node asks for the locks one after the other, in an order that differs from node to node.
//
// Every attempt at every lock calls acquireDelayFor, so its running time must not grow faster than the number of locks.
func acquireDelayFor(self, lockKey string, roles []role, s *snapshot) time.Duration {
	if s == nil {
		return inTurn(self, lockKey, roles, s, longestAcquireDelay)
	}
	if len(s.peers) < 2 || s.of[lockKey].outranked(self) {
		return 0
	}
	if s.reluctant {
		if !s.rivals(lockKey, len(roles)+1) {
			return 0 // the last other node has died, so no node could take the lock
		}
		return longestAcquireDelay
	}
	ours := 0
	for _, p := range roles {
		if p.ours {
			ours++
		}
	}
	share := (len(roles) + len(s.peers) - 1) / len(s.peers)
	if ours < share {
		return inTurn(self, lockKey, roles, s, shortestAcquireDelay)
	}
	// Two nodes that lead the same number of locks must not ask for several locks at the same moments.
	chance := time.Duration(taste(self, lockKey)%uint32(acquireDelayStep/time.Millisecond)) * time.Millisecond
	if !s.rivals(lockKey, ours) {
		return chance
	}
	return min(shortestAcquireDelay+time.Duration(ours-share)*acquireDelayStep+chance, longestAcquireDelay)
}

// inTurn returns how long a node waits before it asks for a free lock. The node waits one step for each free lock that is earlier in the
// node's own order, but not longer than the argument most.
func inTurn(self, lockKey string, roles []role, s *snapshot, most time.Duration) time.Duration {
	if s != nil && !s.of[lockKey].free {
		return 0
	}
	wait, mine := time.Duration(0), taste(self, lockKey)
	for _, p := range roles {
		if wait >= most {
			return most
		}
		if !p.ours && (s == nil || s.of[p.lock].free) && taste(self, p.lock) < mine {
			wait += acquireDelayStep
		}
	}
	return min(wait, most)
}

// rivals reports whether a peer leads fewer locks than the argument ours, so that the peer has a better claim to the lock. The node that
// has lost the lock does not count, because it has most likely died.
func (s *snapshot) rivals(lockKey string, ours int) bool {
	last := s.of[lockKey].leader
	for id, leads := range s.peers {
		if id != s.self && id != last && leads < ours {
			return true
		}
	}
	return false
}

// outranked reports whether a live node of a higher priority contends for the lock. Such a node goes first, so the lock is not used for
// spreading.
func (c candidacy) outranked(self string) bool {
	me, _ := c.find(self)
	return slices.ContainsFunc(c.nodes, func(n Node) bool { return n.Priority > me.Priority && !n.CoolingDown })
}

// taste returns a number for a lock. If the locks are sorted by this number, their order differs from node to node.
func taste(nodeID, lockKey string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(nodeID + "\x00" + lockKey)) // Write of a hash never returns an error
	return h.Sum32()
}
