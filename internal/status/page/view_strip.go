package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"baton/internal/operate"
	"baton/internal/text"
)

const (
	// stripWidth and stripHeight are the size of a strip in its own units. markWidth is the width of the mark of one run.
	stripWidth, stripHeight = markWidth * operate.MostRecent, 14
	markWidth, markLeast    = 4, 3
	// stripScale is the minimum duration that fills the whole height, because differences between short runs mean nothing.
	stripScale = time.Second
)

// strip shows the latest runs of a job with one mark for each run. The newest run is on the right. The colour of a mark shows the run's
// result, and the height of the mark shows the run's duration.
type strip struct {
	Marks []marks
	Text  string // the same information as a text
}

// marks contains all marks of one colour, as one path of an SVG image.
type marks struct {
	Tone tone
	Path string
}

// newStrip returns a strip of runs, which are ordered with the oldest run first. It returns nil if there are no runs.
func newStrip(runs []operate.Brief) *strip {
	if len(runs) == 0 {
		return nil
	}
	runs = runs[max(len(runs)-operate.MostRecent, 0):]
	scale := float64(max(longest(runs), stripScale))
	paths := map[tone]*strings.Builder{}
	for i, r := range runs {
		t := briefTone(r)
		if paths[t] == nil {
			paths[t] = &strings.Builder{}
		}
		x := stripWidth - (len(runs)-i)*markWidth + markWidth/2
		height := markLeast + int(math.Round((stripHeight-markLeast)*math.Sqrt(float64(r.Duration.Duration())/scale)))
		fmt.Fprintf(paths[t], "M%d 0V%d", x, min(height, stripHeight)) // the style sheet flips the path vertically
	}
	s := &strip{Text: stripText(runs)}
	for _, t := range []tone{good, bad, warn, busy, idle} {
		if b := paths[t]; b != nil {
			s.Marks = append(s.Marks, marks{t, b.String()})
		}
	}
	return s
}

func longest(runs []operate.Brief) (most time.Duration) {
	for _, r := range runs {
		most = max(most, r.Duration.Duration())
	}
	return most
}

// briefTone returns the tone of a run's result. Missed slots and lost runs do not count as failures.
func briefTone(r operate.Brief) tone {
	switch r.State {
	case "missed", "lost":
		return warn
	case "cancelled":
		return idle
	}
	return runTone(r.State)
}

// stripText returns a text with the number of runs for each result, and with the durations of the runs.
func stripText(runs []operate.Brief) string {
	var parts []string
	count := map[string]int{}
	for _, r := range runs {
		count[r.State]++
	}
	for _, state := range []string{"succeeded", "failed", "timed_out", "cancelled", "lost", "missed"} {
		if n := count[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, words(state)))
		}
	}
	said := fmt.Sprintf("Last %d runs: %s", len(runs), strings.Join(parts, ", "))
	if least, most := durations(runs); most > 0 {
		said += "; took " + text.Span(least)
		if text.Span(most) != text.Span(least) {
			said += " to " + text.Span(most)
		}
	}
	return said
}

// durations returns the shortest and the longest duration of the runs. It ignores missed slots.
func durations(runs []operate.Brief) (least, most time.Duration) {
	first := true
	for _, r := range runs {
		if r.RunID == "" {
			continue
		}
		d := r.Duration.Duration()
		if first || d < least {
			least, first = d, false
		}
		most = max(most, d)
	}
	return least, most
}

// durationsView shows the latest runs of a job. Each run has a bar with a text.
type durationsView struct {
	Text, Top string
	Bars      []durationBar
}

// durationBar is the bar of one run, or of missed slots.
type durationBar struct {
	X, Y, Height int
	Tone         tone
	Text, URL    string // an empty URL means that there is no page for it
	MS           int64  // the time in Text
}

// barWidth is the width of one run's bar, in the units of a plot.
const barWidth = plotWidth / operate.MostRecent

// newDurations returns a view of a job's latest runs. It returns nil if there are no runs.
func newDurations(job string, runs []operate.Brief, now time.Time) *durationsView {
	if len(runs) == 0 {
		return nil
	}
	runs = runs[max(len(runs)-operate.MostRecent, 0):]
	top := durationTop(longest(runs))
	v := &durationsView{Text: strings.TrimPrefix(stripText(runs), "Last "), Top: text.Span(top)}
	for i, r := range runs {
		height := max(int(plotHeight*float64(r.Duration.Duration())/float64(top)), 4)
		bar := durationBar{
			X: plotWidth - (len(runs)-i)*barWidth, Y: plotHeight - height, Height: height, Tone: briefTone(r), Text: briefText(r, now),
			MS: r.Started.UnixMilli(),
		}
		if r.RunID != "" {
			bar.URL = runURL(job, r.RunID) + "?entry=" + r.ID
		}
		v.Bars = append(v.Bars, bar)
	}
	return v
}

// durationTop returns the upper end of the duration axis: a round duration that is not below the longest duration.
func durationTop(most time.Duration) time.Duration {
	if most <= time.Second {
		return time.Duration(niceTop(float64(most.Milliseconds()), false)) * time.Millisecond
	}
	return time.Duration(niceTop(most.Seconds(), true) * float64(time.Second))
}

// briefText describes a run in words.
func briefText(r operate.Brief, now time.Time) string {
	said := at(r.Started.UTC(), now).Clock + ": "
	switch {
	case r.State == "missed":
		return said + text.Count(int64(r.Count), "slot") + " missed"
	case r.Count > 1:
		return said + text.Count(int64(r.Count), "run") + " with nothing to do"
	}
	said += words(r.State) + ", took " + text.Span(r.Duration.Duration())
	if r.Rows > 0 {
		said += ", " + text.Count(r.Rows, "row")
	}
	if r.ExitCode != nil && *r.ExitCode != 0 {
		said += fmt.Sprintf(", exit code %d", *r.ExitCode)
	}
	return said
}
