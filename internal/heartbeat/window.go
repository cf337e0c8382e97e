package heartbeat

import (
	"context"
	"sync"
	"time"
)

const (
	// longestSleep bounds how late the guard notices that the machine was
	// suspended: timers stand still in suspend, the boot clock does not.
	longestSleep = 100 * time.Millisecond
	// wakeGrace is the time that the work gets to return when the process itself had been
	// stopped past its hard stop, so that nothing could cancel it in time.
	wakeGrace = 250 * time.Millisecond
)

// Window is the trust window of one lease: until when its holder may act.
type Window struct {
	clock  Clock
	timing Timing

	mu      sync.Mutex
	hard    Instant // H
	lost    bool
	changed chan struct{} // closed when lost
}

// NewWindow opens the window of a lease that was granted to the request sent at sent.
func NewWindow(clock Clock, timing Timing, sent Instant) *Window {
	return &Window{clock: clock, timing: timing, hard: hardStop(timing, sent), changed: make(chan struct{})}
}

func hardStop(t Timing, sent Instant) Instant { return sent.Add(t.TTL - t.Margin) }

// Now is the time by the window's clock.
func (w *Window) Now() Instant { return w.clock() }

// Extend moves the window to that of the renewal sent at sent. It reports false,
// and moves nothing, when the hard stop has passed or the lease was lost: a
// window that has ended is never revived, however good the late answer is.
func (w *Window) Extend(sent Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost || w.clock() >= w.hard {
		return false
	}
	// A late answer counts as its own request's sending, which may lie before
	// one that was answered earlier.
	w.hard = max(w.hard, hardStop(w.timing, sent))
	return true
}

// Lose closes the window now. The hard stop stays where it was: it is still the
// moment at which a holder that does not stop is killed.
func (w *Window) Lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lost {
		w.lost = true
		close(w.changed)
	}
}

// Lost reports whether the window was closed by Lose.
func (w *Window) Lost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// Trusted reports whether the holder may start something: before the soft stop.
func (w *Window) Trusted() bool { return w.UntilSoft() > 0 }

// Overdue reports whether the renewal that should have come last has not been answered for
// half an interval, and more.
func (w *Window) Overdue() bool {
	return w.UntilHard() < w.timing.TTL-w.timing.Margin-w.timing.Interval*3/2
}

// UntilSoft is the time left to the soft stop; zero or less when it has passed or
// the lease was lost.
func (w *Window) UntilSoft() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		return 0
	}
	return w.hard.Sub(w.clock()) - w.timing.Drain
}

// UntilHard is the time left to the hard stop; zero or less when it has passed.
func (w *Window) UntilHard() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hard.Sub(w.clock())
}

// Guard calls soft once, when the soft stop passes or the lease is lost, and hard
// once, when the hard stop passes; then it returns. It also returns, calling
// nothing more, when ctx ends. It never touches the store, so that a store that
// hangs cannot delay it.
func (w *Window) Guard(ctx context.Context, soft, hard func()) {
	softCalled := false
	for {
		if !softCalled && w.UntilSoft() <= 0 {
			late := w.UntilHard() <= 0
			softCalled = true
			soft()
			if late && !sleep(ctx, wakeGrace, nil) {
				return
			}
		}
		left := w.UntilHard()
		if softCalled && left <= 0 {
			hard()
			return
		}
		next, changed := left, (<-chan struct{})(nil)
		if !softCalled {
			next, changed = w.UntilSoft(), w.changed
		}
		if !sleep(ctx, min(next, longestSleep), changed) {
			return
		}
	}
}

// sleep waits for d or for wake; false means that ctx has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	}
	return ctx.Err() == nil
}
