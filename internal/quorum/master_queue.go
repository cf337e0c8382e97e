package quorum

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"baton/internal/elector"
)

// masterQueue is the queue of requests to one master. Requests are sent one at a time, in the order of the calls, so that a request
// to release the lock does not overtake the earlier request to acquire it.
type masterQueue struct {
	lock elector.Lock
	name string

	mu    sync.Mutex
	busy  bool
	queue []chan struct{}
}

var errBusy = errors.New("it has not answered an earlier request yet")

// enter takes a place in the queue. The returned channel is closed when the caller's turn has come.
func (l *masterQueue) enter() chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	turn := make(chan struct{})
	if l.busy {
		l.queue = append(l.queue, turn)
	} else {
		l.busy = true
		close(turn)
	}
	return turn
}

// leave ends the caller's turn. The next request in the queue then gets its turn.
func (l *masterQueue) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

func (l *masterQueue) next() {
	if l.busy = len(l.queue) > 0; l.busy {
		close(l.queue[0])
		l.queue = l.queue[1:]
	}
}

// abandon gives up a place in the queue, because the request no longer waits for its turn.
func (l *masterQueue) abandon(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, turn); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}
	l.next() // the caller's turn came at the same moment
}

// reply is one master's answer.
type reply[T any] struct {
	lane  *masterQueue
	value T
	err   error
}

// ask sends a request to every lane at the same time. A lane is the queue of one master. Each lane sends exactly one reply, and the
// channel has room for all replies, so that a caller with enough replies may stop reading. A request ends by its own timeout, and
// not when ctx ends. Otherwise the decision of a majority would break the connections to the other masters. The wait for the turn of
// a request has the same time limit.
func ask[T any](
	ctx context.Context, l *Lock, lanes []*masterQueue, request func(context.Context, elector.Lock) (T, error),
) <-chan reply[T] {
	replies := make(chan reply[T], len(lanes))
	ctx = context.WithoutCancel(ctx)
	for _, ln := range lanes {
		turn := ln.enter()
		l.under.Go(func() {
			r := reply[T]{lane: ln}
			defer func() { replies <- r }()
			patience := time.NewTimer(l.opts.Timeout)
			defer patience.Stop()
			select {
			case <-turn:
			case <-patience.C:
				ln.abandon(turn)
				r.err = errBusy
				return
			}
			ctx, cancel := context.WithTimeout(ctx, l.opts.Timeout)
			defer cancel()
			r.value, r.err = request(ctx, ln.lock)
			ln.leave()
		})
	}
	return replies
}

// collect reads n replies. It stops earlier when the function enough returns true, after the duration within, or when ctx ends. It
// returns the number of missing replies.
func collect[T any](ctx context.Context, n int, within time.Duration, replies <-chan reply[T], enough func(reply[T]) bool) int {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for ; n > 0; n-- {
		select {
		case r := <-replies:
			if enough(r) {
				return n - 1
			}
		case <-timer.C:
			return n
		case <-ctx.Done():
			return n
		}
	}
	return 0
}
