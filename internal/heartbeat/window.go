package heartbeat

import (
	"context"
	"sync"
	"time"
)

const (
	// longestSleep limits how late the guard notices that the machine was suspended, because timers stop during suspend and the boot clock
	// does not.
	longestSleep = 100 * time.Millisecond
	// wakeGrace is the extra time that the work gets to return if the process itself was stopped until after the hard stop. In that case
	// nothing could cancel the work in time.
	wakeGrace = 250 * time.Millisecond
)

// Window is the trust window of one lease, which says until when the holder of the lease may act.
type Window struct {
	clock  Clock
	timing Timing

	mu      sync.Mutex
	hard    Instant // H
	lost    bool
	stopped bool          // a caller has seen that the soft stop had passed
	changed chan struct{} // closed when the lease was lost
}

// NewWindow opens the window of a lease. The argument sent is the time at which the request that won the lease was sent.
func NewWindow(clock Clock, timing Timing, sent Instant) *Window {
	return &Window{clock: clock, timing: timing, hard: hardStop(timing, sent), changed: make(chan struct{})}
}

func hardStop(t Timing, sent Instant) Instant { return sent.Add(t.TTL - t.Margin) }

// Now returns the present time of the window's clock.
func (w *Window) Now() Instant { return w.clock() }

// Extend moves the window to the limits of a renewal. The argument sent is the time at which the request for the renewal was sent. If
// the hard stop has passed or the lease was lost, Extend moves nothing and returns false: a window that has ended is never revived,
// whatever the late answer is.
func (w *Window) Extend(sent Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost || w.clock() >= w.hard {
		return false
	}
	// A late answer counts from the sending of its own request, which may be earlier than the sending of a request that was answered
	// before.
	w.hard = max(w.hard, hardStop(w.timing, sent))
	return true
}

// Lose closes the window now. The hard stop does not change: a holder that does not stop is still killed at that moment.
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

// Trusted reports whether the holder may start something, because the soft stop has not passed.
func (w *Window) Trusted() bool { return w.UntilSoft() > 0 }

// Overdue reports whether a renewal was due and has had no answer for more than half an interval.
func (w *Window) Overdue() bool {
	return w.UntilHard() < w.timing.TTL-w.timing.Margin-w.timing.Interval*3/2
}

// UntilSoft returns the time left to the soft stop. It returns zero or less if the soft stop has passed or the lease was lost. Once a
// caller has seen that the soft stop has passed, the soft stop is final: a renewal that is answered later moves only the hard stop.
// Otherwise a run that was refused at the soft stop would wait for the end of a term that does not end.
func (w *Window) UntilSoft() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost || w.stopped {
		return 0
	}
	left := w.hard.Sub(w.clock()) - w.timing.Drain
	w.stopped = left <= 0
	return left
}

// UntilHard returns the time left to the hard stop. It is zero or less when the hard stop has passed.
func (w *Window) UntilHard() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hard.Sub(w.clock())
}

// Guard calls the function soft once, when the soft stop passes or the lease is lost. It calls the function hard once, when the hard stop
// passes, and then returns. When ctx ends, it also returns, without another call. It never uses the store, so that a store that hangs
// cannot delay the calls.
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

// sleep waits until d has passed or wake receives a signal. It returns false if ctx has ended.
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
