package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// The chart's measures, in pixels.
const (
	namesWide  = 190
	columnWide = 176
	barsWide   = 100 // of a column; what it is called and its value stand beside
	rowHigh    = 40
	headHigh   = 66
	footHigh   = 34
	barHigh    = 11
)

// column is one measure of the chart.
type column struct {
	title, unit string
	// value says nothing where a contender has none; endless is a bar to the edge.
	value  func(c contender, o *outcome, ttl time.Duration) (value float64, label string, has bool)
	linear bool // else logarithmic, from least on
	least  float64
}

const endless = math.MaxFloat64

func columns() []column {
	never := func(d time.Duration, never bool, word string) (float64, string, bool) {
		if never {
			return endless, word, true
		}
		return milli(d), millis(d), true
	}
	return []column{
		{title: "handover", unit: "p50, ms, log", least: 0.1, value: func(_ contender, o *outcome, _ time.Duration) (float64, string, bool) {
			d := quantile(o.handovers, 50)
			return milli(d), millis(d), len(o.handovers) > 0
		}},
		{title: "failover", unit: "after SIGKILL, median, × ttl", linear: true, value: func(_ contender, o *outcome, ttl time.Duration) (float64, string, bool) {
			f := times(quantile(o.failovers, 50), ttl)
			return f, fmt.Sprintf("%.2f", f), len(o.failovers) > 0
		}},
		{title: "frozen: overlap", unit: "longest, ms, log", least: 0.1, value: func(_ contender, o *outcome, _ time.Duration) (float64, string, bool) {
			d, endless := o.freezeOverlap(100)
			value, label, _ := never(d, endless, "no end")
			return value, label, len(o.freezes) > 0
		}},
		{title: "Redis empty: overlap", unit: "longest, ms, log", least: 0.1, value: func(_ contender, o *outcome, _ time.Duration) (float64, string, bool) {
			_, endless := o.recoveryTime(100)
			value, label, _ := never(o.recoveryOverlap(100), endless, "no end")
			return value, label, len(o.recovered) > 0
		}},
		{title: "commands a second", unit: fmt.Sprintf("in Redis, %d standbys", standbys), linear: true, value: func(_ contender, o *outcome, _ time.Duration) (float64, string, bool) {
			return o.cost.inRedis, fmt.Sprintf("%.1f", o.cost.inRedis), o.cost.inRedis > 0
		}},
	}
}

// chart draws everything as SVG that can be read on a light and on a dark page.
func (b *bench) chart() string {
	var shown []contender
	for _, c := range wanted(b.options.only) {
		if !c.daemon {
			shown = append(shown, c)
		}
	}
	wide, high := namesWide+len(columns())*columnWide, headHigh+len(shown)*rowHigh+footHigh
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Election, side by side: shorter bars are better">`+"\n", wide, high, wide, high)
	s.WriteString(chartStyle)
	for i, c := range shown {
		y := headHigh + i*rowHigh
		class := "name"
		if c.name == nameBaton {
			class = "name own"
			fmt.Fprintf(&s, `<rect class="band" x="0" y="%d" width="%d" height="%d" rx="4"/>`+"\n", y-3, wide, rowHigh-4)
		}
		text(&s, class, namesWide-14, y+rowHigh/2+1, "end", c.title)
	}
	for i, m := range columns() {
		b.column(&s, m, shown, namesWide+i*columnWide)
	}
	x := namesWide
	for i, ttl := range b.options.ttls {
		fmt.Fprintf(&s, `<rect class="bar t%d" x="%d" y="%d" width="14" height="%d" rx="2"/>`+"\n", i, x, high-footHigh+12, barHigh)
		text(&s, "unit", x+20, high-footHigh+22, "start", fmt.Sprintf("ttl %v", ttl))
		x += 90
	}
	text(&s, "unit", x, high-footHigh+22, "start", "Shorter is better. No bar: zero.")
	s.WriteString("</svg>\n")
	return s.String()
}

// column draws one measure of all contenders, on a scale of its own.
func (b *bench) column(s *strings.Builder, m column, shown []contender, x int) {
	text(s, "head", x, 26, "start", m.title)
	text(s, "unit", x, 44, "start", m.unit)
	fmt.Fprintf(s, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", x, headHigh-6, x, headHigh+len(shown)*rowHigh-6)
	most := 0.0
	each := func(do func(row, lease int, value float64, label string)) {
		for row, c := range shown {
			for lease, ttl := range b.options.ttls {
				if o := b.results[result{c.name, ttl}]; o != nil {
					if value, label, has := m.value(c, o, ttl); has {
						do(row, lease, value, label)
					}
				}
			}
		}
	}
	each(func(_, _ int, value float64, _ string) {
		if value < endless {
			most = max(most, value)
		}
	})
	each(func(row, lease int, value float64, label string) {
		y := headHigh + row*rowHigh + lease*(barHigh+3) + 3
		wide := int(math.Round(barsWide * m.share(value, most)))
		if wide > 0 {
			fmt.Fprintf(s, `<rect class="bar t%d" x="%d" y="%d" width="%d" height="%d" rx="2"/>`+"\n", lease, x, y, wide, barHigh)
		}
		text(s, "value", x+wide+5, y+barHigh-1, "start", label)
	})
}

// share is how much of a bar's width a value takes.
func (m column) share(value, most float64) float64 {
	switch {
	case value <= 0 || most <= 0:
		return 0
	case value == endless:
		return 1.15
	case m.linear:
		return value / most
	default:
		// A value at the lower end is seen, too.
		return max(0.03, math.Log(value/m.least)/math.Log(max(most, 10*m.least)/m.least))
	}
}

func text(s *strings.Builder, class string, x, y int, anchor, words string) {
	fmt.Fprintf(s, `<text class="%s" x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(words))
}

const chartStyle = `<style>
text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
.name { font-size: 13px; } .own { font-weight: 700; } .head { font-size: 13px; font-weight: 600; }
.unit, .value { font-size: 11px; fill: #57606a; }
.bar.t0 { fill: #0969da; } .bar.t1 { fill: #8250df; } .bar.t2 { fill: #bf8700; }
.axis { stroke: #8c959f; } .band { fill: #0969da; fill-opacity: .09; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .unit, .value { fill: #9da7b3; }
  .bar.t0 { fill: #58a6ff; } .bar.t1 { fill: #bc8cff; } .bar.t2 { fill: #e3b341; }
  .axis { stroke: #6e7681; } .band { fill: #58a6ff; fill-opacity: .13; }
}
</style>
`
