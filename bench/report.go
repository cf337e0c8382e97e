package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// report prints what was measured, as Markdown that can be read as it is, and
// remembers what was missed.
type report struct {
	out    io.Writer
	text   bytes.Buffer // what goes into the document
	missed []error
}

func newReport(out io.Writer, o options) *report {
	r := &report{out: out}
	r.printf("%s. %d rows, %d rounds; load average at the start %.1f.", machine(), o.rows, o.rounds, load())
	if load() > 0.5 {
		r.progress("The machine is busy. That slows programs down that keep three processes busy, as baton does, " +
			"more than those that keep two: ratios will be worse than they are.")
	}
	return r
}

// progress is for whoever waits, not for the document.
func (r *report) progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (r *report) printf(format string, args ...any) {
	fmt.Fprintf(io.MultiWriter(r.out, &r.text), format+"\n", args...)
}

// want prints a figure beside what is required of it.
func (r *report) want(ok bool, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !ok {
		r.missed = append(r.missed, errors.New("missed: "+line))
		line = "**MISSED** " + line
	}
	r.printf("- %s", line)
}

func (r *report) verdict() error { return errors.Join(r.missed...) }

// speed prints the table of one path and checks its ratios.
func (r *report) speed(p path, results map[string][]result) {
	r.printf("\n### %s\n", p.title)
	r.printf("| program | rows/s | CPU s per 1 M rows | database's CPU s | peak memory | longest Redis command |")
	r.printf("|---|--:|--:|--:|--:|--:|")
	for _, program := range p.programs {
		if got := results[program.name]; len(got) > 0 {
			r.line(program, got)
		}
	}
	if len(results) < len(p.programs) {
		return // a part of the programs: nothing to compare
	}
	r.printf("")
	best := func(with func(program) bool) []result {
		var most []result
		for _, q := range p.programs {
			if got := results[q.name]; with(q) && (most == nil || rate(got) > rate(most)) {
				most = got
			}
		}
		return most
	}
	ours := best(func(q program) bool { return q.role == roleBaton })
	arriving := ratio(ours, best(func(q program) bool { return q.role == roleDirect && !q.sorted }))
	sorted := ratio(ours, best(func(q program) bool { return q.role == roleDirect && q.sorted }))
	naive := ratio(ours, best(func(q program) bool { return q.role == roleNaive }))
	r.want(arriving >= p.least.ofDirect, "%.2f of the best direct write path, rows as they arrive%s", arriving, required(p.least.ofDirect, ""))
	r.want(true, "%.2f of the best direct write path, rows in key order", sorted)
	r.want(naive >= p.least.ofNaive, "%.1f × the naive program%s", naive, required(p.least.ofNaive, " ×"))
}

// required says what is, if anything is.
func required(least float64, unit string) string {
	if least == 0 {
		return ""
	}
	return fmt.Sprintf(" (required: %v%s)", least, unit)
}

func (r *report) line(p program, got []result) {
	var longest slowCommand
	for _, g := range got {
		if g.Longest.Took > longest.Took {
			longest = g.Longest
		}
	}
	redis := "–"
	if p.redis {
		redis = longest.String()
	}
	name := p.name
	if p.role == roleDirect {
		name = "direct: " + name
	}
	r.printf("| %s | %s | %.2f | %.1f | %.0f MB | %s |", name, thousands(rate(got)),
		median(got, func(g result) float64 { return g.CPU / float64(g.Rows) * 1e6 }),
		median(got, func(g result) float64 { return g.DatabaseCPU / float64(g.Rows) * 1e6 }),
		median(got, func(g result) float64 { return g.PeakMB }), redis)
}

func rate(got []result) float64 { return median(got, result.perSecond) }

// ratio compares two programs round by round, so that what slowed a whole round
// down does not count.
func ratio(a, b []result) float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i].perSecond() / b[i].perSecond()
	}
	return median(ratios, func(x float64) float64 { return x })
}

func median[T any](of []T, value func(T) float64) float64 {
	if len(of) == 0 {
		return 0
	}
	var values []float64
	for _, x := range of {
		values = append(values, value(x))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// thousands writes 123456 as 123,000: more digits would be noise.
func thousands(f float64) string {
	if f < 1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.0f,000", f/1000)
}

// The markers between which the tables stand in a document.
const (
	beginMark = "<!-- begin: written by make bench -->"
	endMark   = "<!-- end: written by make bench -->"
)

// writeInto replaces what stands between the markers of a document.
func (r *report) writeInto(name string) error {
	document, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(document), beginMark)
	_, after, ended := strings.Cut(rest, endMark)
	if !begun || !ended {
		return fmt.Errorf("%s has no lines %q and %q to write between", name, beginMark, endMark)
	}
	text := before + beginMark + "\n" + time.Now().Format("2 January 2006") + ", " + r.text.String() + endMark + after
	return os.WriteFile(name, []byte(text), 0o644)
}
