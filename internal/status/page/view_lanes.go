package page

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/text"
)

// laneView shows one lock, with the lock's terms and the gaps between these terms.
type laneView struct {
	Lock, Text string
	Bars       []bar
	Gaps       []bar
}

// bar is a term or a gap, with its position in percent of the shown time span.
type bar struct {
	X, Width, Text string
	MS             int64  // the time in Text
	Class          string // its colour
	Label, Fits    string // the text inside of the bar, and the screens with room for the text (see fits)
}

// colourView is a node and its colour.
type colourView struct{ Node, Class string }

// tickView is a point in time on the axis.
type tickView struct {
	X, Text, Form, Class string
	MS                   int64
}

// nodeColours is the number of colours for nodes in the style sheet.
const nodeColours = 8

// coloursOf gives each node a colour by the hash of the node's id. If another node already has that colour, the node gets the next free
// colour.
func coloursOf(ids []string) map[string]string {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	taken, colours := [nodeColours]bool{}, map[string]string{}
	for i, id := range ids {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(id))
		n := int(hash.Sum32() % nodeColours)
		for i < nodeColours && taken[n] {
			n = (n + 1) % nodeColours
		}
		taken[n], colours[id] = true, fmt.Sprintf("n%d", n)
	}
	return colours
}

// lockHistory is a lock with the lock's events.
type lockHistory struct {
	key   string
	state diagnose.Snapshot // the state with this lock in the place of the node's own lock
	terms []term
}

// historiesOf returns the histories of all locks of s. The history of the node's own lock comes first. The argument others contains the
// events of the other locks.
func historiesOf(s diagnose.Snapshot, others map[string][]diagnose.Event, now time.Time) []lockHistory {
	all := []lockHistory{{key: s.LockKey, state: s}}
	for _, l := range s.Locks {
		under := s
		under.Leader, under.LastLeader, under.Held, under.Events = l.Leader, nil, l.Held, others[l.Key]
		all = append(all, lockHistory{key: l.Key, state: under})
	}
	for i := range all {
		all[i].terms = terms(all[i].state, now)
		for k := range all[i].terms {
			all[i].terms[k].lock = all[i].key
		}
	}
	return all
}

// timelineRanges contains the time spans that the user can choose on the timeline. 0 means the whole known history.
var timelineRanges = []struct {
	name, label string
	span        time.Duration
}{{"1h", "1 h", time.Hour}, {"1d", "1 day", 24 * time.Hour}, {"7d", "7 days", 7 * 24 * time.Hour}, {"", "All", 0}}

// newTimeline returns a timeline of the locks of s. The argument span is the name of a time span in the page's query, such as "7d". The
// argument most is the maximum number of locks.
func newTimeline(s diagnose.Snapshot, others map[string][]diagnose.Event, span string, most int, now time.Time) timelineView {
	histories := historiesOf(s, others, now)
	from, known := now, 0
	for _, h := range histories {
		if len(h.terms) > 0 {
			known++
			if h.terms[0].from.Before(from) {
				from = h.terms[0].from
			}
		}
	}
	if known == 0 {
		return timelineView{}
	}
	v := timelineView{Many: len(histories) > 1, Hatches: []tone{bad, warn}}
	for _, r := range timelineRanges {
		to := "/timeline"
		if r.name != "" {
			to += "?range=" + r.name
		}
		v.Ranges = append(v.Ranges, rangeView{r.label, to, r.name == span})
		if r.name == span && r.span > 0 {
			from = now.Add(-r.span)
		}
	}
	if now.Sub(from) < time.Minute {
		from = now.Add(-time.Minute)
	}
	v.From, v.To = at(from.UTC(), now), at(now.UTC(), now)
	v.To.Near = "now"
	v.Ticks = ticks(from, now)
	if more := len(histories) - most; more > 0 {
		histories, v.MoreRows = histories[:most], text.Count(int64(more), "further lock")
	}
	var nodes []string
	for _, n := range s.Nodes {
		nodes = append(nodes, n.ID)
	}
	for _, h := range histories {
		for _, t := range h.terms {
			nodes = append(nodes, t.node)
		}
	}
	colours := coloursOf(nodes)
	w, shown, terms := window{from, now}, map[string]bool{}, 0
	for _, h := range histories {
		v.Lanes = append(v.Lanes, w.lane(h, colours))
		for _, t := range h.terms {
			if t.to.Before(from) {
				continue
			}
			terms++
			shown[t.node] = true
			view := newTermView(t, now)
			view.Colour = colours[t.node]
			v.Terms = append(v.Terms, view)
		}
	}
	for _, id := range slices.Sorted(keysOf(shown)) {
		v.Legend = append(v.Legend, colourView{id, colours[id]})
	}
	slices.SortStableFunc(v.Terms, func(a, b termView) int { return cmp.Compare(b.From.MS, a.From.MS) })
	v.Text = text.Count(terms, "term") + " of " + text.Count(len(v.Legend), "node")
	if v.Many {
		v.Text += " under " + text.Count(len(v.Lanes), "lock")
	}
	return v
}

func keysOf(set map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range set {
			if !yield(key) {
				return
			}
		}
	}
}

func newTermView(t term, now time.Time) termView {
	v := termView{
		Node: t.node, Lock: t.lock, Epoch: epoch(t.epoch), Why: t.why, Won: t.won, From: at(t.from.UTC(), now),
		To: at(t.to.UTC(), now), For: text.Span(wholeSeconds(t.to.Sub(t.from))), Tone: t.tone, Open: t.open, Cut: t.cut,
	}
	if t.open {
		v.Held = elapsed(t.from, now)
	}
	return v
}

// window is the time span that the page shows.
type window struct{ from, to time.Time }

// lane returns a lane with the terms of a lock and the gaps between them.
func (w window) lane(h lockHistory, colours map[string]string) laneView {
	v := laneView{Lock: h.key}
	without := time.Duration(0)
	for i, t := range h.terms {
		said := " led for "
		if t.open {
			said = " has led for "
		}
		if b := w.bar(t.from, t.to, t.node+said+text.Span(wholeSeconds(t.to.Sub(t.from)))); b != nil {
			b.Class, b.Label = colours[t.node], t.node
			b.Fits = fits(b.Label, w.share(t.from, t.to))
			v.Bars = append(v.Bars, *b)
		}
		until := w.to
		if i+1 < len(h.terms) {
			until = h.terms[i+1].from
		} else if t.open || h.state.Error != "" || h.state.Leader != nil { // a node or another program leads, or this is unknown
			break
		}
		kind, why := gapOf(t, until, i+1 == len(h.terms) && h.state.Paused != nil)
		if b := w.bar(t.to, until, "no leader for "+text.Span(until.Sub(t.to).Round(time.Millisecond))+why); b != nil {
			b.Class = string(kind)
			if kind != idle {
				b.Label, without = "no leader", without+until.Sub(t.to)
				b.Fits = fits(b.Label, w.share(t.to, until))
			}
			v.Gaps = append(v.Gaps, *b)
		}
	}
	if without > 0 {
		v.Text = "no leader for " + text.Span(wholeSeconds(without)) + " in all"
	}
	return v
}

// gapOf describes the gap after the term t, in which there was no leader until the given time. It returns a tone, and the reason why there
// was no leader.
func gapOf(t term, until time.Time, paused bool) (kind tone, why string) {
	switch {
	case t.paused || paused && t.inOrder:
		return warn, ", paused"
	case t.inOrder && until.Sub(t.to) < diagnose.HandoverWithin:
		return idle, ", at a handover"
	}
	return bad, ": " + t.node + " " + t.why
}

// share returns how much of the window a time span takes, as a fraction of 1.
func (w window) share(from, to time.Time) float64 {
	if from.Before(w.from) {
		from = w.from
	}
	return float64(to.Sub(from)) / float64(w.to.Sub(w.from))
}

// bar returns the bar of a time span. It returns nil if the span is not in the window.
func (w window) bar(from, to time.Time, said string) *bar {
	if !to.After(from) || !to.After(w.from) {
		return nil
	}
	x := max(float64(from.Sub(w.from))/float64(w.to.Sub(w.from)), 0)
	return &bar{
		X: fmt.Sprintf("%.3f%%", 100*min(x, 0.999)), Width: fmt.Sprintf("%.3f%%", 100*max(w.share(from, to), 0.0005)), MS: from.UnixMilli(),
		Text: at(from.UTC(), w.to).Clock + ": " + said,
	}
}

// fits returns the screens where a label fits into a share of a lane. It returns "" for all screens, "mid" for medium and wide screens,
// "wide" for wide screens only, and "none" for no screen.
func fits(label string, share float64) string {
	const letter, margin = 7.5, 14
	const narrow, mid, wide = 300, 500, 1080
	need := letter*float64(len([]rune(label))) + margin
	for _, screen := range []struct {
		name string
		lane float64
	}{{"", narrow}, {"mid", mid}, {"wide", wide}} {
		if share*screen.lane >= need {
			return screen.name
		}
	}
	return "none"
}

// tickSteps contains round distances between ticks.
var tickSteps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 7 * 24 * time.Hour,
	14 * 24 * time.Hour, 28 * 24 * time.Hour, 91 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// mostTicks is the maximum number of ticks on an axis.
const mostTicks = 7

// ticks returns round times between the times from and to, with their labels. It omits times near the ends, because the labels of the two
// ends are there.
func ticks(from, to time.Time) (all []tickView) {
	span := to.Sub(from)
	step := tickSteps[len(tickSteps)-1]
	for _, s := range slices.Backward(tickSteps) {
		if span/s <= mostTicks {
			step = s
		}
	}
	layout, form := "15:04", "time"
	switch day := 24 * time.Hour; {
	case step >= day:
		layout, form = "2 Jan", "day"
	case span > day:
		layout, form = "2 Jan 15:04", "both"
	case step < time.Minute:
		layout, form = "15:04:05", "seconds"
	}
	for tick := from.Truncate(step).Add(step); tick.Before(to); tick = tick.Add(step) {
		x := 100 * float64(tick.Sub(from)) / float64(span)
		if x < 4 || x > 90 {
			continue
		}
		t := tickView{X: fmt.Sprintf("%.3f%%", x), Text: tick.UTC().Format(layout), Form: form, MS: tick.UnixMilli()}
		if (tick.UnixNano()/int64(step))%2 != 0 || x < 10 || x > 80 { // there is no room for the label on narrow screens
			t.Class = "odd"
		}
		all = append(all, t)
	}
	return all
}
