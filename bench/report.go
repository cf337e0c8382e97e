package main

import (
	"fmt"
	"io"

	"baton/bench/internal/rig"
)

// report is a report with this program's own tables.
type report struct{ *rig.Report }

func newReport(out io.Writer, o options) *report {
	r := &report{rig.NewReport(out)}
	r.Printf("%s. %d rows of %d in the table, %d rounds; load average at the start %.1f.", rig.Machine(), o.rows, o.table, o.rounds, rig.Load())
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
	for _, w := range p.wants {
		ours, theirs := best(w.ours), best(w.of)
		if len(ours) == 0 || len(theirs) == 0 {
			continue // one of the programs was not measured
		}
		ratio := rig.Ratio(ours, theirs, result.perSecond)
		text := fmt.Sprintf(w.text, ratio)
		if w.least > 0 {
			text += fmt.Sprintf(" (required: %v)", w.least)
		}
		r.Want(ratio >= w.least, "%s", text)
	}
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
	r.Printf("| %s | %s | %.2f | %.1f | %.0f MB | %s |", name, rig.Thousands(rate(got)),
		rig.Median(got, func(g result) float64 { return g.CPU / float64(g.Rows) * 1e6 }),
		rig.Median(got, func(g result) float64 { return g.DatabaseCPU / float64(g.Rows) * 1e6 }),
		rig.Median(got, func(g result) float64 { return g.PeakMB }), redis)
}

func rate(got []result) float64 { return rig.Median(got, result.perSecond) }
