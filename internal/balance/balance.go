// Package balance decides which node should lead which lock, if a node contends for several locks. It works only with values: the caller
// reads the elections and gives the orders.
//
// Every node runs a [Balancer]. It knows the other nodes only from the elections. The Balancer reads the elections at intervals (snapshot),
// compares the reading with earlier readings (memory), and chooses locks to hand over (decide). A node that leads its share leaves a free
// lock to the other nodes for a moment (AcquireDelay).
//
//	         leads two locks more than another node
//	settled ────────────────────────────────────────► handing over
//	   ▲                                                   │ the other node leads,
//	   └───────────────────────────────────────────────────┘ or has not taken the lock within two leases
//
// The invariants:
//
//   - Only the locks ensure safety. A wrong decision costs a handover, and never makes two leaders.
//   - A handover ends no run, because only an idle lock is handed over. HandOver fails if a run has begun by then, and lets no run begin
//     between its order and the end of the term.
//   - Each handover reduces a difference of two or more locks between two nodes. So the handovers come to an end.
//   - If all nodes see the same state, only one node hands over locks at a time: the node with the most locks goes first.
//   - An operator's step-down is not undone. A node that is cooling down gets no lock. If a node of a higher priority contends for a lock,
//     that lock is not used for spreading.
//
// Failures: if an election cannot be read, no lock is handed over. A node that has lost a lease, or has not taken a lock that was handed to
// it, gets no lock until it registers again. After a failed order this node hands over no lock for as long as a lease lasts.
package balance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Candidacy is this node's part in one election, as far as balancing needs it.
type Candidacy interface {
	LockKey() string
	// Leads reports whether this node leads. It answers from memory.
	Leads() bool
	// Idle reports whether no run would be cut off if another node got the lock now: the only open runs belong to jobs that always run, and
	// no run is about to begin.
	Idle() bool
	// Known returns the state of the election that the node has in memory. It returns an error while Redis does not answer.
	Known() (Known, error)
	// Read reads the election from Redis.
	Read(ctx context.Context) (Election, error)
	// HandOver makes this node step down in favour of the node that the argument to names. If a run has begun by then, HandOver returns an
	// error and changes nothing. Otherwise no run begins until the term has ended, or until the order can no longer be obeyed.
	HandOver(ctx context.Context, to, reason string) error
}

// Known is the state of an election as far as the node knows the state without reading Redis.
type Known struct {
	Leader string // "" if no leader is known
	Free   bool   // as far as the node knows, no client holds the lock
	Barred bool   // the lock is free, but no node may take it
}

// Election is the state of an election in Redis.
type Election struct {
	Now    time.Time // by Redis' clock
	Lease  time.Duration
	Leader string
	Free   bool // no client holds the lock
	Barred bool // the lock cannot change hands now: paused, in quarantine, or an order is under way
	Nodes  []Node
}

// Node is a live node that contends for the lock.
type Node struct {
	ID          string
	Priority    int
	Config      string
	Seen        time.Time // by Redis' clock
	CoolingDown bool      // the node leaves the lock to others
	// Reluctant means that the node recently stepped down by an operator's order, which must not be undone.
	Reluctant bool
}

// Balancer spreads the locks over the nodes that contend for them, so that each node leads about the same number of locks. A node that
// leads its share leaves a free lock to other nodes first. A node that leads at least two locks more than another node hands one lock over
// to that node, or several if the difference is large. A Balancer starts no work and ends no run. Only the locks ensure that two nodes
// never lead at the same time. With one lock a Balancer has nothing to do.
type Balancer struct {
	self        string
	candidacies func() []Candidacy // must not block for long
	every       time.Duration
	log         *zap.Logger

	memory // only run may use it

	mu   sync.Mutex
	last *snapshot // the state at the last reading; nil before the first one
}

// slowestReading is the maximum time between two readings of the elections, because a node that joins should not wait long.
const slowestReading = 2 * time.Second

// New returns the balancer of a node. The argument every is the approximate interval between two readings of the elections. The balancer
// limits this interval to slowestReading.
func New(nodeID string, candidacies func() []Candidacy, every time.Duration, log *zap.Logger) *Balancer {
	return &Balancer{self: nodeID, candidacies: candidacies, every: min(every, slowestReading), log: log, memory: newMemory()}
}

// Run reads the elections and hands over locks until ctx ends.
func (b *Balancer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		b.step(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(b.every*4/5 + rand.N(b.every*2/5+1)):
		}
	}
}

// step reads the elections once, and hands over the chosen locks.
func (b *Balancer) step(ctx context.Context) {
	candidacies := b.candidacies()
	if len(candidacies) < 2 {
		b.remember(nil)
		return
	}
	s, err := b.readAll(ctx, candidacies)
	if err != nil {
		// The older state remains the best guess, but no lock is handed over because of an old state.
		b.log.Debug("cannot read the elections: no lock is handed over to spread the work", zap.Error(err))
		return
	}
	now := time.Now()
	b.learn(now, s)
	b.remember(s)
	for _, m := range b.decide(now, s) {
		i := slices.IndexFunc(candidacies, func(one Candidacy) bool { return one.LockKey() == m.lock && one.Leads() && one.Idle() })
		if i < 0 {
			continue
		}
		if !b.fits(ctx, candidacies[i], m) {
			b.postpone(now, m.lock)
			continue
		}
		b.noteHandover(now, m, s.lease)
		if err := b.ask(ctx, candidacies[i], m); err != nil {
			b.log.Info("a lock could not be handed over", zap.String("lock_key", m.lock), zap.String("to", m.to), zap.Error(err))
			b.failedHandover(now, s.lease)
			return
		}
		b.log.Info("handing a lock over to spread the work",
			zap.String("lock_key", m.lock), zap.String("to", m.to), zap.String("reason", m.reason))
	}
}

// timeout limits one reading of one election, and one order.
const timeout = time.Second

func (b *Balancer) ask(ctx context.Context, one Candidacy, m *handover) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return one.HandOver(ctx, m.to, m.reason)
}

// readAll reads only the first election from Redis. This election shows the live nodes for all locks, because the relevant nodes contend
// for all of these locks. This node already knows the leaders of the other elections, because it contends for their locks. So the cost of a
// reading does not grow with the number of locks.
func (b *Balancer) readAll(ctx context.Context, candidacies []Candidacy) (*snapshot, error) {
	e, err := read(ctx, candidacies[0])
	if err != nil {
		return nil, err
	}
	s := &snapshot{self: b.self}
	shown := candidacyOf("", false, false, e)
	for i, one := range candidacies {
		c := shown // the election that was read, with its nodes
		c.lock, c.leads, c.idle = one.LockKey(), one.Leads(), one.Idle()
		if i > 0 {
			h, err := one.Known()
			if err != nil {
				return nil, fmt.Errorf("lock %q: %w", one.LockKey(), err)
			}
			c.leader, c.free, c.barred = h.Leader, h.Free, h.Barred
		}
		s.add(c, e)
	}
	return s, nil
}

func read(ctx context.Context, one Candidacy) (Election, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e, err := one.Read(ctx)
	if err != nil {
		return e, fmt.Errorf("lock %q: %w", one.LockKey(), err)
	}
	return e, nil
}

// fits reads the election of a lock that is about to be handed over, and reports whether the handover still makes sense. The node's own
// knowledge of the election may be old, and only Redis knows which nodes currently leave the lock to others.
func (b *Balancer) fits(ctx context.Context, one Candidacy, m *handover) bool {
	e, err := read(ctx, one)
	if err != nil {
		return false
	}
	c := candidacyOf(m.lock, one.Leads(), one.Idle(), e)
	to, there := c.find(m.to)
	return there && !to.CoolingDown && c.leader == b.self && c.leads && c.idle && !c.barred && !c.outranked(b.self)
}

func (b *Balancer) remember(s *snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = s
}

// AcquireDelay returns how long this node must leave a free lock to others, according to the last reading. It serves as the AcquireDelay
// of an elector.Config, so it never waits for Redis.
func (b *Balancer) AcquireDelay(lockKey string) time.Duration {
	candidacies := b.candidacies()
	if len(candidacies) < 2 {
		return 0
	}
	b.mu.Lock()
	s := b.last
	b.mu.Unlock()
	roles := make([]role, len(candidacies))
	for i, one := range candidacies {
		roles[i] = role{lock: one.LockKey(), ours: one.Leads()}
	}
	return acquireDelayFor(b.self, lockKey, roles, s)
}
