package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// timeline is what happened when, for whoever looks for a cause. Many may write.
type timeline struct {
	mu    sync.Mutex
	start time.Time
	lines []entry
}

type entry struct {
	at   time.Time
	text string
}

func newTimeline() *timeline { return &timeline{start: time.Now()} }

func (l *timeline) add(format string, args ...any) {
	l.at(time.Now(), format, args...)
}

func (l *timeline) at(at time.Time, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, entry{at, fmt.Sprintf(format, args...)})
}

// clock is a moment as the timeline and the nodes' logs both show it.
func (l *timeline) clock(at time.Time) string {
	return fmt.Sprintf("%8.3f  %s", at.Sub(l.start).Seconds(), at.UTC().Format("15:04:05.000"))
}

func (l *timeline) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, e := range l.lines {
		fmt.Fprintf(&b, "%s  %s\n", l.clock(e.at), e.text)
	}
	return b.String()
}
