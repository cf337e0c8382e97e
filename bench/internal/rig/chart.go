package rig

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// These are sizes in the chart, in pixels.
const (
	columnWide = 190
	barsWide   = 110 // the width of a column's bars; the name and the value are beside the bars
	headHigh   = 66
	footHigh   = 34
	barHigh    = 11
	barStep    = barHigh + 3
)

// Endless is the value of a measure without an end. Its bar goes to the edge.
const Endless = math.MaxFloat64

// Chart is a bar chart of several programs in several ways, side by side.
type Chart struct {
	Label     string
	Names     []string // the programs; the first one is baton
	NamesWide int      // the width of the names in pixels
	Ways      []string // each has a colour
	Columns   []ChartColumn
	Note      string
}

// ChartColumn is one measure, with its own scale.
type ChartColumn struct {
	Title, Unit string
	Least       float64 // the scale is logarithmic from here on; 0: linear
	// Value returns the value and its label. has is false if a program has no value.
	Value func(name, way int) (value float64, label string, has bool)
}

// SVG draws the chart so that it is readable on a light page and on a dark page.
func (c Chart) SVG() string {
	rowHigh := len(c.Ways)*barStep + 10
	wide, high := c.NamesWide+len(c.Columns)*columnWide, headHigh+len(c.Names)*rowHigh+footHigh
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		wide, high, wide, high, html.EscapeString(c.Label))
	s.WriteString(chartStyle)
	for i, name := range c.Names {
		y := headHigh + i*rowHigh
		class := "name"
		if i == 0 {
			class = "name own"
			fmt.Fprintf(&s, `<rect class="band" x="0" y="%d" width="%d" height="%d" rx="4"/>`+"\n", y-4, wide, rowHigh-2)
		}
		text(&s, class, c.NamesWide-14, y+rowHigh/2, "end", name)
	}
	for i, column := range c.Columns {
		c.column(&s, column, c.NamesWide+i*columnWide, rowHigh)
	}
	x, y := c.NamesWide, high-footHigh+22
	for i, way := range c.Ways {
		fmt.Fprintf(&s, `<rect class="bar t%d" x="%d" y="%d" width="14" height="%d" rx="2"/>`+"\n", i, x, y-10, barHigh)
		text(&s, "unit", x+20, y, "start", way)
		x += 90
	}
	text(&s, "unit", x, y, "start", c.Note)
	s.WriteString("</svg>\n")
	return s.String()
}

func (c Chart) column(s *strings.Builder, m ChartColumn, x, rowHigh int) {
	text(s, "head", x, 26, "start", m.Title)
	text(s, "unit", x, 44, "start", m.Unit)
	fmt.Fprintf(s, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", x, headHigh-6, x, headHigh+len(c.Names)*rowHigh-8)
	most := 0.0
	each := func(do func(name, way int, value float64, label string)) {
		for name := range c.Names {
			for way := range c.Ways {
				if value, label, has := m.Value(name, way); has {
					do(name, way, value, label)
				}
			}
		}
	}
	each(func(_, _ int, value float64, _ string) {
		if value < Endless {
			most = max(most, value)
		}
	})
	each(func(name, way int, value float64, label string) {
		y := headHigh + name*rowHigh + way*barStep
		wide := int(math.Round(barsWide * m.share(value, most)))
		if wide > 0 {
			fmt.Fprintf(s, `<rect class="bar t%d" x="%d" y="%d" width="%d" height="%d" rx="2"/>`+"\n", way, x, y, wide, barHigh)
		}
		text(s, "value", x+wide+5, y+barHigh-1, "start", label)
	})
}

// share returns the share of a bar's full width for a value.
func (m ChartColumn) share(value, most float64) float64 {
	switch {
	case value <= 0 || most <= 0:
		return 0
	case value == Endless:
		return 1.15
	case m.Least == 0:
		return value / most
	default:
		// A value at the lower end must also be visible.
		return max(0.03, math.Log(value/m.Least)/math.Log(max(most, 10*m.Least)/m.Least))
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
.bar.t3 { fill: #1a7f37; } .bar.t4 { fill: #cf222e; } .curve { fill: none; stroke: #57606a; stroke-width: 1.5; }
.limit { stroke-dasharray: 4 3; }
.axis { stroke: #8c959f; } .band { fill: #0969da; fill-opacity: .09; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .unit, .value { fill: #9da7b3; }
  .bar.t0 { fill: #58a6ff; } .bar.t1 { fill: #bc8cff; } .bar.t2 { fill: #e3b341; }
  .bar.t3 { fill: #56d364; } .bar.t4 { fill: #ff7b72; } .curve { stroke: #9da7b3; }
  .axis { stroke: #6e7681; } .band { fill: #58a6ff; fill-opacity: .13; }
}
</style>
`
