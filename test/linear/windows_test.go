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

// span is a stretch of time, in ns of CLOCK_BOOTTIME.
type span struct{ from, to int64 }

// recoveries is, for every span in which nothing was broken, how long it took until
// somebody led. One that ended before anybody did tells nothing, unless it was longer
// than limit: then it is a failure to recover.
func recoveries(calm []span, terms []*term, limit time.Duration) (took []time.Duration, wrongs []string) {
	for _, c := range calm {
		back := int64(never)
		for _, t := range terms {
			if t.first != 0 && t.last >= c.from {
				back = min(back, max(t.first, c.from))
			}
		}
		wait := time.Duration(min(back, c.to) - c.from)
		if wait > limit {
			wrongs = append(wrongs, fmt.Sprintf("nobody led %v after the last fault had ended (until %v)", wait, time.Duration(min(back, c.to))))
		}
		if back < c.to {
			took = append(took, wait)
		}
	}
	return took, wrongs
}
