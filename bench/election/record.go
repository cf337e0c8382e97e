package main

import (
	"slices"
	"sync"
	"time"

	"baton/internal/heartbeat"
)

// spell is a time during which one process acted, or would have acted with a free processor.
type spell struct {
	node     string
	from, to heartbeat.Instant
	acts     int
}

// record holds the spells of one trial.
type record struct {
	mu     sync.Mutex
	spells []spell
	open   map[string]int               // node → its current spell
	thaws  map[string]heartbeat.Instant // the last thaw of each process that was stopped
}

func newRecord() *record {
	return &record{open: map[string]int{}, thaws: map[string]heartbeat.Instant{}}
}

// thaw records that a stopped process continues. The process's open spell ended when the process was stopped, and its later acts are
// another spell.
func (r *record) thaw(node string, at heartbeat.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.thaws[node] = at
}

// note records a report of a node's witness. A spell lasts until the process got the order to stop, because the process may have acted
// until then.
func (r *record) note(node, word string, at heartbeat.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, open := r.open[node]
	stops := word == wordEnd || word == wordQuit
	woke := open && r.thaws[node] > r.spells[i].to && at >= r.thaws[node]
	switch {
	case open && !woke && word != wordStart:
		r.spells[i].to = at
		if !stops {
			r.spells[i].acts++
		}
	case word == wordEnd:
		// The process continued as a leader, and got the order to stop before it acted.
		r.spells = append(r.spells, spell{node: node, from: at, to: at})
	case !stops:
		r.open[node] = len(r.spells)
		r.spells = append(r.spells, spell{node: node, from: at, to: at, acts: 1})
	}
	if stops {
		delete(r.open, node)
	}
}

// ended closes the spell of a process that is gone.
func (r *record) ended(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, node)
}

// sofar returns a copy of the spells so far.
func (r *record) sofar() []spell {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spells)
}

// until returns the spells up to a moment in the past. Spells that were not over at that moment end at that moment.
func (r *record) until(end heartbeat.Instant) []spell {
	r.mu.Lock()
	defer r.mu.Unlock()
	var before []spell
	for i, s := range r.spells {
		if j, open := r.open[s.node]; open && i == j {
			s.to = end
		}
		if s.from <= end {
			s.to = min(s.to, end)
			before = append(before, s)
		}
	}
	return before
}

// acting returns the nodes with an open spell, the latest spell first.
func (r *record) acting() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var nodes []string
	for i, s := range slices.Backward(r.spells) {
		if j, open := r.open[s.node]; open && i == j {
			nodes = append(nodes, s.node)
		}
	}
	return nodes
}

// firstOther finds the time, after a moment, when a process other than node began to act.
func firstOther(spells []spell, node string, after heartbeat.Instant) (heartbeat.Instant, bool) {
	for _, s := range spells {
		if s.node != node && s.from > after {
			return s.from, true
		}
	}
	return 0, false
}

// change is a moment when the number of acting processes changes.
type change struct {
	at heartbeat.Instant
	by int
}

// changes returns the changes by time. At the same moment, ends come first.
func changes(spells []spell) []change {
	var all []change
	for _, s := range spells {
		all = append(all, change{s.from, 1}, change{s.to, -1})
	}
	slices.SortStableFunc(all, func(a, b change) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.by - b.by
	})
	return all
}

// overlap returns how long two or more processes acted at the same time.
func overlap(spells []spell) time.Duration {
	var total time.Duration
	acting := 0
	var since heartbeat.Instant
	for _, c := range changes(spells) {
		if acting > 1 {
			total += c.at.Sub(since)
		}
		acting += c.by
		since = c.at
	}
	return total
}

// settled returns the time, later than after, when a process began to act that was then the only one until the end. It returns false if
// there is no such time.
func settled(spells []spell, after, end heartbeat.Instant) (heartbeat.Instant, bool) {
	at, acting, alone := after, 0, false
	for _, c := range changes(spells) {
		if c.at == end && c.by < 0 {
			break // it acts on, but the record ends here
		}
		acting += c.by
		if one := acting == 1; one != alone {
			alone, at = one, max(c.at, after)
		}
	}
	return at, alone
}
