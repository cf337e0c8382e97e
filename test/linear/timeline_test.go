package linear

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/heartbeat"
)

// now is the clock of all histories.
func now() int64 { return int64(heartbeat.Boottime()) }

// timeline is what the nemesis did and when. Many may write.
type timeline struct {
	mu      sync.Mutex
	entries []entry
}

type entry struct {
	at   int64
	text string
}

func (l *timeline) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry{now(), fmt.Sprintf(format, args...)})
}

// with is the timeline and other events, in their order, one a line. Moments are those of
// the history's lines, in seconds.
func (l *timeline) with(others []entry) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append(slices.Clone(l.entries), others...)
	slices.SortStableFunc(all, func(a, b entry) int { return int(a.at - b.at) })
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%12.4f  %s\n", float64(e.at)/float64(time.Second), e.text)
	}
	return b.String()
}
