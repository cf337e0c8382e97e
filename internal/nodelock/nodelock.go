// Package nodelock creates the lock of one node: in one Redis, or on the masters of a quorum. Each master of a quorum has an election
// of its own and knows nothing of the others.
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

// slowest is how long to wait for a slow master when the majority has answered. A master that hangs must not delay the result.
const slowest = 250 * time.Millisecond

// Spread returns the elector.Config.HintSpread for a lock on this number of servers.
func Spread(servers int) time.Duration {
	if servers > 1 {
		return 5 * time.Millisecond // several times the time that asking all masters takes
	}
	return 0
}

// New returns the lock of a node. It does not connect. The argument shared contains one connection for each store, which all locks of this
// process share. If shared is nil, the lock has its own connections.
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

// Lock is the lock of a node. It also keeps the node's entry in the list of nodes.
type Lock interface {
	elector.Lock
	// SetNodeInfo sets the node's entry in the list. The next renewal or poll writes it.
	SetNodeInfo(p redislock.NodeInfo)
	// Leave removes the node from the list.
	Leave(ctx context.Context) error
	// Close closes the connections. It does not release the lock.
	Close()
}

// quorumLock is a lock on several masters. Each master has the node in its list.
type quorumLock struct {
	*quorum.Lock
	parts []*redislock.Lock
}

// Leave asks all masters to remove the node from their lists of nodes. A master that cannot be reached removes the node later, because it
// gets no more heartbeats.
func (l quorumLock) Leave(ctx context.Context) error {
	l.Settle(ctx)
	// Settle may have used all of the time because one master hangs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowest)
	defer cancel()
	problems := l.each(func(part *redislock.Lock) error { return part.Leave(ctx) })
	if 2*len(problems) < len(l.parts) {
		return nil
	}
	return errors.Join(problems...)
}

// SetNodeInfo sets the node's entry on all masters.
func (l quorumLock) SetNodeInfo(p redislock.NodeInfo) {
	for _, part := range l.parts {
		part.SetNodeInfo(p)
	}
}

func (l quorumLock) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), slowest)
	defer cancel()
	l.Settle(ctx)
	_ = l.each(func(part *redislock.Lock) error { part.Close(); return nil }) // it returns none
}

// The method each calls the function do for the lock of each master, at the same time for all masters. So a master that hangs does not
// delay the other masters. The method returns the errors.
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
