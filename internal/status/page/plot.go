package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

const (
	// plotSpan is the longest time span of a plot.
	plotSpan = time.Hour
	// plotWidth and plotHeight are the size of a plot in its own units. The page scales the plot.
	plotWidth, plotHeight   = 720, 160
	sparkWidth, sparkHeight = 60, 16
	// sparkPoints is the maximum number of points of a spark. It keeps a page with two hundred sparks small.
	sparkPoints = 20
)

// spark is a small plot without axes. It is shown beside a number, and shows the values of that number in the last hour.
type spark struct {
	Points string // the points of a polyline
	Text   string // the same information as a text
}

// plot shows one quantity over a time span of an hour or less.
type plot struct {
	Title, Text string
	TopMS       int64    // the time in Text
	Lines       []string // the points of polylines; missing samples result in a gap between two lines
	Top, Half   string   // labels of the axis
	Limit       string   // the position of the line that marks the limit; "" if there is no limit
	LimitText   string
	Hits        []hit
}

// point is the value of a quantity at one time.
type point struct {
	at    time.Time
	value float64
}

// series returns a job's samples of the last hour as points. The function in the argument of returns the quantity to show, or a negative
// number if the quantity is unknown.
func series(samples []operate.Sample, job string, now time.Time, of func(operate.Level) float64) (points []point) {
	for _, s := range samples {
		if level, ok := s.Jobs[job]; ok && now.Sub(s.At) <= plotSpan && !s.At.After(now.Add(time.Minute)) {
			if v := of(level); v >= 0 {
				points = append(points, point{s.At, v})
			}
		}
	}
	return points
}

func lagLevel(l operate.Level) float64     { return l.LagSeconds }
func backlogLevel(l operate.Level) float64 { return float64(l.Backlog) }

// rateLevel returns the rate in rows per second, or -1 if the rate is unknown.
func rateLevel(l operate.Level) float64 {
	if l.RowsPerSecond == nil {
		return -1
	}
	return *l.RowsPerSecond
}

func highest(points []point) (top point) {
	for _, p := range points {
		if p.value >= top.value {
			top = p
		}
	}
	return top
}

// sparkline returns a spark with the lag of a job in the last hour. It returns nil if there is nothing to show.
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
		return nil // a line needs two points
	}
	top := highest(points)
	// A lag below ten seconds is normal and must not look alarming.
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

// gapAfter is the maximum time between two samples that are joined by a line.
const gapAfter = time.Minute

// newPlot returns a plot of one quantity over a time span that ends now. It returns nil if there are fewer than two samples.
func newPlot(title string, points []point, now time.Time, span time.Duration, limit float64, text func(float64) string) *plot {
	points = slices.DeleteFunc(points, func(p point) bool { return now.Sub(p.at) > span })
	if len(points) < 2 {
		return nil
	}
	top := highest(points)
	high := niceTop(top.value, title == lagTitle)
	p := &plot{Title: title, Top: text(high), Half: text(high / 2)}
	p.Text = fmt.Sprintf("now %s, at most %s at %s", text(points[len(points)-1].value), text(top.value), top.at.UTC().Format("15:04 MST"))
	p.TopMS = top.at.UnixMilli()
	x := func(at time.Time) float64 { return plotWidth * (1 - float64(now.Sub(at))/float64(span)) }
	y := func(v float64) float64 { return plotHeight * (1 - v/high) }
	var b strings.Builder
	for i, pt := range points {
		if i > 0 && pt.at.Sub(points[i-1].at) > gapAfter {
			p.Lines = append(p.Lines, strings.TrimSpace(b.String()))
			b.Reset()
		}
		fmt.Fprintf(&b, "%.1f,%.1f ", x(pt.at), y(pt.value))
	}
	p.Lines = append(p.Lines, strings.TrimSpace(b.String()))
	if limit > 0 && limit <= high {
		p.Limit, p.LimitText = fmt.Sprintf("%.1f", y(limit)), "late from "+text(limit)+" on"
	}
	for _, pt := range everyNth(points, plotHits) {
		p.Hits = append(p.Hits, hit{
			X: fmt.Sprintf("%.1f", max(x(pt.at)-plotWidth/plotHits/2, 0)), Text: pt.at.UTC().Format("15:04:05 MST") + ": " + text(pt.value),
			MS: pt.at.UnixMilli(),
		})
	}
	return p
}

// plotHits is the argument n of everyNth for a plot. It limits the places in a plot that show their value while the pointer is over them.
const plotHits = 60

// hit is a place in a plot that shows its value while the pointer is over it.
type hit struct {
	X, Text string
	MS      int64 // the time in Text
}

// everyNth returns fewer than 2n of the points, evenly distributed. The last point is always among them.
func everyNth(points []point, n int) (some []point) {
	for i := len(points) - 1; i >= 0; i -= max(len(points)/n, 1) {
		some = append(some, points[i])
	}
	return some
}

// plotMark is a point in time that is marked in all plots.
type plotMark hit

// handovers returns a mark for each time at which a node took the lead. It ignores times that are further back than the argument span.
func handovers(events []diagnose.Event, now time.Time, span time.Duration) (all []plotMark) {
	for _, e := range events {
		if ago := now.Sub(e.At); e.Event == "won" && ago >= 0 && ago <= span {
			all = append(all, plotMark{
				X:    fmt.Sprintf("%.1f", plotWidth*(1-float64(ago)/float64(span))),
				Text: e.At.UTC().Format("15:04:05 MST") + ": " + clip(visible(e.NodeID)) + " took the lead",
				MS:   e.At.UnixMilli(),
			})
		}
	}
	return all
}

// ranges contains the time spans that the user can choose for plots.
var ranges = []struct {
	name, label, half string
	span              time.Duration
}{{"10m", "10 min", "5 min", 10 * time.Minute}, {"30m", "30 min", "15 min", 30 * time.Minute}, {"", "1 h", "30 min", plotSpan}}

// rangeView is a link that chooses a time span.
type rangeView struct {
	Label, URL string
	Current    bool
}

// plotsView contains all plots of a job over one time span.
type plotsView struct {
	Plots      []*plot
	From, Half string // labels of the axis
	Marks      []plotMark
	Ranges     []rangeView
}

// newPlots returns the plots of a flush over one time span. The argument span is the name of the time span in the page's query, such as
// "10m".
func newPlots(s diagnose.Snapshot, j diagnose.Job, extra extras, span string) *plotsView {
	now, v := s.Clock(), &plotsView{}
	chosen := ranges[len(ranges)-1]
	for _, r := range ranges {
		if r.name == span {
			chosen = r
		}
		to := jobURL(j.Name)
		if r.name != "" {
			to += "?range=" + r.name
		}
		v.Ranges = append(v.Ranges, rangeView{r.label, to, r.name == span})
	}
	v.From, v.Half = chosen.label+" ago", chosen.half
	add := func(title string, limit float64, of func(operate.Level) float64, text func(float64) string) {
		if p := newPlot(title, series(extra.samples, j.Name, now, of), now, chosen.span, limit, text); p != nil {
			v.Plots = append(v.Plots, p)
		}
	}
	add(lagTitle, j.LateAfter().Seconds(), lagLevel, seconds)
	if j.Backlog != nil || highest(series(extra.samples, j.Name, now, backlogLevel)).value > 0 { // otherwise the count may be unknown
		add(backlogTitle, 0, backlogLevel, func(n float64) string { return text.Number(int64(n)) })
	}
	add(rateTitle, 0, rateLevel, perSecond)
	if len(v.Plots) == 0 {
		return nil
	}
	events := s.Events
	if j.Lock != "" && j.Lock != s.LockKey {
		events = extra.others[j.Lock]
	}
	v.Marks = handovers(events, now, chosen.span)
	return v
}

const (
	lagTitle     = "Lag"
	backlogTitle = "Backlog"
	rateTitle    = "Rows a second"
)

// niceTop returns the upper end of a plot's axis: a round number that is not below v.
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
