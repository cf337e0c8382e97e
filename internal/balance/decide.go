package balance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Of handovers:
const (
	// peerSettles is how long a node must have been live before it gets a lock.
	peerSettles = 3 * time.Second
	// nextMover is the time without any change after which the node with the second most locks hands one over, although another has more:
	// that one may have runs that do not end.
	nextMover = time.Minute
	// forgetLost is when a node's lost lease is forgotten: nodes that have died are listed for a shorter time.
	forgetLost = 2 * time.Minute
	// mostAtOnce is how many locks a node hands over at once, if it leads far more than others: each costs a round trip or two.
	mostAtOnce = 16
)

// handover is a lock to hand over.
type handover struct {
	lock, to, reason string
}

// memory is the knowledge that lasts from reading to reading.
type memory struct {
	since    map[string]time.Time // of peers: since when they have been live
	lost     map[string]time.Time // of nodes: until when, by Redis' clock, they led a lock that they have lost
	states   map[string]lockState // of locks, at the last reading
	at       time.Time            // of the last reading, by Redis' clock
	changed  time.Time            // when a state last changed
	handing  []*handover          // under way
	giveUpAt time.Time            // on them
	rests    time.Time            // before this time no lock is handed over
	later    map[string]time.Time // before this time other locks go first
}

// lockState is the state that a lock's handover depends on. If it changes for all nodes at once, as when the last node of a higher
// priority goes, they must not all hand over in the same moment.
type lockState struct {
	leader            string
	barred, outranked bool
}

func newMemory() memory {
	return memory{
		since: map[string]time.Time{}, lost: map[string]time.Time{}, states: map[string]lockState{}, later: map[string]time.Time{},
	}
}

// suspected reports that a node has not registered since a lease of its ran out, or since it did not take a lock that was handed to it:
// others list it as live for a minute longer.
func (w *memory) suspected(id string, seen time.Time) bool {
	lost, ok := w.lost[id]
	return ok && !seen.After(lost)
}

// learn notes the state at a reading.
func (w *memory) learn(now time.Time, s *snapshot) {
	stands := map[string]lockState{}
	for _, c := range s.candidacies {
		stands[c.lock] = lockState{c.leader, c.barred, c.outranked(s.self)}
		if before := w.states[c.lock].leader; before != "" && before != c.leader && before != s.self {
			// It may have died, at the latest now: its lease has ended. Or it has stepped down, and registers as a standby at once.
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

// follow finds out how a handover ended.
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

// noteHandover begins one: until those under way are over no other lock is handed over.
func (w *memory) noteHandover(now time.Time, m *handover, lease time.Duration) {
	w.handing, w.giveUpAt = append(w.handing, m), now.Add(2*lease)
}

// failedHandover ends the last one, whose order has failed.
func (w *memory) failedHandover(now time.Time, lease time.Duration) {
	w.handing, w.rests = w.handing[:len(w.handing)-1], now.Add(lease)
}

// postpone lets other locks go first: this one cannot be handed over now.
func (w *memory) postpone(now time.Time, lock string) { w.later[lock] = now.Add(nextMover) }

// decide chooses locks to hand over: one, or several if others lead far less. If all nodes see the same state, only one hands over at a
// time, and every handover brings two nodes nearer that were two or more apart: so it comes to an end.
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

// next chooses one, or nil.
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

// rank is how many peers hand over before this one: those that lead more, or as many and have the smaller name.
func (s *snapshot) rank() int {
	n := 0
	for id, leads := range s.peers {
		if ours := s.peers[s.self]; leads > ours || leads == ours && id < s.self {
			n++
		}
	}
	return n
}
