package main

import (
	"fmt"
	"slices"
	"time"
)

// tables prints the results, and the requirements of baton.
func (b *bench) tables() {
	for _, ttl := range b.options.ttls {
		b.report.Printf("\n### A lease of %v, %v between two looks at the lock\n", ttl, pollInterval(ttl))
		b.faults(ttl)
		b.costs(ttl)
		b.report.Printf("")
		b.requirements(ttl)
	}
}

// of returns the contenders with results, and these results.
func (b *bench) of(ttl time.Duration, has func(*outcome) bool) ([]contender, map[string]*outcome) {
	var some []contender
	found := map[string]*outcome{}
	for _, c := range contenders() {
		if o := b.results[result{c.name, ttl}]; o != nil && has(o) {
			some = append(some, c)
			found[c.name] = o
		}
	}
	return some, found
}

func (b *bench) faults(ttl time.Duration) {
	some, found := b.of(ttl, func(o *outcome) bool {
		return len(o.handovers)+len(o.failovers)+len(o.freezes)+len(o.recovered) > 0
	})
	if len(some) == 0 {
		return
	}
	b.report.Printf("| program | handover p50 / p95, ms | failover after SIGKILL, median / max, × ttl | frozen for 2 ttl: overlap, median / max, ms | Redis back empty: one leads again after, median / max, ms | overlap meanwhile, median / max, ms |")
	b.report.Printf("|---|--:|--:|--:|--:|--:|")
	for _, c := range some {
		o := found[c.name]
		b.report.Printf("| %s | %s | %s | %s | %s | %s |", c.title,
			shown(len(o.handovers), fmt.Sprintf("%s / %s", millis(quantile(o.handovers, 50)), millis(quantile(o.handovers, 95)))),
			shown(len(o.failovers), fmt.Sprintf("%.2f / %.2f", times(quantile(o.failovers, 50), ttl), times(quantile(o.failovers, 100), ttl))),
			shown(len(o.freezes), pair(o.freezeOverlap, "does not stop")),
			shown(len(o.recovered), pair(o.recoveryTime, "never")),
			shown(len(o.recovered), pair(func(percent int) (time.Duration, bool) {
				_, never := o.recoveryTime(100)
				return o.recoveryOverlap(percent), never
			}, "does not end")))
	}
	b.report.Printf("")
}

func (b *bench) costs(ttl time.Duration) {
	some, found := b.of(ttl, func(o *outcome) bool { return o.cost.inRedis > 0 })
	if len(some) == 0 {
		return
	}
	b.report.Printf("| one leader, %d standbys | renewed every | commands a second in Redis | as clients send them | CPU of all processes, ms/s | of Redis, ms/s | memory of a process |", standbys)
	b.report.Printf("|---|---|--:|--:|--:|--:|--:|")
	for _, c := range some {
		cost := found[c.name].cost
		b.report.Printf("| %s | %s | %.1f | %.1f | %.1f | %.1f | %.0f MB |", c.title, c.renews, cost.inRedis, cost.sent,
			milli(cost.cpu), milli(cost.redisCPU), cost.memoryMB)
	}
}

// requirements prints the results that baton must beat.
func (b *bench) requirements(ttl time.Duration) {
	own := b.results[result{nameBaton, ttl}]
	if own == nil {
		return
	}
	for _, percent := range []int{50, 95} {
		figure := func(_ contender, o *outcome) (float64, bool) {
			return milli(quantile(o.handovers, percent)), len(o.handovers) > 0
		}
		b.atMost(ttl, fmt.Sprintf("handover p%d, ms", percent), "the best other's", nameBaton, figure)
	}
	if n := len(own.overlaps) + len(own.freezes) + len(own.recovered); n > 0 {
		frozen, _ := own.freezeOverlap(100)
		total := max(slices.Max(append(own.overlaps, 0)), frozen, own.recoveryOverlap(100))
		b.report.Want(total == 0, "overlap: %s ms in %d handovers, %d failovers, %d freezes and %d restarts of Redis (required: 0)",
			millis(total), len(own.handovers), len(own.failovers), len(own.freezes), len(own.recovered))
	}
	b.atMost(ttl, "one leads again, median, ms", "the best of those that never overlapped then", nameBaton,
		func(_ contender, o *outcome) (float64, bool) {
			d, never := o.recoveryTime(50)
			return milli(d), len(o.recovered) > 0 && !never && o.recoveryOverlap(100) == 0
		})
	b.atMost(ttl, "commands a second in Redis, of `baton run`", "the best of those that poll", nameDaemon,
		func(c contender, o *outcome) (float64, bool) {
			return o.cost.inRedis, o.cost.inRedis > 0 && (c.polls || c.daemon)
		})
}

// atMost requires that our figure is not larger than the smallest figure of the others. The figures are compared as they are printed.
func (b *bench) atMost(ttl time.Duration, what, whose, ours string, figure func(contender, *outcome) (value float64, counts bool)) {
	var title string
	var own, least float64
	found := false
	for _, c := range contenders() {
		o := b.results[result{c.name, ttl}]
		if o == nil {
			continue
		}
		value, counts := figure(c, o)
		switch {
		case !counts:
		case c.name == ours:
			own, found = value, true
		case c.name != nameBaton && c.name != nameDaemon && (title == "" || value < least):
			title, least = c.title, value
		}
	}
	if !found {
		return
	}
	if title == "" {
		b.report.Want(true, "%s: %.1f (required: at most %s; there is none)", what, own, whose)
		return
	}
	b.report.Want(fmt.Sprintf("%.1f", own) == fmt.Sprintf("%.1f", least) || own < least,
		"%s: %.1f (required: at most %s, %s: %.1f)", what, own, whose, title, least)
}

func shown(n int, text string) string {
	if n == 0 {
		return "–"
	}
	return text
}

func pair(figure func(percent int) (time.Duration, bool), never string) string {
	median, _ := figure(50)
	longest, endless := figure(100)
	if endless {
		return never
	}
	return millis(median) + " / " + millis(longest)
}

func times(d, ttl time.Duration) float64 { return float64(d) / float64(ttl) }

func milli(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
