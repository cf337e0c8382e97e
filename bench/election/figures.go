package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// add adds the results of another trial.
func (o *outcome) add(more outcome) {
	o.handovers = append(o.handovers, more.handovers...)
	o.failovers = append(o.failovers, more.failovers...)
	o.freezes = append(o.freezes, more.freezes...)
	o.recovered = append(o.recovered, more.recovered...)
	o.overlaps = append(o.overlaps, more.overlaps...)
	if more.cost.inRedis > 0 {
		o.cost = more.cost
	}
}

// summary returns a text about one trial, for the person who watches.
func (o *outcome) summary(part, name string, ttl time.Duration) string {
	var parts []string
	for _, d := range append(slices.Clone(o.handovers), o.failovers...) {
		parts = append(parts, millis(d))
	}
	for _, c := range o.freezes {
		parts = append(parts, fmt.Sprintf("overlap %s in %d acts, never ends: %v", millis(c.overlap), c.acts, c.never))
	}
	for _, r := range o.recovered {
		parts = append(parts, fmt.Sprintf("one leads after %s, overlap %s, never: %v", millis(r.after), millis(r.overlap), r.never))
	}
	if o.cost.inRedis > 0 {
		parts = append(parts, fmt.Sprintf("%.1f/s in Redis (%s); %.1f/s sent (%s)", o.cost.inRedis, most(o.cost.servedBy), o.cost.sent, most(o.cost.sentBy)))
	}
	if more := slices.Max(append(o.overlaps, 0)); more > 0 {
		parts = append(parts, "overlap "+millis(more))
	}
	return fmt.Sprintf("%-8s %-14s ttl %-3v %s", part, name, ttl, strings.Join(parts, " "))
}

// quantile returns a measured value, by the nearest rank.
func quantile(of []time.Duration, percent int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// The figures of the table, one of each contender and lease. If a process has not stopped, or the processes have not come to rest, when
// the trial ended, the value is never.

func (o *outcome) freezeOverlap(percent int) (d time.Duration, never bool) {
	var all []time.Duration
	for _, c := range o.freezes {
		never = never || c.never
		all = append(all, c.overlap)
	}
	return quantile(all, percent), never
}

func (o *outcome) recoveryTime(percent int) (d time.Duration, never bool) {
	var all []time.Duration
	for _, r := range o.recovered {
		never = never || r.never
		all = append(all, r.after)
	}
	return quantile(all, percent), never
}

func (o *outcome) recoveryOverlap(percent int) time.Duration {
	var all []time.Duration
	for _, r := range o.recovered {
		all = append(all, r.overlap)
	}
	return quantile(all, percent)
}

// millis formats a time with two significant digits.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d == 0:
		return "0"
	case ms < 9.95:
		return fmt.Sprintf("%.1f", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f", ms)
	default:
		return fmt.Sprintf("%d,%03d", int(ms+0.5)/1000, int(ms+0.5)%1000)
	}
}
