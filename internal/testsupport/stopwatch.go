package testsupport

import (
	"sync"
	"testing"
	"time"
)

// Stopwatch measures how long something takes without the times in which this process got no
// processor: for upper limits. A machine may stand still for seconds at any place, and that is
// no fault of what is measured. What waits for a clock, or works for too long, is found all the
// same: meanwhile the process could have run.
type Stopwatch struct {
	began time.Time

	mu    sync.Mutex
	seen  time.Time     // when it last ran
	still time.Duration // how long it could not, until then
}

// A stopwatch runs every stopwatchTick; what is more than stopwatchSlack between two times is
// time in which it could not.
const (
	stopwatchTick  = 5 * time.Millisecond
	stopwatchSlack = 25 * time.Millisecond
)

// StartStopwatch starts one, which goes on until the test's end.
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

// look notes that the process runs.
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

// Took is the time since the start, without that in which the process stood still.
func (w *Stopwatch) Took() time.Duration {
	now, still := w.look()
	return now.Sub(w.began) - still
}

// Still is for how long the process has stood still since the start.
func (w *Stopwatch) Still() time.Duration {
	_, still := w.look()
	return still
}
