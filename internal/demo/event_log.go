package demo

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// eventLog contains the events of a run, for the screen or the log.
type eventLog struct {
	log io.Writer // nil if there is a screen

	mu      sync.Mutex
	entries []entry
}

type entry struct {
	at   time.Time
	text string
}

const eventsKept = 100

func (d *eventLog) note(format string, args ...any) {
	e := entry{time.Now(), fmt.Sprintf(format, args...)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log != nil {
		_, _ = fmt.Fprintf(d.log, "%s  %s\n", e.at.Format(time.TimeOnly), e.text)
	}
	d.entries = append(d.entries, e)
	d.entries = d.entries[max(0, len(d.entries)-eventsKept):]
}

// last returns the latest n entries, the newest first.
func (d *eventLog) last(n int) []entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []entry
	for i := len(d.entries) - 1; i >= 0 && len(list) < n; i-- {
		list = append(list, d.entries[i])
	}
	return list
}
