package testsupport

import (
	"sync"
	"testing"
	"time"
)

// Stopwatch measures how long something takes, without the times when this process got no processor. Use it for upper limits, because a
// machine may pause for seconds, and the measured code cannot prevent that. A test still finds code that waits for a clock or works for too
// long, because the process gets processor time during that wait.
type Stopwatch struct {
	began time.Time

	mu    sync.Mutex
	seen  time.Time     // when the process last ran
	still time.Duration // how long the process got no processor, until seen
}

// A stopwatch ticks every stopwatchTick. If more than stopwatchSlack passes between two ticks, the process got no processor in that time.
const (
	stopwatchTick  = 5 * time.Millisecond
	stopwatchSlack = 25 * time.Millisecond
)

// StartStopwatch starts a stopwatch that stops at the test's end.
func StartStopwatch(t testing.TB) *Stopwatch {
	now := time.Now()
	w := &Stopwatch{began: now, seen: now}
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	go func() {
		tick := time.NewTicker(stopwatchTick)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				w.look()
			}
		}
	}()
	return w
}

// look records that the process runs now. It returns the time, and how long the process has got no processor so far.
func (w *Stopwatch) look() (now time.Time, still time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = time.Now()
	if gap := now.Sub(w.seen); gap > stopwatchSlack {
		w.still += gap - stopwatchTick
	}
	w.seen = now
	return now, w.still
}

// Took returns the time since the start, without the time in which the process got no processor.
func (w *Stopwatch) Took() time.Duration {
	now, still := w.look()
	return now.Sub(w.began) - still
}

// Still returns how long the process has got no processor since the start.
func (w *Stopwatch) Still() time.Duration {
	_, still := w.look()
	return still
}
