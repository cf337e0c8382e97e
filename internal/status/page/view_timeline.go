package page

import (
	"slices"
	"time"

	"baton/internal/diagnose"
)

// timelineView shows the terms of nodes under each lock.
type timelineView struct {
	Lanes    []laneView
	Legend   []colourView
	Ticks    []tickView
	Terms    []termView // the latest term first
	From, To instant
	Text     string // the same information as a text, for screen readers
	Events   []eventView
	Cut      bool // there may be earlier terms
	Many     bool // there is more than one lock
	MoreRows string
	Ranges   []rangeView
	Hatches  []tone // the tones of the gaps
}

type termView struct {
	Node, Epoch, Why, Won string
	Lock, Colour          string
	From, To              instant
	For                   string
	Held                  instant // the time since the beginning of a term in progress
	Tone                  tone
	Open, Cut             bool // the term is in progress; the term began before the known history
}

// term is one node's time as leader under a lock.
type term struct {
	lock           string
	node, why, won string
	epoch          int64
	from, to       time.Time
	tone           tone
	open, cut      bool
	inOrder        bool // the leader gave up the lead in an orderly way
	paused         bool // the term ended because an operator paused the election
}

// terms returns the terms that the events of s describe, the oldest term first.
func terms(s diagnose.Snapshot, now time.Time) (all []term) {
	var current *term
	end := func(at time.Time, why string, t tone) {
		if current != nil {
			current.to, current.why, current.tone = at, why, t
			all = append(all, *current)
			current = nil
		}
	}
	for i, e := range slices.Backward(s.Events) {
		switch e.Event {
		case "won":
			if current != nil {
				end(ledUntil(s, *current, e.At, now), "its lease ran out, and "+e.NodeID+" took over", bad)
			}
			current = &term{node: e.NodeID, epoch: e.Epoch, from: e.At, won: clip(e.Reason)}
		case "lost", "expired", "stepped_down", "released":
			if current == nil && i == len(s.Events)-1 { // the term began before the known history
				current = &term{node: e.NodeID, epoch: e.Epoch, from: e.At.Add(-time.Minute), cut: true}
			}
			if current != nil && current.node == e.NodeID {
				at := e.At
				if e.Event == "expired" { // the next leader wrote this event, perhaps much later
					at = leaseOver(e.Over, current.from, ledUntil(s, *current, e.At, now))
				}
				current.inOrder, current.paused = e.InOrder(), e.Code == "paused"
				end(at, ended(e), eventTone(e.Event))
			}
		}
	}
	if l := s.Leader; current == nil && l != nil && !l.Foreign && !l.Since.IsZero() && len(s.Events) == 0 {
		current = &term{node: l.NodeID, epoch: l.Epoch, from: l.Since}
	}
	if current == nil {
		return all
	}
	if s.Leader != nil && s.Leader.NodeID == current.node {
		current.open = true
	}
	switch l := s.LastLeader; {
	case current.open:
		end(now, "", good)
	case l != nil && l.NodeID == current.node:
		end(now.Add((l.LeaseLeft - s.Age).Duration()), "its lease probably ran out", bad)
	default:
		end(leaseOver(s.Held, current.from, ledUntil(s, *current, now, now)), "its lease ran out, and no node has taken over", bad)
	}
	return all
}

// leaseOver returns the end of a term's lease if that end is after the time from and before the time by. Otherwise it returns the time
// by.
func leaseOver(lease, from, by time.Time) time.Time {
	if lease.After(from) && lease.Before(by) {
		return lease
	}
	return by
}

// ledUntil returns the latest possible end of a term, if no node recorded that end and the term was certainly over at the time by. A silent
// node that led at its last report led at most SeenWithin longer, because otherwise it would have reported again. For any other node the
// end is unknown, and ledUntil returns the time by.
func ledUntil(s diagnose.Snapshot, t term, by, now time.Time) time.Time {
	for _, n := range s.Nodes {
		heard := now.Add(-(n.LastSeenAgo + s.Age).Duration())
		if over := heard.Add(diagnose.SeenWithin); n.ID == t.node && n.Silent() && n.Led &&
			heard.After(t.from) && over.Before(by) {
			return over
		}
	}
	return by
}

// ended returns the reason why a term ended.
func ended(e diagnose.Event) string {
	why := words(e.Event)
	if reason := e.Why(); reason != "" {
		why += ": " + clip(reason)
	}
	return why
}
