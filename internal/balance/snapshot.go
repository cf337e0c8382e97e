package balance

import (
	"hash/fnv"
	"slices"
	"time"
)

// snapshot is the elections of a node at one moment.
type snapshot struct {
	self        string
	now         time.Time // by Redis' clock
	lease       time.Duration
	candidacies []candidacy
	of          map[string]candidacy // the same by lock, after all were added
	// reluctant: this node recently stepped down by an operator's order.
	reluctant bool
	// peers are the nodes that share this one's locks, itself included, with the number of the locks that each leads. A node counts only
	// if it contends for the same locks under the same terms. The configuration must be the same: the leaders of another configuration's
	// locks are not visible from here, and two nodes that count differently would hand a lock to and fro. The priority must be the same,
	// since a node of a higher priority goes first.
	peers map[string]int
}

// candidacy is one of these elections, and this node's part in it.
type candidacy struct {
	lock   string
	leads  bool   // this node leads, by its own knowledge
	idle   bool   // a handover would cut off no run
	leader string // by Redis
	free   bool   // no client holds the lock
	barred bool   // it cannot change hands now: paused, in quarantine, or an order is under way
	nodes  []Node
}

// add adds one election, at the time and with the lease that e shows.
func (s *snapshot) add(c candidacy, e Election) {
	s.candidacies = append(s.candidacies, c)
	s.now, s.lease = e.Now, max(s.lease, e.Lease)
}

// candidacyOf is an election as Redis has it, and this node's part in it.
func candidacyOf(lockKey string, leads, idle bool, e Election) candidacy {
	return candidacy{lock: lockKey, leads: leads, idle: idle, leader: e.Leader, free: e.Free, barred: e.Barred, nodes: e.Nodes}
}

// complete finds the peers, after all elections were added. Nodes suspected to be dead do not count.
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
			return // not even this node is listed yet
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

// saysReluctant reports whether a node does in any of the elections.
func (s *snapshot) saysReluctant(id string) bool {
	return slices.ContainsFunc(s.candidacies, func(c candidacy) bool {
		n, _ := c.find(id)
		return n.Reluctant
	})
}

// seen is when each node last registered in any of the elections.
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

// unsettled reports that a lock is about to change hands, or has just done so.
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

// Delays before a free lock:
const (
	// shortestAcquireDelay is enough for nodes that lead less to ask: a hint, and a round trip.
	shortestAcquireDelay = 150 * time.Millisecond
	acquireDelayStep     = 50 * time.Millisecond // for each lock beyond the share
	longestAcquireDelay  = 400 * time.Millisecond
)

// role is this node's part in one election: whether it leads.
type role struct {
	lock string
	ours bool
}

// acquireDelayFor is how long a node leaves a free lock to others: not at all while it leads fewer than its share, and hardly if no node
// leads fewer. s is the state at the last reading, nil before the first one.
//
// If many locks are free at once, as at the start or after a quarantine, no node leads any, and the first to ask would win them all. So
// each node asks for them one after the other, and each in an order of its own.
//
// Every attempt at every lock calls this: its time may grow in proportion to the locks, no more.
func acquireDelayFor(self, lockKey string, roles []role, s *snapshot) time.Duration {
	if s == nil {
		return inTurn(self, lockKey, roles, s, longestAcquireDelay)
	}
	if len(s.peers) < 2 || s.of[lockKey].outranked(self) {
		return 0
	}
	if s.reluctant {
		if !s.rivals(lockKey, len(roles)+1) {
			return 0 // the last other node has died: there is no node to leave it to
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
	// Two nodes that lead as many must not ask at the same moments for all of several locks.
	chance := time.Duration(taste(self, lockKey)%uint32(acquireDelayStep/time.Millisecond)) * time.Millisecond
	if !s.rivals(lockKey, ours) {
		return chance
	}
	return min(shortestAcquireDelay+time.Duration(ours-share)*acquireDelayStep+chance, longestAcquireDelay)
}

// inTurn is how long a node waits so that it asks first for the free locks that come first in its order: a step for each, most at most.
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

// rivals reports whether a peer has a better claim to the lock than a node that leads that many: it leads fewer. The node that has lost
// the lock does not count, since it most likely died.
func (s *snapshot) rivals(lockKey string, ours int) bool {
	last := s.of[lockKey].leader
	for id, leads := range s.peers {
		if id != s.self && id != last && leads < ours {
			return true
		}
	}
	return false
}

// outranked reports that a live node of a higher priority contends for the lock: it goes first, and nothing is spread.
func (c candidacy) outranked(self string) bool {
	me, _ := c.find(self)
	return slices.ContainsFunc(c.nodes, func(n Node) bool { return n.Priority > me.Priority && !n.CoolingDown })
}

// taste puts locks in an order that differs from node to node.
func taste(nodeID, lockKey string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(nodeID + "\x00" + lockKey)) // it never fails
	return h.Sum32()
}
