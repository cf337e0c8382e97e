package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	frameEvery    = 200 * time.Millisecond
	progressEvery = 5 * time.Second
)

// view shows the state of a run while the run is in progress.
type view struct {
	options  Options
	scene    scene
	server   *server
	database *database
	fleet    *fleet
	watcher  *watcher
	gauge    *gauge
	events   *eventLog
	started  time.Time
	phase    func() string
}

// run shows the state of the run until ctx ends.
func (v *view) run(ctx context.Context) {
	every, show := progressEvery, v.progress
	if v.options.Screen != nil {
		every, show = frameEvery, v.frame
		_, _ = io.WriteString(v.options.Screen, "\x1b[2J")
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			show()
		}
	}
}

// progress writes one line about the progress of the run to the log.
func (v *view) progress() {
	now, terms, _, trouble := v.watcher.state()
	r := v.gauge.reading()
	who := "no node leads"
	if trouble != nil {
		who = "redis does not answer"
	} else if now.node != "" {
		who = fmt.Sprintf("%s leads, term %d", now.node, terms)
	}
	_, _ = fmt.Fprintf(v.options.Log, "%s  %s: %s; %s + %s written, %s + %s flushed, lag %s; lost %s, twice %s%s\n",
		time.Now().Format(time.TimeOnly), v.phase(), who, group(r.written.Counters), group(r.written.Hashes),
		group(r.flushed.Counters), group(r.flushed.Hashes), seconds(r.lag), group(r.damage.lost), group(r.damage.twice), v.besides(r))
}

// besides returns a text with the losses and duplicates of the naive program, which follows a text about baton.
func (v *view) besides(r reading) string {
	if v.gauge.naive == nil {
		return ""
	}
	return fmt.Sprintf("; SET NX EX beside it: lost %s, twice %s", group(r.naive.lost), group(r.naive.twice))
}

// line is one line of the screen, in one style.
type line struct {
	text  string
	style string
}

const (
	plain = ""
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	reset = "\x1b[0m"
)

// frame redraws the screen in place. It overwrites lines, so that the screen does not flicker.
func (v *view) frame() {
	width, height := v.options.Screen.Size()
	lines := v.lines(width)
	if height < len(lines)+6 {
		lines = slices.DeleteFunc(lines, func(l line) bool { return l.text == "" })
	}
	for _, e := range v.events.last(max(0, height-1-len(lines))) {
		lines = append(lines, line{"  " + e.at.Format(time.TimeOnly) + "  " + e.text, plain})
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, l := range lines[:min(len(lines), max(0, height-1))] {
		text := crop(l.text, width)
		if v.options.Screen.Color && l.style != plain {
			text = l.style + text + reset
		}
		b.WriteString(text + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	_, _ = io.WriteString(v.options.Screen, b.String())
}

// lines returns all lines of the screen except the event log, which is shown below these lines.
func (v *view) lines(width int) []line {
	now, terms, failovers, trouble := v.watcher.state()
	if trouble != nil {
		now.node = ""
	}
	r := v.gauge.reading()
	var s sheet
	hint := "Ctrl-C or q: flush the rest, audit, report"
	if v.phase() != phaseRunning {
		hint = "Ctrl-C: stop at once"
	}
	s.put(bold, "baton demo   %s %s   %s", v.phase(), clock(time.Since(v.started)), hint)
	s.put(dim, "  Redis     %s", v.server.what)
	s.put(dim, "  Database  %s", v.database.what)
	s.put(plain, "")
	times := "no failover yet"
	if f := summarize(failovers); f.Count > 0 {
		times = fmt.Sprintf("failovers: %d, p50 %.3f s, max %.3f s", f.Count, *f.P50, *f.Max)
	}
	if trouble != nil {
		s.put(red, "  Redis does not answer: %v", trouble)
	} else {
		s.leader(now, terms, v.fleet.find(now.node))
	}
	s.put(plain, "  %s   %s", v.strip(width-len(times)-6), times)
	s.put(plain, "")
	if r.trouble != nil {
		s.put(red, "  The database does not answer: %v", r.trouble)
	}
	s.data(v, r)
	s.put(plain, "")
	s.nodes(v.fleet.nodes, now.node)
	s.put(plain, "")
	s.hints(v, now.node)
	s.put(plain, "")
	return s.list
}

// strip returns a text that shows the leaders over time. For each half second it contains the number of the node that led, or a dot if no
// node led.
func (v *view) strip(width int) string {
	var b strings.Builder
	for _, id := range v.watcher.led(width) {
		if id == "" {
			b.WriteByte('.')
			continue
		}
		b.WriteString(id[len(id)-1:])
	}
	return b.String()
}

// sheet collects the lines that the screen will show.
type sheet struct{ list []line }

func (s *sheet) put(style, format string, args ...any) {
	s.list = append(s.list, line{fmt.Sprintf(format, args...), style})
}

// leader shows which node holds the lease, and whether this node can work at present.
func (s *sheet) leader(now moment, terms int, n *node) {
	if now.node == "" {
		s.put(red, "  No node leads; the last term was the %s", ordinal(terms))
		return
	}
	style, verb, start := green, "leads", 0
	if n != nil {
		start = n.incarnation()
		if !n.working() {
			_, state, _ := n.view()
			style, verb = red, "is "+string(state)
		}
	}
	s.put(style, "  %s (%s start) %s   term %d   lease left %s %s",
		now.node, ordinal(start), verb, terms, bar(now.left, ttl), seconds(now.left))
}

// data shows how many writes there are and how many of them are flushed. Beside them it shows the results of the naive program.
func (s *sheet) data(v *view, r reading) {
	const row = "  %-12s %11s %11s %9s %7s %10s %8s"
	s.put(bold, row, "", "WRITTEN", "FLUSHED", "WAITING", "LAG", "LOST", "TWICE")
	style := plain
	if r.damage != (damage{}) {
		style = red
	}
	s.put(style, row, v.scene.views, group(r.written.Counters), group(r.flushed.Counters), group(r.waiting.Counters), seconds(r.lag),
		group(r.damage.lost), group(r.damage.twice))
	s.put(style, row, v.scene.users, group(r.written.Hashes), group(r.flushed.Hashes), group(r.waiting.Hashes), "", "", "")
	if v.gauge.naive == nil {
		return
	}
	style = dim
	if r.naive != (damage{}) {
		style = red
	}
	s.put(style, "  %-54s %10s %8s", "the same counts by SET NX EX, read, write, delete", group(r.naive.lost), group(r.naive.twice))
}

func (s *sheet) nodes(nodes []*node, leader string) {
	const row = "  %-8s %-9s %6s %8s  %s"
	s.put(bold, row, "NODE", "STATE", "START", "PID", "STATUS PAGE")
	for _, n := range nodes {
		pid, state, url := n.view()
		style, what, process := plain, "standby", fmt.Sprint(pid)
		switch {
		case state == nodeDown:
			style, what, process = red, string(state), "-"
		case state == nodeFrozen:
			style, what = red, string(state)
		case n.id == leader:
			style, what = green, "leading"
		}
		s.put(style, row, n.id, what, ordinal(n.incarnation()), process, url)
	}
}

// hints says how to disturb the leader, or how to let a frozen node continue.
func (s *sheet) hints(v *view, leader string) {
	if v.options.Keys != nil {
		s.put(bold, "  %s", keysHelp())
	} else {
		s.kills(v, leader)
	}
	s.put(plain, "  From another terminal:")
	s.put(bold, "    export BATON_CONFIG=%s", v.fleet.nodes[0].configFile())
	s.put(bold, "    %s status --watch   (or stepdown, explain, job list)", v.options.Program)
}

// kills shows the commands that send signals to a node. It is for a terminal whose keys cannot be read.
func (s *sheet) kills(v *view, leader string) {
	target, frozen := "PID", ""
	if n := v.fleet.find(leader); n != nil && n.working() {
		pid, _, _ := n.view()
		target = fmt.Sprint(pid)
	}
	for _, n := range v.fleet.nodes {
		if pid, state, _ := n.view(); state == nodeFrozen {
			frozen = fmt.Sprint(pid)
		}
	}
	s.put(bold, "    kill -9 %-9s  it dies; another leads when the lease has run out", target)
	if frozen != "" {
		s.put(bold, "    kill -CONT %-6s  it wakes up, and finds itself deposed", frozen)
	} else {
		s.put(bold, "    kill -STOP %-6s  it freezes, in the middle of whatever it does", target)
	}
}

// ordinal formats a number as 1st, 2nd, 3rd, 4th.
func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// bar returns a bar of text that shows how much the argument part is of the argument whole.
func bar(part, whole time.Duration) string {
	const width = 10
	n := min(max(int(part*width/whole), 0), width)
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", width-n) + "]"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", max(d, 0).Seconds()) }

func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// crop shortens a text to the width, and removes control characters.
func crop(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
