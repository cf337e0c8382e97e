package main

import (
	"fmt"
	"time"

	"baton/bench/internal/rig"
)

// column is one measure of the chart.
type column struct {
	title, unit string
	// value returns the value and its label. has is false if a contender has no value.
	value func(c contender, o *outcome, ttl time.Duration) (value float64, label string, has bool)
	least float64 // the scale is logarithmic from here on; 0: linear
}

func columns() []column {
	never := func(d time.Duration, never bool, word string) (float64, string, bool) {
		if never {
			return rig.Endless, word, true
		}
		return milli(d), millis(d), true
	}
	return []column{
		{title: "handover", unit: "p50, ms, log", least: 0.1, value: func(_ contender, o *outcome, _ time.Duration) (float64, string, bool) {
			d := quantile(o.handovers, 50)
			return milli(d), millis(d), len(o.handovers) > 0
		}},
		{title: "failover", unit: "after SIGKILL, median, × ttl", value: func(_ contender, o *outcome, ttl time.Duration) (float64, string, bool) {
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
		{title: "commands a second", unit: fmt.Sprintf("in Redis, %d standbys", standbys), value: func(_ contender, o *outcome, _ time.Duration) (float64, string, bool) {
			return o.cost.inRedis, fmt.Sprintf("%.1f", o.cost.inRedis), o.cost.inRedis > 0
		}},
	}
}

// chart draws all measures as an SVG picture.
func (b *bench) chart() string {
	var shown []contender
	chart := rig.Chart{Label: "Election, side by side: shorter bars are better", NamesWide: 190, Note: "Shorter is better. No bar: zero."}
	for _, c := range wanted(b.options.only) {
		if !c.daemon {
			shown = append(shown, c)
			chart.Names = append(chart.Names, c.title)
		}
	}
	for _, ttl := range b.options.ttls {
		chart.Ways = append(chart.Ways, fmt.Sprintf("ttl %v", ttl))
	}
	for _, m := range columns() {
		chart.Columns = append(chart.Columns, rig.ChartColumn{Title: m.title, Unit: m.unit, Least: m.least,
			Value: func(name, way int) (value float64, label string, has bool) {
				c, ttl := shown[name], b.options.ttls[way]
				if o := b.results[result{c.name, ttl}]; o != nil {
					return m.value(c, o, ttl)
				}
				return 0, "", false
			}})
	}
	return chart.SVG()
}
