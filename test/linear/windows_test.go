package linear

import (
	"fmt"
	"slices"
	"time"
)

// overlaps judges the trust windows of terms: how much of each other they share, and how.
func overlaps(terms []*term) (sum time.Duration, wrongs []string) {
	acted := slices.DeleteFunc(slices.Clone(terms), func(t *term) bool { return t.first == 0 })
	slices.SortFunc(acted, func(a, b *term) int { return int(a.first - b.first) })
	for i, a := range acted {
		for _, b := range acted[i+1:] {
			if b.first >= a.last {
				continue
			}
			shared := time.Duration(min(a.last, b.last) - b.first)
			sum += shared
			wrongs = append(wrongs, fmt.Sprintf("%s (epoch %d) and %s (epoch %d) both led for %v from %v on",
				nodeID(a.node), a.high, nodeID(b.node), b.high, shared, time.Duration(b.first)))
		}
	}
	return sum, wrongs
}

// rising judges the epochs: every term's are above those of all terms before it.
func rising(terms []*term) (wrongs []string) {
	acted := slices.DeleteFunc(slices.Clone(terms), func(t *term) bool { return t.first == 0 })
	slices.SortFunc(acted, func(a, b *term) int { return int(a.first - b.first) })
	for i := 1; i < len(acted); i++ {
		if a, b := acted[i-1], acted[i]; b.low <= a.high {
			wrongs = append(wrongs, fmt.Sprintf("%s led under epoch %d after %s had under epoch %d", nodeID(b.node), b.low, nodeID(a.node), a.high))
		}
	}
	return wrongs
}

// calm is a span in which nothing was broken, in ns of CLOCK_BOOTTIME, and within which
// time somebody has to lead.
type calm struct {
	from, to int64
	limit    time.Duration
}

// recoveries are how long it took in each calm until somebody led. One that ended before
// anybody did tells nothing, unless it was longer than its limit: then it is a failure to
// recover.
func recoveries(calms []calm, terms []*term) (took []time.Duration, wrongs []string) {
	for _, c := range calms {
		back := int64(never)
		for _, t := range terms {
			if t.first != 0 && t.last >= c.from {
				back = min(back, max(t.first, c.from))
			}
		}
		wait := time.Duration(min(back, c.to) - c.from)
		if wait > c.limit {
			wrongs = append(wrongs, fmt.Sprintf("no node led for %v from %v on, when the last fault had ended; %v are allowed", wait, time.Duration(c.from), c.limit))
		}
		if back < c.to {
			took = append(took, wait)
		}
	}
	return took, wrongs
}
