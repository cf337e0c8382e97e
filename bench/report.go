package main

import (
	"fmt"
	"io"
	"slices"

	"baton/bench/internal/rig"
)

// report is the report of this program's own tables.
type report struct{ *rig.Report }

func newReport(out io.Writer, o options) *report {
	r := &report{rig.NewReport(out)}
	r.Printf("%s. %d rows, %d rounds; load average at the start %.1f.", rig.Machine(), o.rows, o.rounds, rig.Load())
	if rig.Load() > 0.5 {
		r.Progress("The machine is busy. That slows programs down that keep three processes busy, as baton does, " +
			"more than those that keep two: ratios will be worse than they are.")
	}
	return r
}

// speed prints the table of one path and checks its ratios.
func (r *report) speed(p path, results map[string][]result) {
	r.Printf("\n### %s\n", p.title)
	r.Printf("| program | rows/s | CPU s per 1 M rows | database's CPU s | peak memory | longest Redis command |")
	r.Printf("|---|--:|--:|--:|--:|--:|")
	for _, program := range p.programs {
		if got := results[program.name]; len(got) > 0 {
			r.line(program, got)
		}
	}
	if len(results) < len(p.programs) {
		return // a part of the programs: nothing to compare
	}
	r.Printf("")
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
	r.Want(arriving >= p.least.ofDirect, "%.2f of the best direct write path, rows as they arrive%s", arriving, required(p.least.ofDirect, ""))
	r.Want(true, "%.2f of the best direct write path, rows in key order", sorted)
	r.Want(naive >= p.least.ofNaive, "%.1f × the naive program%s", naive, required(p.least.ofNaive, " ×"))
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
	r.Printf("| %s | %s | %.2f | %.1f | %.0f MB | %s |", name, thousands(rate(got)),
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
