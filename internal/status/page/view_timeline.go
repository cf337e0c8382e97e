package page

import (
	"fmt"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// timelineView is which node led when.
type timelineView struct {
	Rows     []timelineRow
	Terms    []termView // the latest first
	From, To instant
	Text     string // the same in words, for screen readers
	Events   []eventView
	Cut      bool // there may have been more before
}

type timelineRow struct {
	Node string
	Bars []bar
}

// bar is a term, in thousandths of the time that is shown.
type bar struct {
	X, Width string
	Text     string
	Tone     tone
}

type termView struct {
	Node, Epoch, Why, Won string
	From, To              instant
	For                   string
	Held                  instant // of one that goes on
	Tone                  tone
	Open, Cut             bool // it goes on; it began before what is known
}

// term is what one node had of the lead.
type term struct {
	node, why, won string
	epoch          int64
	from, to       time.Time
	tone           tone
	open, cut      bool
}

// terms are those of the events, the oldest first.
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
			if current == nil && i == len(s.Events)-1 { // the term began earlier
				current = &term{node: e.NodeID, epoch: e.Epoch, from: e.At.Add(-time.Minute), cut: true}
			}
			if current != nil && current.node == e.NodeID {
				at := e.At
				if e.Event == "expired" { // written by the next leader, maybe long after
					at = ledUntil(s, *current, e.At, now)
				}
				end(at, ended(e), eventTone(e.Event))
			}
		}
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
		end(now.Add(ms(l.LeaseLeftMS-s.AgeMS)), "its lease ran out, as far as is known", bad)
	default:
		end(ledUntil(s, *current, now, now), "its lease ran out, and no node has taken over", bad)
	}
	return all
}

// ledUntil is when a term ended at the latest whose end was not seen, but that was over by a
// time: its node last reported while it led, and would have reported again. Where
// it has reported since, that is not known.
func ledUntil(s diagnose.Snapshot, t term, by, now time.Time) time.Time {
	for _, n := range s.Nodes {
		heard := now.Add(-ms(n.LastSeenMSAgo + s.AgeMS))
		if over := heard.Add(diagnose.SeenWithin); n.ID == t.node && n.State == diagnose.StateMissing &&
			heard.After(t.from) && over.Before(by) {
			return over
		}
	}
	return by
}

// ended is why a term ended.
func ended(e diagnose.Event) string {
	why := words(e.Event)
	if reason := e.Why(); reason != "" {
		why += ": " + clip(reason)
	}
	return why
}

func newTimeline(s diagnose.Snapshot, now time.Time) timelineView {
	all := terms(s, now)
	if len(all) == 0 {
		return timelineView{}
	}
	from := all[0].from
	if full := now.Sub(from); full < time.Minute {
		from = now.Add(-time.Minute)
	}
	full := float64(now.Sub(from))
	v := timelineView{From: at(from.UTC(), now), To: at(now.UTC(), now)}
	v.To.Near = "now"
	for _, t := range all {
		row := slices.IndexFunc(v.Rows, func(r timelineRow) bool { return r.Node == t.node })
		if row < 0 {
			row = len(v.Rows)
			v.Rows = append(v.Rows, timelineRow{Node: t.node})
		}
		x, width := 1000*float64(t.from.Sub(from))/full, 1000*float64(t.to.Sub(t.from))/full
		b := bar{X: fmt.Sprintf("%.1f", min(x, 998)), Width: fmt.Sprintf("%.1f", max(width, 2)), Tone: busy}
		if t.open {
			b.Tone = good
		}
		held := text.Span(wholeSeconds(t.to.Sub(t.from)))
		b.Text = t.node + " led for " + held + " from " + at(t.from.UTC(), now).Clock
		v.Rows[row].Bars = append(v.Rows[row].Bars, b)
		view := termView{
			Node: t.node, Epoch: epoch(t.epoch), Why: t.why, Won: t.won, From: at(t.from.UTC(), now),
			To: at(t.to.UTC(), now), For: held, Tone: t.tone, Open: t.open, Cut: t.cut,
		}
		if t.open {
			view.Held = elapsed(t.from, now)
		}
		v.Terms = append(v.Terms, view)
	}
	slices.Reverse(v.Terms)
	v.Text = text.Count(len(all), "term") + " of " + text.Count(len(v.Rows), "node") + " since " + v.From.Clock
	return v
}
