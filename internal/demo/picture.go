package demo

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// These constants are the positions and sizes in the picture, in the units of its viewBox. The picture shows the terms of each node, the
// numbers of increments that were written and flushed, and the numbers that were lost or written twice.
const (
	pictureWidth = 960
	plotLeft     = 92
	plotRight    = 700
	laneTop      = 76
	laneHeight   = 22
	flowTop      = 168
	flowHeight   = 110
	damageTop    = 322
	damageHeight = 90
	axisAt       = damageTop + damageHeight

	inkColor     = "#1f2933"
	mutedColor   = "#616e7c"
	goodColor    = "#177245"
	idleColor    = "#a7d0bb"
	badColor     = "#b42318"
	writtenColor = "#3b6fb6"
)

// picture returns an SVG that shows a run of the demo and the results of its audit.
func (f *recording) picture(r Report) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &drawing{recording: f, report: r, frames: f.shown()}
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13">`,
		pictureWidth, axisAt+54)
	d.put(`<title>A run of baton demo: %s</title>`, d.summary())
	d.put(`<rect width="100%%" height="100%%" rx="8" fill="#ffffff"/>`)
	d.text(20, 32, inkColor, `font-size="18" font-weight="600"`, "Leaders die and freeze. Nothing is lost, and nothing is written twice.")
	if !r.Clean() {
		d.text(pictureWidth-300, 32, badColor, `font-size="18" font-weight="600"`, "This run failed its audit.")
	}
	d.text(20, 54, mutedColor, "", "%s", d.summary())
	d.lanes()
	d.flow()
	d.damage()
	d.axis()
	d.put("</svg>")
	return d.String()
}

type drawing struct {
	strings.Builder
	recording *recording
	report    Report
	frames    []reading
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *drawing) text(x, y float64, color, attributes, format string, args ...any) {
	d.put(`<text x="%.1f" y="%.1f" fill="%s" %s>%s</text>`, x, y, color, attributes, fmt.Sprintf(format, args...))
}

// summary describes the run in one line.
func (d *drawing) summary() string {
	f := d.report.Failover
	text := fmt.Sprintf("%.0f s of traffic, %d leaders killed, %d frozen",
		d.recording.span().Seconds(), d.report.Faults.Killed, d.report.Faults.Frozen)
	if f.Count > 0 {
		text += fmt.Sprintf("; a lease of %.0f s; the next leader after %.1f s (median), %.1f s at most", ttl.Seconds(), *f.P50, *f.Max)
	}
	return text
}

// x returns the horizontal position of a time in the picture.
func (d *drawing) x(at time.Time) float64 {
	part := at.Sub(d.recording.began).Seconds() / d.recording.span().Seconds()
	return plotLeft + (plotRight-plotLeft)*min(max(part, 0), 1)
}

// lanes draws, for each node, the periods in which the node led, and how each of these terms ended.
func (d *drawing) lanes() {
	for i := range nodeCount {
		id := nodeID(i)
		y := float64(laneTop + i*laneHeight)
		d.text(20, y+14, inkColor, "", "%s", id)
		d.put(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#e4e7eb"/>`, plotLeft, plotRight, y+9, y+9)
		for n, r := range d.recording.leaders {
			to := d.recording.ended
			if n+1 < len(d.recording.leaders) {
				to = d.recording.leaders[n+1].from
			}
			if from, until := d.x(r.from), d.x(to); r.node == id && until > from {
				d.bar(from, until, y, goodColor)
				if struck, ok := d.recording.struck(id, r.from, to); ok {
					d.bar(d.x(struck), until, y, idleColor)
				}
			}
		}
		for _, s := range d.recording.faults {
			if s.node == id && !s.at.Before(d.recording.began) && !s.at.After(d.recording.ended) {
				d.fault(d.x(s.at), y+9, s.how)
			}
		}
	}
	d.text(plotRight+20, laneTop+14, goodColor, `font-weight="600"`, "leads, then its lease runs out")
	d.text(plotRight+20, laneTop+14+laneHeight, badColor, `font-weight="600"`, "× killed")
	d.text(plotRight+20, laneTop+14+2*laneHeight, writtenColor, `font-weight="600"`, "■ frozen")
}

// bar draws a bar for a period in which a node led.
func (d *drawing) bar(from, until, y float64, color string) {
	d.put(`<rect x="%.1f" y="%.1f" width="%.1f" height="14" rx="3" fill="%s"/>`, from, y+2, until-from, color)
}

func (d *drawing) fault(x, y float64, how syscall.Signal) {
	if how == syscall.SIGSTOP {
		d.put(`<rect x="%.1f" y="%.1f" width="9" height="14" fill="%s" stroke="#ffffff"/>`, x-4.5, y-7, writtenColor)
		return
	}
	d.put(`<path d="M%.1f %.1fl10 10m0 -10l-10 10" stroke="%s" stroke-width="3" fill="none"/>`, x-5, y-5, badColor)
}

// flow draws how many increments were written and how many were flushed over time.
func (d *drawing) flow() {
	most := max(d.report.Written.Counters, 1)
	d.curve(flowTop, flowHeight, most, writtenColor, "4", func(r reading) int64 { return r.written.Counters })
	d.curve(flowTop, flowHeight, most, goodColor, "2", func(r reading) int64 { return r.flushed.Counters })
	d.text(20, flowTop+12, mutedColor, "", "increments")
	d.text(20, flowTop+30, mutedColor, "", "%s", group(most))
	d.text(plotRight+20, flowTop+16, writtenColor, `font-weight="600"`, "%s written to Redis", group(d.report.Written.Counters))
	d.text(plotRight+20, flowTop+36, goodColor, `font-weight="600"`, "%s in the database", group(d.report.Flushed.Counters))
	d.text(plotRight+20, flowTop+64, inkColor, `font-size="16" font-weight="600"`, "baton: lost %s · twice %s",
		group(d.report.Lost), group(d.report.Duplicated))
}

// damage draws how many increments baton and the naive program have lost or written twice over time.
func (d *drawing) damage() {
	d.text(20, damageTop+12, mutedColor, "", "lost, twice")
	most := int64(1)
	for _, r := range d.frames {
		most = max(most, r.naive.lost, r.naive.twice, r.damage.lost, r.damage.twice)
	}
	if n := d.report.Naive; n != nil {
		d.curve(damageTop, damageHeight, most, badColor, "2", func(r reading) int64 { return r.naive.lost })
		d.curve(damageTop, damageHeight, most, badColor, `2" stroke-dasharray="5 4`, func(r reading) int64 { return r.naive.twice })
		d.text(plotRight+20, damageTop+14, badColor, `font-size="16" font-weight="600"`, "lost %s · twice %s",
			group(n.Lost), group(n.Duplicated))
		d.text(plotRight+20, damageTop+34, mutedColor, "", "SET NX EX, read, write, delete:")
		d.text(plotRight+20, damageTop+51, mutedColor, "", "same traffic, same faults")
		d.text(plotRight+20, damageTop+68, mutedColor, "", "(line: lost, dashes: twice)")
	}
	d.text(20, damageTop+30, mutedColor, "", "%s", group(most))
	d.curve(damageTop, damageHeight, most, goodColor, "3", func(r reading) int64 { return r.damage.lost + r.damage.twice })
	d.text(plotRight+20, damageTop+damageHeight+4, goodColor, `font-weight="600"`, "baton")
}

// curve draws one value of all recorded frames as a line over time.
func (d *drawing) curve(top, height, most int64, color, width string, value func(reading) int64) {
	var points strings.Builder
	for _, r := range d.frames {
		y := float64(top+height) - float64(height)*float64(value(r))/float64(most)
		fmt.Fprintf(&points, "%.1f,%.1f ", d.x(r.at), y)
	}
	d.put(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%s"/>`, strings.TrimSpace(points.String()), color, width)
}

// axis draws the time axis, with the seconds of the run.
func (d *drawing) axis() {
	for _, at := range []int{flowTop + flowHeight, axisAt} {
		d.put(`<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="#cbd2d9"/>`, plotLeft, plotRight, at, at)
	}
	step := tickStep(d.recording.span())
	for t := time.Duration(0); t <= d.recording.span(); t += step {
		d.text(d.x(d.recording.began.Add(t)), axisAt+18, mutedColor, `text-anchor="middle"`, "%.0f s", t.Seconds())
	}
	d.text(20, axisAt+42, mutedColor, `font-size="12"`,
		"Drawn by “baton demo --picture” from a real run: three processes, and an auditor that compares every value at the end.")
}

// tickStep returns the time between two ticks, so that the axis has between three and eight ticks.
func tickStep(span time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, 10 * time.Second, 100 * time.Second, 1000 * time.Second} {
		for _, n := range []time.Duration{1, 2, 5} {
			if span <= 8*n*unit {
				return n * unit
			}
		}
	}
	return span / 4
}
