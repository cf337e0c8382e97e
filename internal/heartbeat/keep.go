package heartbeat

import (
	"context"
	"errors"
	"time"
)

// Why a lease ended.
var (
	// ErrLost: the store says that the lease is not ours.
	ErrLost = errors.New("heartbeat: lease lost")
	// ErrExpired: the hard stop passed without an answer.
	ErrExpired = errors.New("heartbeat: lease expired unrenewed")
)

// Renew asks the store once to extend the lease. It answers nil (extended),
// ErrLost (not ours), or another error: not known to be extended. It must return
// when ctx ends.
type Renew func(ctx context.Context) error

// Attempt is one renewal, for an observer: how long it took, and how it ended.
type Attempt struct {
	Took time.Duration
	Err  error
}

// retries after an attempt without an answer: the first at once, then pausing,
// so that a store that refuses connections is not flooded.
const (
	firstRetryPause = 20 * time.Millisecond
	retryPauseLimit = 500 * time.Millisecond
)

// Options are what Keep is given beyond its lease. All of them may be nil.
type Options struct {
	Now     <-chan struct{} // a signal renews without waiting for the interval
	Observe func(Attempt)
	Beat    *Beat // when to renew; without one every lease has moments of its own
}

// Keep renews the lease behind w until ctx ends, and returns nil then. It returns
// ErrLost or ErrExpired when the lease is gone.
//
// An attempt that gets no answer in time is followed by one that has twice as long, but
// leaves time for another: where the host or the store is slow, many short ones get none.
//
// Keep does not enforce the window; [Window.Guard] does, beside it.
func Keep(ctx context.Context, w *Window, renew Renew, o Options) error {
	wait, pause, patience := o.Beat.wait(w), time.Duration(0), w.timing.Timeout
	for sleep(ctx, min(wait, max(w.UntilHard(), 0)), o.Now) {
		left := w.UntilHard()
		if left <= 0 {
			return ErrExpired
		}
		sent := w.clock()
		within := min(max(min(patience, left/2), w.timing.Timeout), left)
		attempt, cancel := context.WithTimeout(ctx, within)
		err := renew(attempt)
		if attempt.Err() != nil {
			patience = 2 * within
		}
		cancel()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // an attempt that ctx cut short says nothing of the lease
		}
		if o.Observe != nil {
			o.Observe(Attempt{Took: w.clock().Sub(sent), Err: err})
		}
		switch {
		case err == nil:
			if !w.Extend(sent) {
				return ErrExpired
			}
			wait, pause, patience = o.Beat.wait(w), 0, w.timing.Timeout
		case errors.Is(err, ErrLost):
			w.Lose()
			return ErrLost
		default:
			wait = pause
			pause = min(max(2*pause, firstRetryPause), retryPauseLimit)
		}
	}
	return nil
}
