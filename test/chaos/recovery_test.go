package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"baton/internal/testsupport/cluster"
)

// recovery describes the time after a moment at which no fault was left.
type recovery struct {
	after strike // the fault that ended last
	from  time.Time
	until time.Time // when the next fault began
	// lead is the time until a node said that it leads. flush is the time until every job had succeeded in a run that started after that
	// moment. A negative value means that this did not happen before the next fault.
	lead, flush time.Duration
}

// limit returns the limit of promise 5: one lease, or two leases after a restart of Redis. A lease that was taken or renewed at the end
// of the fault must first run out, which takes one lease. The rest is for the requests.
func (r recovery) limit() time.Duration {
	if r.after.kind == redisKill {
		return 2 * lease
	}
	return lease
}

// recoveries finds the moments without a fault, and measures the recovery after each of them.
func recoveries(strikes []strike, units []*cluster.Unit, answers []answer, runs []jobRun, end time.Time) []recovery {
	var found []recovery
	strikes = slices.Clone(strikes)
	slices.SortFunc(strikes, func(a, b strike) int { return a.ended.Compare(b.ended) })
	for _, s := range strikes {
		r := recovery{after: s, from: s.ended, until: end, lead: -1, flush: -1}
		overlapped := false
		for _, o := range strikes {
			switch {
			case o.begun.After(s.ended):
				r.until = earliest(r.until, o.begun)
			case o.ended.After(s.ended):
				overlapped = true
			}
		}
		r.from = firstUp(units, r.from)
		if overlapped || !r.from.Before(r.until) {
			continue
		}
		r.measure(answers, runs)
		found = append(found, r)
	}
	return found
}

func (r *recovery) measure(answers []answer, runs []jobRun) {
	var lead, flush time.Time
	flushed := map[string]time.Time{}
	for _, a := range answers {
		if !a.sent.Before(r.from) {
			lead = earliest(lead, a.got)
		}
	}
	for _, run := range runs {
		if run.state == "succeeded" && !run.started.Before(r.from) {
			flushed[run.job] = earliest(flushed[run.job], run.finished)
		}
	}
	if len(flushed) == len(jobNames) {
		flush = slices.MaxFunc(slices.Collect(maps.Values(flushed)), time.Time.Compare)
	}
	if !lead.IsZero() && !lead.After(r.until) {
		r.lead = lead.Sub(r.from)
	}
	if !flush.IsZero() && !flush.After(r.until) {
		r.flush = flush.Sub(r.from)
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// firstUp returns the first moment, not earlier than at, at which a node runs.
func firstUp(units []*cluster.Unit, at time.Time) time.Time {
	var first time.Time
	for _, u := range units {
		for i, up := range u.Up {
			if i < len(u.Down) && !u.Down[i].After(at) {
				continue
			}
			if up.Before(at) {
				up = at
			}
			first = earliest(first, up)
		}
	}
	return first
}

// late returns the recoveries that took longer than promised, as texts.
func late(all []recovery, slack time.Duration) []string {
	var wrong []string
	for _, r := range all {
		switch limit := r.limit() + slack; {
		case r.lead > limit:
			wrong = append(wrong, fmt.Sprintf("after %s (%s) had ended at %s it took %v until a node led; the limit is %v",
				r.after.kind, r.after.target, r.from.UTC().Format(logTime), r.lead.Round(time.Millisecond), limit))
		case r.lead < 0 && r.until.Sub(r.from) > limit:
			wrong = append(wrong, fmt.Sprintf("after %s (%s) had ended at %s no node led for %v; the limit is %v",
				r.after.kind, r.after.target, r.from.UTC().Format(logTime), r.until.Sub(r.from).Round(time.Millisecond), limit))
		}
	}
	return wrong
}

// tell returns a text with the median and the maximum of the measured times, and with the fault before the maximum.
func tell(all []recovery, of func(recovery) time.Duration) string {
	measured := slices.DeleteFunc(slices.Clone(all), func(r recovery) bool { return of(r) < 0 })
	if len(measured) == 0 {
		return "not measured: no pause was long enough"
	}
	slices.SortFunc(measured, func(a, b recovery) int { return cmp.Compare(of(a), of(b)) })
	longest := measured[len(measured)-1]
	text := fmt.Sprintf("p50 %4d ms, max %4d ms (after %s), of %d", of(measured[len(measured)/2]).Milliseconds(),
		of(longest).Milliseconds(), strings.ReplaceAll(string(longest.after.kind), ":", ""), len(measured))
	if unmeasured := len(all) - len(measured); unmeasured > 0 {
		text += fmt.Sprintf("; %d times the next fault came first", unmeasured)
	}
	return text
}
