package balance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// These limits apply to handovers.
const (
	// peerSettles is the time that a node must have been live before it gets a lock.
	peerSettles = 3 * time.Second
	// nextMover is a time without any change. After that time the node with the second most locks hands a lock over, because the node with
	// the most locks may have runs that do not end.
	nextMover = time.Minute
	// forgetLost is the time after which a node's lost lease is forgotten. Nodes that have died are listed for a shorter time.
	forgetLost = 2 * time.Minute
	// mostAtOnce limits the number of locks that a node hands over at once if it leads far more than others. Each handover costs one or two
	// round trips.
	mostAtOnce = 16
)

// handover says which lock is handed over, to which node, and why.
type handover struct {
	lock, to, reason string
}

// memory holds the facts that a Balancer remembers from one reading of the elections to the next.
type memory struct {
	since    map[string]time.Time // since when each peer has been live
	lost     map[string]time.Time // until when, by Redis' clock, each node led a lock that it has lost
	states   map[string]lockState // states of the locks at the last reading
	at       time.Time            // time of the last reading, by Redis' clock
	changed  time.Time            // when a state last changed
	handing  []*handover          // handovers that are under way
	giveUpAt time.Time            // when these handovers count as failed
	rests    time.Time            // before this time no lock is handed over
	later    map[string]time.Time // for each lock, the time before which other locks go first
}

// lockState is the part of a lock's state on which a handover depends. The state may change for all nodes at the same moment, for example
// when the last node of a higher priority goes. The nodes must not all hand over a lock at that moment.
type lockState struct {
	leader            string
	barred, outranked bool
}

func newMemory() memory {
	return memory{
		since: map[string]time.Time{}, lost: map[string]time.Time{}, states: map[string]lockState{}, later: map[string]time.Time{},
	}
}

// suspected reports whether a node has not registered since one of its leases ran out, or since it did not take a lock that was handed to
// it. Such a node may be dead, although it is listed as live for another minute.
func (w *memory) suspected(id string, seen time.Time) bool {
	lost, ok := w.lost[id]
	return ok && !seen.After(lost)
}

// learn records the state that a reading of the elections has shown.
func (w *memory) learn(now time.Time, s *snapshot) {
	stands := map[string]lockState{}
	for _, c := range s.candidacies {
		stands[c.lock] = lockState{c.leader, c.barred, c.outranked(s.self)}
		if before := w.states[c.lock].leader; before != "" && before != c.leader && before != s.self {
			// The former leader may have died, and then its lease has ended by now. Or it has stepped down, and then it registers as a
			// standby at once.
			w.lost[before] = w.at
		}
	}
	if !maps.Equal(stands, w.states) {
		w.changed = now
	}
	w.states, w.at = stands, s.now
	w.follow(now, s)
	s.complete(w.suspected)

	maps.DeleteFunc(w.since, func(id string, _ time.Time) bool { _, there := s.peers[id]; return !there })
	for id := range s.peers {
		if _, known := w.since[id]; !known {
			w.since[id] = now
		}
	}
	maps.DeleteFunc(w.lost, func(_ string, at time.Time) bool { return s.now.Sub(at) > forgetLost })
}

// follow finds out how each handover has ended.
func (w *memory) follow(now time.Time, s *snapshot) {
	w.handing = slices.DeleteFunc(w.handing, func(m *handover) bool {
		leader := w.states[m.lock].leader
		failed := now.After(w.giveUpAt) || leader != "" && leader != s.self
		if leader != m.to && failed {
			w.lost[m.to] = s.now
		}
		return leader == m.to || failed
	})
}

// noteHandover records that a handover has begun. The next decision is made only when all handovers have ended.
func (w *memory) noteHandover(now time.Time, m *handover, lease time.Duration) {
	w.handing, w.giveUpAt = append(w.handing, m), now.Add(2*lease)
}

// failedHandover ends the latest handover, whose order has failed.
func (w *memory) failedHandover(now time.Time, lease time.Duration) {
	w.handing, w.rests = w.handing[:len(w.handing)-1], now.Add(lease)
}

// postpone lets other locks go first, because this lock cannot be handed over now.
func (w *memory) postpone(now time.Time, lock string) { w.later[lock] = now.Add(nextMover) }

// decide chooses locks to hand over: one lock, or several locks if other nodes lead far fewer locks. If all nodes see the same state, only
// one of them hands over at a time. Every handover reduces a difference of two or more between two nodes, so the handovers come to an end.
func (w *memory) decide(now time.Time, s *snapshot) (handovers []*handover) {
	ours, ok := s.peers[s.self]
	if !ok || len(w.handing) > 0 || now.Before(w.rests) || s.unsettled() {
		return nil
	}
	least := slices.Min(slices.Collect(maps.Values(s.peers)))
	after := snapshot{self: s.self, candidacies: slices.Clone(s.candidacies), peers: maps.Clone(s.peers)}
	for range min(max((ours-least)/4, 1), mostAtOnce) {
		m := w.next(now, &after)
		if m == nil {
			break
		}
		handovers = append(handovers, m)
		after.candidacies = slices.DeleteFunc(after.candidacies, func(c candidacy) bool { return c.lock == m.lock })
		after.peers[m.to]++
		after.peers[s.self]--
	}
	for _, m := range handovers {
		m.reason = fmt.Sprintf("%s leads %d of %d locks, %s %d", m.to, s.peers[m.to], len(s.candidacies), s.self, ours)
	}
	return handovers
}

// next chooses a handover. It returns nil if no lock should be handed over.
func (w *memory) next(now time.Time, s *snapshot) *handover {
	ours := s.peers[s.self]
	turn := time.Duration(s.rank()) * nextMover
	ids := slices.Collect(maps.Keys(s.peers))
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(s.peers[a], s.peers[b]), cmp.Compare(a, b)) })
	for _, id := range ids {
		if s.peers[id] > ours-2 {
			break
		}
		if there := now.Sub(w.since[id]) - peerSettles; there < 0 || min(there, now.Sub(w.changed)) < turn {
			continue
		}
		for _, c := range s.candidacies {
			to, _ := c.find(id)
			if !c.leads || !c.idle || c.barred || to.CoolingDown || c.outranked(s.self) || now.Before(w.later[c.lock]) {
				continue
			}
			return &handover{lock: c.lock, to: id}
		}
	}
	return nil
}

// rank returns how many peers hand over before this node: the peers that lead more locks, or that lead as many locks and have a smaller
// name.
func (s *snapshot) rank() int {
	n := 0
	for id, leads := range s.peers {
		if ours := s.peers[s.self]; leads > ours || leads == ours && id < s.self {
			n++
		}
	}
	return n
}
