package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"baton/internal/operate"
	"baton/internal/text"
)

const (
	// plotSpan is how far back plots go.
	plotSpan = time.Hour
	// plotWidth and plotHeight are a plot's own units; the page stretches it.
	plotWidth, plotHeight   = 720, 160
	sparkWidth, sparkHeight = 60, 16
	// sparkPoints keep two hundred of them small.
	sparkPoints = 30
)

// spark is a small plot without axes, beside the figure whose past it shows.
type spark struct {
	Points string // of a polyline
	Text   string // says the same
}

// plot is one quantity over the last hour.
type plot struct {
	Title, Text string
	Lines       []string // each the points of a polyline: where samples are missing there is a gap
	Top, Half   string   // what stands at the axis
	Limit       string   // how far down a line is from which on it is too much; "" without
	LimitText   string
}

// point is a sample of one quantity.
type point struct {
	at    time.Time
	value float64
}

// series are a job's samples of one quantity in the last hour.
func series(samples []operate.Sample, job string, now time.Time, of func(operate.Level) float64) (points []point) {
	for _, s := range samples {
		if level, ok := s.Jobs[job]; ok && now.Sub(s.At) <= plotSpan && !s.At.After(now.Add(time.Minute)) {
			points = append(points, point{s.At, of(level)})
		}
	}
	return points
}

func lagLevel(l operate.Level) float64     { return l.LagSeconds }
func backlogLevel(l operate.Level) float64 { return float64(l.Backlog) }

func highest(points []point) (top point) {
	for _, p := range points {
		if p.value >= top.value {
			top = p
		}
	}
	return top
}

// sparkline is the lag of a job in the last hour; nil if there is nothing to see.
func sparkline(samples []operate.Sample, job string, now time.Time) *spark {
	points := series(samples, job, now, lagLevel)
	if len(points) < 2 {
		return nil
	}
	var worst [sparkPoints]float64
	var have [sparkPoints]bool
	for _, p := range points {
		i := min(max(int(float64(sparkPoints)*(1-float64(now.Sub(p.at))/float64(plotSpan))), 0), sparkPoints-1)
		worst[i], have[i] = max(worst[i], p.value), true
	}
	if n := slices.Index(have[:], true); !slices.Contains(have[n+1:], true) {
		return nil // of one point there is no line
	}
	top := highest(points)
	// A lag below ten seconds is normal: it shall not look like mountains.
	scale := max(top.value, 10)
	var b strings.Builder
	for i := range worst {
		if have[i] {
			fmt.Fprintf(&b, "%d,%d ", i*sparkWidth/(sparkPoints-1), sparkHeight-1-int(math.Round(worst[i]/scale*(sparkHeight-2))))
		}
	}
	return &spark{Points: strings.TrimSpace(b.String()), Text: "Lag in the last hour: at most " + seconds(top.value)}
}

func seconds(s float64) string { return text.Span(time.Duration(s * float64(time.Second))) }

// gapAfter is how far two samples may be apart that are still joined by a line.
const gapAfter = time.Minute

// newPlot draws one quantity; nil if there are not two samples.
func newPlot(title string, points []point, now time.Time, limit float64, text func(float64) string) *plot {
	if len(points) < 2 {
		return nil
	}
	top := highest(points)
	high := niceTop(top.value, title == lagTitle)
	p := &plot{Title: title, Top: text(high), Half: text(high / 2)}
	p.Text = fmt.Sprintf("now %s, at most %s at %s", text(points[len(points)-1].value), text(top.value), top.at.UTC().Format("15:04 MST"))
	y := func(v float64) float64 { return plotHeight * (1 - v/high) }
	var b strings.Builder
	for i, pt := range points {
		if i > 0 && pt.at.Sub(points[i-1].at) > gapAfter {
			p.Lines = append(p.Lines, strings.TrimSpace(b.String()))
			b.Reset()
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", plotWidth*(1-float64(now.Sub(pt.at))/float64(plotSpan)), y(pt.value))
	}
	p.Lines = append(p.Lines, strings.TrimSpace(b.String()))
	if limit > 0 && limit <= high {
		p.Limit, p.LimitText = fmt.Sprintf("%.1f", y(limit)), "late from "+text(limit)+" on"
	}
	return p
}

const (
	lagTitle     = "Lag"
	backlogTitle = "Backlog"
)

// niceTop is the end of an axis: a number that people like, not below v.
func niceTop(v float64, isTime bool) float64 {
	if isTime {
		for _, s := range []float64{2, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 24 * 3600} {
			if v <= s {
				return s
			}
		}
	}
	size := math.Pow(10, math.Floor(math.Log10(max(v, 10))))
	for _, by := range []float64{1, 2, 5, 10} {
		if v <= by*size {
			return by * size
		}
	}
	return v
}
