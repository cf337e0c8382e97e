package jobcmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/text"
)

const (
	barWidth = 30
	// rateOver is the length of the time window of the shown rate. With a shorter window the rate would vary too much.
	rateOver = 10 * time.Second
)

// progress shows the progress of a run. On a terminal it updates one line; otherwise it prints a line every second.
type progress struct {
	w       io.Writer
	inPlace bool
	command bool // a command writes no rows
	shown   time.Time
	samples []sample // taken within the last rateOver
}

type sample struct {
	at   time.Time
	rows int64
}

// show shows the current state of a run.
func (p *progress) show(r diagnose.Run, now time.Time) {
	p.samples = append(p.samples, sample{now, r.Rows + r.Dead})
	for len(p.samples) > 2 && now.Sub(p.samples[0].at) > rateOver {
		p.samples = p.samples[1:]
	}
	if !p.inPlace && now.Sub(p.shown) < time.Second {
		return
	}
	p.shown = now
	line := p.line(r)
	switch {
	case r.State == "queued":
		line = "waits for another run to end"
	case p.command:
		line = "running for " + text.Duration(now.Sub(r.Started).Round(time.Second))
	}
	if p.inPlace {
		_ = show.Say(p.w, "\r\x1b[K%s", line) // the process ends when its terminal is closed
		return
	}
	_ = show.Say(p.w, "%s\n", line)
}

// end removes the progress line from the terminal.
func (p *progress) end() {
	if p.inPlace && !p.shown.IsZero() {
		_ = show.Say(p.w, "\r\x1b[K")
	}
}

// line returns a text such as "[#####.....]  50 %  1000 rows of 2000 changes, 500 rows/s, 2s left".
func (p *progress) line(r diagnose.Run) string {
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	took := last.at.Sub(first.at)
	line := soFar(r) + perSecond(last.rows-first.rows, took)
	if r.Backlog == nil || *r.Backlog <= 0 {
		return line
	}
	// Several changes may result in one row, so the run may end sooner. The run may also flush changes that arrive during the run.
	done := min(float64(last.rows)/float64(*r.Backlog), 1)
	full := int(done * barWidth)
	bar := strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
	if rate := float64(last.rows-first.rows) / took.Seconds(); took > 0 && rate > 0 && done < 1 {
		left := float64(*r.Backlog-last.rows) / rate
		line += fmt.Sprintf(", %s left", text.Duration(time.Duration(left*float64(time.Second)).Round(time.Second)))
	}
	return fmt.Sprintf("[%s] %3.0f %%  %s", bar, done*100, line)
}

// perSecond returns a text such as ", 1200 rows/s". It returns "" if no time has passed or if there are no rows.
func perSecond(rows int64, took time.Duration) string {
	if took <= 0 || rows == 0 {
		return ""
	}
	return fmt.Sprintf(", %.0f rows/s", float64(rows)/took.Seconds())
}
