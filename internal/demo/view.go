package demo

import (
	"context"
	"fmt"
	"io"
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
	who := "nobody leads"
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
	// The events are what gives way on a small screen.
	events := v.diary.last(max(3, height-len(lines)-1))
	var b strings.Builder
	b.WriteString("\x1b[H")
	shown := 0
	put := func(l line) {
		if shown >= height-1 {
			return
		}
		shown++
		text := crop(l.text, width)
		if v.options.Screen.Color && l.style != plain {
			text = l.style + text + reset
		}
		b.WriteString(text + "\x1b[K\r\n")
	}
	for _, l := range lines {
		put(l)
	}
	for _, e := range events {
		put(line{"  " + e.at.Format(time.TimeOnly) + "  " + e.text, plain})
	}
	b.WriteString("\x1b[J")
	_, _ = io.WriteString(v.options.Screen, b.String())
}

// lines is the whole screen but for the events, which come last.
func (v *view) lines() []line {
	now, terms, failovers, redisTrouble := v.watcher.state()
	r := v.gauge.reading()
	var list []line
	put := func(style, format string, args ...any) {
		list = append(list, line{fmt.Sprintf(format, args...), style})
	}

	put(bold, "baton demo  %s  %s  seed %d", v.phase(), clock(time.Since(v.started)), v.options.Seed)
	put(dim, "  Redis: %s   Database: %s", v.server.what, v.database.what)
	put(plain, "")
	switch {
	case redisTrouble != nil:
		put(red, "  Redis does not answer: %v", redisTrouble)
	case now.node == "":
		put(red, "  Nobody leads; the last epoch was %d", now.epoch)
	default:
		put(green, "  %s leads   epoch %d   lease left %s %s", now.node, now.epoch, bar(now.left, ttl), seconds(now.left))
	}
	times := "none yet"
	if f := summarize(failovers); f.Count > 0 {
		times = fmt.Sprintf("%d, p50 %s, max %s", f.Count, seconds(time.Duration(*f.P50)*time.Millisecond), seconds(time.Duration(*f.Max)*time.Millisecond))
	}
	put(plain, "  terms %d   failovers: %s", terms, times)
	put(plain, "")
	put(bold, "  %-14s %13s %13s %13s %9s", "", "WRITTEN", "FLUSHED", "WAITING", "LAG")
	if r.trouble != nil {
		put(red, "  The database does not answer: %v", r.trouble)
	}
	put(plain, "  %-14s %13s %13s %13s %9s", "views:*", group(r.written.Counters), group(r.flushed.Counters), group(r.waiting.Counters), seconds(r.lag))
	put(plain, "  %-14s %13s %13s %13s", "user:*", group(r.written.Hashes), group(r.flushed.Hashes), group(r.waiting.Hashes))
	put(plain, "")
	put(bold, "  %-8s %-9s %8s  %s", "NODE", "STATE", "PID", "STATUS PAGE")
	leaderPID := 0
	for _, n := range v.fleet.nodes {
		pid, state, url := n.view()
		what, style, process := string(state), plain, fmt.Sprint(pid)
		switch {
		case state == nodeDown:
			style, process = red, "-"
		case state == nodeFrozen:
			style = red
		case n.id == now.node && redisTrouble == nil:
			what, style, leaderPID = "leading", green, pid
		default:
			what = "standby"
		}
		put(style, "  %-8s %-9s %8s  %s", n.id, what, process, url)
	}
	put(plain, "")
	target := "PID"
	if leaderPID != 0 {
		target = fmt.Sprint(leaderPID)
	}
	config := v.fleet.nodes[0].configFile()
	put(plain, "  Take the leader down, from another terminal:")
	put(bold, "    kill -9 %-10s dies: a standby leads when the lease has run out", target)
	put(bold, "    kill -STOP %-7s freezes: and kill -CONT %s wakes it up, deposed", target, target)
	put(bold, "    baton stepdown --config %s", config)
	put(plain, "  Ctrl-C ends the traffic, flushes the rest and audits every row.")
	put(plain, "")
	return list
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
