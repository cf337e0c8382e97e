// Package nodelock makes the lock of one node: in one Redis, or on the masters of a quorum.
// Each master of a quorum holds its own election and knows nothing of the others.
package nodelock

import (
	"context"
	"errors"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/id"
	"baton/internal/quorum"
	"baton/internal/redisconn"
	"baton/internal/redislock"
)

// slowest is how much longer than the majority a master may take. One that hangs must not hold
// up the end of the others.
const slowest = 250 * time.Millisecond

// Spread returns the elector.Config.HintSpread for a lock on this number of servers.
func Spread(servers int) time.Duration {
	if servers > 1 {
		return 5 * time.Millisecond // several times the time that asking all masters takes
	}
	return 0
}

// New makes the lock of a node. It does not connect. shared has connections that the locks of
// this process share, one a store; nil: the lock has its own.
func New(stores []*redisconn.Store, shared []*redisconn.Shared, o redislock.LockOptions) (Lock, error) {
	parts := make([]*redislock.Lock, len(stores))
	locks := make([]elector.Lock, len(stores))
	names := make([]string, len(stores))
	for i, s := range stores {
		if shared != nil {
			o.Shared = shared[i]
		}
		part, err := redislock.NewLock(s, o)
		if err != nil {
			return nil, err
		}
		parts[i], locks[i], names[i] = part, part, s.Host()
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	whole, err := quorum.New(locks, quorum.Options{
		TTL: o.TTL, Margin: heartbeat.DefaultMargin(o.TTL), NewOwner: id.New, Names: names,
		Clock: func() time.Duration { return time.Duration(heartbeat.Boottime()) },
	})
	return quorumLock{whole, parts}, err
}

// Lock is a lock of a node that others see in the list of nodes.
type Lock interface {
	elector.Lock
	// Present says what else to register of the node, from the next occasion on.
	Present(p redislock.Presence)
	// Leave takes the node off the list.
	Leave(ctx context.Context) error
	// Close drops the connections. The lock, if held, stays held.
	Close()
}

// quorumLock is a lock made of locks that each list the node.
type quorumLock struct {
	*quorum.Lock
	parts []*redislock.Lock
}

// Leave asks all masters. A master that cannot be reached drops the node later, since it sends no more heartbeats.
func (l quorumLock) Leave(ctx context.Context) error {
	l.Settle(ctx)
	// Settling may have taken all of the time, for one master that hangs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowest)
	defer cancel()
	problems := l.each(func(part *redislock.Lock) error { return part.Leave(ctx) })
	if 2*len(problems) < len(l.parts) {
		return nil
	}
	return errors.Join(problems...)
}

// Present informs all masters.
func (l quorumLock) Present(p redislock.Presence) {
	for _, part := range l.parts {
		part.Present(p)
	}
}

func (l quorumLock) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), slowest)
	defer cancel()
	l.Settle(ctx)
	_ = l.each(func(part *redislock.Lock) error { part.Close(); return nil }) // it returns none
}

// each does something with all parts at once: one that hangs delays no other. It
// returns the errors.
func (l quorumLock) each(do func(*redislock.Lock) error) []error {
	results := make(chan error, len(l.parts))
	for _, part := range l.parts {
		go func() { results <- do(part) }()
	}
	var problems []error
	for range l.parts {
		if err := <-results; err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
