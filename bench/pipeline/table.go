package main

import (
	"fmt"

	"baton/bench/internal/rig"
)

// These are baton's requirements for a stream, relative to Benthos with its best setting.
const (
	leastSpeed = 1.5 // times the rows per second of Benthos
	mostCPU    = 0.5 // of the CPU time for a row
	// leastOfTuned is the requirement relative to the program that is tuned by hand.
	leastOfTuned = 1.0
)

// tables prints the results, and the requirements of baton.
func (b *bench) tables() {
	for _, f := range flows() {
		if !rig.Named(b.options.flows, f.name) {
			continue
		}
		b.report.Printf("\n### %s\n", f.title)
		b.report.Printf("| program | rows/s | CPU s per 1 M rows | peak memory | after %d kills: entries | lost | written twice |", b.options.kills)
		b.report.Printf("|---|--:|--:|--:|--:|--:|--:|")
		for _, c := range b.wanted() {
			if !c.speedOnly || f.source == flowStream {
				b.line(f, c)
			}
		}
		if s, known := b.best[f.name]; known {
			b.report.Printf("\nBenthos: %v%s.", s, tried(b.tried[f.name]))
		}
		b.report.Printf("")
		b.requirements(f)
	}
}

func tried(settings int) string {
	if settings == 0 {
		return ", no other settings were tried"
	}
	return fmt.Sprintf(", the fastest of %d settings tried", settings)
}

func (b *bench) line(f flow, c contender) {
	r := result{f.name, c.name}
	rows, cpu, memory := "–", "–", "–"
	if got := b.speeds[r]; len(got) > 0 {
		rows = rig.Thousands(rig.Median(got, speed.perSecond))
		cpu = fmt.Sprintf("%.2f", rig.Median(got, speed.perMillion))
		memory = fmt.Sprintf("%.0f MB", rig.Median(got, func(s speed) float64 { return s.peakMB }))
	}
	made, lost, twice := "–", "–", "–"
	if a := b.audits[r]; a != nil {
		made, lost, twice = fmt.Sprint(a.produced), fmt.Sprint(a.lost()), fmt.Sprint(a.twice())
	}
	b.report.Printf("| %s | %s | %s | %s | %s | %s | %s |", c.title, rows, cpu, memory, made, lost, twice)
}

func (b *bench) requirements(f flow) {
	ours, naive, theirs := b.speeds[result{f.name, nameBaton}], b.speeds[result{f.name, nameNaive}], b.speeds[result{f.name, nameBenthos}]
	if len(ours) > 0 && len(theirs) > 0 {
		faster := rig.Ratio(ours, theirs, speed.perSecond)
		cheaper := rig.Ratio(ours, theirs, speed.perMillion)
		if f.source == flowStream {
			b.report.Want(faster >= leastSpeed, "%.1f × the rows a second of Benthos (required: %v ×)", faster, leastSpeed)
			b.report.Want(cheaper <= mostCPU, "%.2f of its CPU time for a row (required: %v)", cheaper, mostCPU)
		} else {
			b.report.Want(true, "%.1f × the rows a second of Benthos, %.2f of its CPU time for a row", faster, cheaper)
		}
	}
	if tuned := b.speeds[result{f.name, nameTuned}]; len(ours) > 0 && len(tuned) > 0 {
		ratio := rig.Ratio(ours, tuned, speed.perSecond)
		b.report.Want(ratio >= leastOfTuned, "%.2f × the rows a second of a program tuned by hand (required: %v)", ratio, leastOfTuned)
	}
	if len(ours) > 0 && len(naive) > 0 {
		b.report.Want(true, "%.0f × the rows a second of the naive program", rig.Ratio(ours, naive, speed.perSecond))
	}
	if a := b.audits[result{f.name, nameBaton}]; a != nil {
		b.report.Want(a.lost() == 0 && a.twice() == 0 && a.wrong == 0, "%d kills, %d entries: %d lost, %d written twice, %d changed (required: none)",
			a.kills, a.produced, a.lost(), a.twice(), a.wrong)
	}
}

// chart draws the tables.
func (b *bench) chart() string {
	some := b.wanted()
	var ways []flow
	c := rig.Chart{Label: "From Redis into PostgreSQL, side by side", NamesWide: 110, Note: "No bar: none."}
	for _, f := range flows() {
		if rig.Named(b.options.flows, f.name) {
			ways = append(ways, f)
			c.Ways = append(c.Ways, f.name)
		}
	}
	for _, one := range some {
		c.Names = append(c.Names, one.title)
	}
	measured := func(label string, value func(speed) float64) func(name, way int) (float64, string, bool) {
		return func(name, way int) (float64, string, bool) {
			got := b.speeds[result{ways[way].name, some[name].name}]
			v := rig.Median(got, value)
			if label == "" {
				return v, rig.Thousands(v), len(got) > 0
			}
			return v, fmt.Sprintf(label, v), len(got) > 0
		}
	}
	counted := func(count func(audit) int) func(name, way int) (float64, string, bool) {
		return func(name, way int) (float64, string, bool) {
			a := b.audits[result{ways[way].name, some[name].name}]
			if a == nil {
				return 0, "", false
			}
			return float64(count(*a)), fmt.Sprint(count(*a)), true
		}
	}
	c.Columns = []rig.ChartColumn{
		{Title: "rows a second", Unit: "more is better", Value: measured("", speed.perSecond)},
		{Title: "CPU", Unit: "s per 1 M rows, less is better", Value: measured("%.1f", speed.perMillion)},
		{Title: "peak memory", Unit: "MB, less is better", Value: measured("%.0f", func(s speed) float64 { return s.peakMB })},
		{Title: "lost", Unit: fmt.Sprintf("entries in %d kills, log", b.options.kills), Least: 0.5, Value: counted(audit.lost)},
		{Title: "written twice", Unit: fmt.Sprintf("entries in %d kills, log", b.options.kills), Least: 0.5, Value: counted(audit.twice)},
	}
	return c.SVG()
}
