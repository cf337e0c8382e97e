package rig

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// These are sizes in a panel of curves, in pixels.
const (
	panelWide  = 300
	panelHigh  = 210
	plotLeft   = 34 // of the panel's edge
	plotTop    = 52
	plotWide   = 244
	plotHigh   = 124
	panelsARow = 3
)

// Curves are panels that have one axis: values at places, a dot for each value, and a line through
// their medians.
type Curves struct {
	Label  string
	Places []string // along the axis
	Series []string // each has a colour
	Panels []Panel
	Note   string
}

// Panel is one diagram. Its scale begins at 0.
type Panel struct {
	Title, Unit string
	Limit       float64 // the requirement: a dashed line
	Points      []Point
}

// Point is a value; Place and Series are indices.
type Point struct {
	Place, Series int
	Value         float64
}

// SVG draws the panels so that they are readable on a light page and on a dark page.
func (c Curves) SVG() string {
	rows := (len(c.Panels) + panelsARow - 1) / panelsARow
	wide, high := panelWide*min(panelsARow, len(c.Panels)), panelHigh*rows+footHigh
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n",
		wide, high, wide, high, html.EscapeString(c.Label))
	s.WriteString(chartStyle)
	for i, p := range c.Panels {
		c.panel(&s, p, i%panelsARow*panelWide, i/panelsARow*panelHigh)
	}
	x, y := plotLeft, high-footHigh+22
	for i, name := range c.Series {
		fmt.Fprintf(&s, `<circle class="bar t%d" cx="%d" cy="%d" r="4"/>`+"\n", i, x, y-4)
		text(&s, "unit", x+9, y, "start", name)
		x += 80
	}
	text(&s, "unit", x, y, "start", c.Note)
	s.WriteString("</svg>\n")
	return s.String()
}

func (c Curves) panel(s *strings.Builder, p Panel, x0, y0 int) {
	most := 1.25 * p.Limit
	values := make([][]float64, len(c.Places))
	for _, point := range p.Points {
		most = max(most, point.Value)
		values[point.Place] = append(values[point.Place], point.Value)
	}
	most = math.Ceil(most*4) / 4
	x := func(place int) int { return x0 + plotLeft + (2*place+1)*plotWide/(2*len(c.Places)) }
	y := func(value float64) int { return y0 + plotTop + plotHigh - int(math.Round(plotHigh*value/most)) }
	line := func(class string, x1, y1, x2, y2 int) {
		fmt.Fprintf(s, `<line class="%s" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", class, x1, y1, x2, y2)
	}
	text(s, "head", x0+plotLeft, y0+22, "start", p.Title)
	text(s, "unit", x0+plotLeft, y0+38, "start", p.Unit)
	left, right := x0+plotLeft, x0+plotLeft+plotWide
	line("axis", left, y(0), right, y(0))
	for _, tick := range []float64{0, p.Limit, most} {
		text(s, "value", left-5, y(tick)+4, "end", strings.TrimSuffix(fmt.Sprintf("%.2f", tick), ".00"))
	}
	line("axis limit", left, y(p.Limit), right, y(p.Limit))
	var path []string
	for place, name := range c.Places {
		text(s, "value", x(place), y(0)+15, "middle", name)
		if v := values[place]; len(v) > 0 {
			path = append(path, fmt.Sprintf("%d,%d", x(place), y(middle(v))))
		}
	}
	fmt.Fprintf(s, `<polyline class="curve" points="%s"/>`+"\n", strings.Join(path, " "))
	for _, point := range p.Points {
		fmt.Fprintf(s, `<circle class="bar t%d" cx="%d" cy="%d" r="3"/>`+"\n", point.Series,
			x(point.Place)+(2*point.Series-len(c.Series)+1)*2, y(point.Value))
	}
}

// middle returns the median.
func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
