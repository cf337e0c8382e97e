package quorum

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"baton/internal/elector"
)

// lane is the queue of requests to one master. Requests go one at a time, in the order of their calls: a release does not overtake the
// acquire that it takes back.
type lane struct {
	lock elector.Lock
	name string

	mu    sync.Mutex
	busy  bool
	queue []chan struct{}
}

var errBusy = errors.New("it has not answered an earlier request yet")

// enter takes a place in the queue. The channel is closed when it is its turn.
func (l *lane) enter() chan struct{} {
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

// leave ends a turn.
func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

func (l *lane) next() {
	if l.busy = len(l.queue) > 0; l.busy {
		close(l.queue[0])
		l.queue = l.queue[1:]
	}
}

// abandon gives up a place in the queue.
func (l *lane) abandon(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, turn); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}
	l.next() // its turn came at the same moment
}

// reply is one master's answer.
type reply[T any] struct {
	lane  *lane
	value T
	err   error
}

// ask sends a request to every lane at once. Each sends exactly one reply, and the channel has room for all: a caller with enough replies
// may stop reading. A request is not cut short when ctx ends, but by its own timeout: the decision of a majority must not leave the
// others with broken connections. It also waits at most that long for its turn.
func ask[T any](ctx context.Context, l *Lock, lanes []*lane, request func(context.Context, elector.Lock) (T, error)) <-chan reply[T] {
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

// collect takes n replies, and stops earlier once enough says so, the time is over or ctx has ended. It returns how many are missing.
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
