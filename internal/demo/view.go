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

// view shows the run while it goes on.
type view struct {
	options  Options
	server   *server
	database *database
	fleet    *fleet
	watcher  *watcher
	gauge    *gauge
	diary    *diary
	started  time.Time
	phase    func() string
}

// run shows until ctx ends.
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

// progress is one line for a log.
func (v *view) progress() {
	now, terms, _, trouble := v.watcher.state()
	r := v.gauge.reading()
	who := "no node leads"
	if trouble != nil {
		who = "redis does not answer"
	} else if now.node != "" {
		who = fmt.Sprintf("%s leads, epoch %d", now.node, now.epoch)
	}
	_, _ = fmt.Fprintf(v.options.Log, "%s  %s: %s; %s + %s written, %s + %s flushed, lag %s, terms %d\n",
		time.Now().Format(time.TimeOnly), v.phase(), who, group(r.written.Counters), group(r.written.Hashes),
		group(r.flushed.Counters), group(r.flushed.Hashes), seconds(r.lag), terms)
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

// frame redraws the screen in place: lines are overwritten, so nothing flickers.
func (v *view) frame() {
	width, height := v.options.Screen.Size()
	lines := v.lines()
	if height < len(lines)+6 {
		lines = slices.DeleteFunc(lines, func(l line) bool { return l.text == "" })
	}
	for _, e := range v.diary.last(max(0, height-1-len(lines))) {
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

// lines is the whole screen but for the events, which come last.
func (v *view) lines() []line {
	now, terms, failovers, trouble := v.watcher.state()
	if trouble != nil {
		now.node = ""
	}
	r := v.gauge.reading()
	var s sheet
	hint := "Ctrl-C: flush the rest, audit, report"
	if v.phase() != phaseRunning {
		hint = "Ctrl-C: stop at once"
	}
	s.put(bold, "baton demo   %s %s   %s", v.phase(), clock(time.Since(v.started)), hint)
	s.put(dim, "  Redis     %s", v.server.what)
	s.put(dim, "  Database  %s", v.database.what)
	s.put(plain, "")
	if trouble != nil {
		s.put(red, "  Redis does not answer: %v", trouble)
	} else {
		s.leader(now, v.fleet.find(now.node))
	}
	times := "none yet"
	if f := summarize(failovers); f.Count > 0 {
		times = fmt.Sprintf("%d, p50 %d ms, max %d ms", f.Count, *f.P50, *f.Max)
	}
	s.put(plain, "  terms %d   failovers: %s", terms, times)
	s.put(plain, "")
	s.put(bold, "  %-10s %12s %12s %12s %8s", "", "WRITTEN", "FLUSHED", "WAITING", "LAG")
	if r.trouble != nil {
		s.put(red, "  The database does not answer: %v", r.trouble)
	}
	s.put(plain, "  %-10s %12s %12s %12s %8s", "views:*", group(r.written.Counters), group(r.flushed.Counters),
		group(r.waiting.Counters), seconds(r.lag))
	s.put(plain, "  %-10s %12s %12s %12s", "user:*", group(r.written.Hashes), group(r.flushed.Hashes), group(r.waiting.Hashes))
	s.put(plain, "")
	s.nodes(v.fleet.nodes, now.node)
	s.put(plain, "")
	s.hints(v, now.node)
	s.put(plain, "")
	return s.list
}

// sheet collects lines.
type sheet struct{ list []line }

func (s *sheet) put(style, format string, args ...any) {
	s.list = append(s.list, line{fmt.Sprintf(format, args...), style})
}

// leader shows who holds the lease, and whether it can use it.
func (s *sheet) leader(now moment, n *node) {
	if now.node == "" {
		s.put(red, "  No node leads; the last epoch was %d", now.epoch)
		return
	}
	style, verb := green, "leads"
	if n != nil && !n.working() {
		_, state, _ := n.view()
		style, verb = red, "is "+string(state)
	}
	s.put(style, "  %s %s   epoch %d   lease left %s %s", now.node, verb, now.epoch, bar(now.left, ttl), seconds(now.left))
}

func (s *sheet) nodes(nodes []*node, leader string) {
	s.put(bold, "  %-8s %-9s %8s  %s", "NODE", "STATE", "PID", "STATUS PAGE")
	for _, n := range nodes {
		pid, state, url := n.view()
		switch {
		case state == nodeDown:
			s.put(red, "  %-8s %-9s %8s  %s", n.id, state, "-", url)
		case state == nodeFrozen:
			s.put(red, "  %-8s %-9s %8d  %s", n.id, state, pid, url)
		case n.id == leader:
			s.put(green, "  %-8s %-9s %8d  %s", n.id, "leading", pid, url)
		default:
			s.put(plain, "  %-8s %-9s %8d  %s", n.id, "standby", pid, url)
		}
	}
}

// hints say how to disturb the leader, or to wake up who is frozen.
func (s *sheet) hints(v *view, leader string) {
	target := "PID"
	if n := v.fleet.find(leader); n != nil && n.working() {
		pid, _, _ := n.view()
		target = fmt.Sprint(pid)
	}
	s.put(plain, "  Take the leader down, from another terminal:")
	s.put(bold, "    kill -9 %-9s  it dies; another leads when the lease has run out", target)
	frozen := ""
	for _, n := range v.fleet.nodes {
		if pid, state, _ := n.view(); state == nodeFrozen {
			frozen = fmt.Sprint(pid)
		}
	}
	if frozen != "" {
		s.put(bold, "    kill -CONT %-6s  it wakes up, and finds itself deposed", frozen)
	} else {
		s.put(bold, "    kill -STOP %-6s  it freezes, in the middle of whatever it does", target)
	}
	s.put(bold, "    export BATON_CONFIG=%s", v.fleet.nodes[0].configFile())
	s.put(bold, "    %s stepdown       (or status --watch)", v.options.Program)
}

// bar draws a part of a whole.
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

// crop shortens a text to the width, and keeps control characters from it.
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
