package heartbeat

import (
	"context"
	"errors"
	"time"
)

// These errors say why a lease ended.
var (
	// ErrLost means that the lease belongs to another owner, or to none, according to the store.
	ErrLost = errors.New("heartbeat: lease lost")
	// ErrExpired means that the hard stop passed without an answer.
	ErrExpired = errors.New("heartbeat: lease expired unrenewed")
)

// Renew asks the store once to extend the lease. It returns nil if the lease was extended, and ErrLost if the lease is not ours. Any other
// error means that the lease may not have been extended. Renew must return when ctx ends. If it needs a second request, it calls [Expired]
// before that request.
type Renew func(ctx context.Context) error

// windowKey is the key of the context value that contains the window of an attempt.
type windowKey struct{}

// Expired returns ErrExpired if ctx belongs to an attempt of [Keep] and the hard stop has passed. The deadline of ctx does not show this,
// because Go's timers do not count the time in which the machine is suspended.
func Expired(ctx context.Context) error {
	if w, ok := ctx.Value(windowKey{}).(*Window); ok && w.UntilHard() <= 0 {
		return ErrExpired
	}
	return nil
}

// Attempt describes one renewal to an observer: how long it took, and how it ended.
type Attempt struct {
	Took time.Duration
	Err  error
}

// These constants limit the retries after an attempt without an answer. The first retry follows immediately and the next retries after a
// pause, so that a store that refuses connections is not flooded.
const (
	firstRetryPause = 20 * time.Millisecond
	retryPauseLimit = 500 * time.Millisecond
)

// Options are further settings of Keep. Each of them may be nil.
type Options struct {
	Now     <-chan struct{} // a signal renews without waiting for the interval
	Observe func(Attempt)
	Beat    *Beat // when to renew; without a Beat every lease has moments of its own
}

// Keep renews the lease of w until ctx ends, and then returns nil. It returns ErrLost or ErrExpired when the lease is gone.
//
// If an attempt gets no answer in time, the next attempt gets twice the time, but leaves time for one more attempt. On a slow host, or with
// a slow store, many short attempts would get no answer.
//
// Keep does not enforce the window; [Window.Guard] does, in another goroutine.
func Keep(ctx context.Context, w *Window, renew Renew, o Options) error {
	forget := o.Beat.keeps(w)
	defer forget()
	wait, pause, patience := o.Beat.wait(w), time.Duration(0), w.timing.Timeout
	for sleep(ctx, min(wait, max(w.UntilHard(), 0)), o.Now) {
		left := w.UntilHard()
		if left <= 0 {
			return ErrExpired
		}
		sent := w.clock()
		within := min(max(min(patience, left/2), w.timing.Timeout), left)
		attempt, cancel := context.WithTimeout(context.WithValue(ctx, windowKey{}, w), within)
		err := renew(attempt)
		if attempt.Err() != nil {
			patience = 2 * within
		}
		cancel()
		if ctx.Err() != nil {
			return nil // an attempt that the end of ctx cut short says nothing about the lease
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
