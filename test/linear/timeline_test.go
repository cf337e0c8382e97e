package linear

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/internal/heartbeat"
)

// now reads the clock of all histories.
func now() int64 { return int64(heartbeat.Boottime()) }

// timeline records the actions of the nemesis with their times. Several goroutines may write it.
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

// with returns the timeline together with other events, in order, with one event in each line. The times are those of the history's
// lines, in seconds.
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
