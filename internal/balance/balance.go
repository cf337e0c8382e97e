// Package balance decides which node should lead which lock, where a node contends for several. It knows values only: the caller reads
// the elections and gives the orders.
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
	// Leads answers from memory.
	Leads() bool
	// Idle reports that no run would be cut off if the lock went to another node now: its only open runs are of jobs that always run, and
	// none is about to begin.
	Idle() bool
	// Known answers from memory. It fails while Redis does not answer.
	Known() (Known, error)
	// Read reads the election from Redis.
	Read(ctx context.Context) (Election, error)
	// HandOver makes this node step down in favour of another. It fails, and changes nothing, if a run has begun meanwhile.
	HandOver(ctx context.Context, to, reason string) error
}

// Known is a node's knowledge of an election without a reading.
type Known struct {
	Leader string // "" if no leader is known
	Free   bool   // as far as the node knows, no client holds the lock
	Barred bool   // and no node may take it
}

// Election is an election as Redis has it.
type Election struct {
	Now    time.Time // by Redis' clock
	Lease  time.Duration
	Leader string
	Free   bool // no client holds the lock
	Barred bool // it cannot change hands now: paused, in quarantine, or an order is under way
	Nodes  []Node
}

// Node is a live node that may lead.
type Node struct {
	ID          string
	Priority    int
	Config      string
	Seen        time.Time // by Redis' clock
	CoolingDown bool      // it leaves the lead to others
	// Reluctant: it stepped down by an operator's order lately. That must not be undone.
	Reluctant bool
}

// Balancer spreads the locks over the nodes that contend for them, so that each leads about the same number: a node that leads its share
// leaves a free lock to others first, and one that leads two more than another hands it one, or several where it is far more. It starts
// no work and ends no run; only the locks ensure that two nodes never lead at once. With one lock there is nothing to do.
type Balancer struct {
	self        string
	candidacies func() []Candidacy // must not block for long
	every       time.Duration
	log         *zap.Logger

	memory // of run alone

	mu   sync.Mutex
	last *snapshot // the state at the last reading; nil before
}

// slowestReading bounds the time between two readings: a node that joins should not wait long.
const slowestReading = 2 * time.Second

// New makes the balancer of a node, which reads the elections at intervals of about every, and of slowestReading at most.
func New(nodeID string, candidacies func() []Candidacy, every time.Duration, log *zap.Logger) *Balancer {
	return &Balancer{self: nodeID, candidacies: candidacies, every: min(every, slowestReading), log: log, memory: newMemory()}
}

// Run reads and hands over until ctx ends.
func (b *Balancer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		b.step(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(b.every*4/5 + rand.N(b.every*2/5+1)):
		}
	}
}

// step reads once, and hands over the chosen locks.
func (b *Balancer) step(ctx context.Context) {
	candidacies := b.candidacies()
	if len(candidacies) < 2 {
		b.remember(nil)
		return
	}
	s, err := b.readAll(ctx, candidacies)
	if err != nil {
		// The older state remains the best guess, but no lock is handed over by it.
		b.log.Debug("the elections cannot be looked at: work is not spread", zap.Error(err))
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

// timeout bounds one reading of one election, and one order.
const timeout = time.Second

func (b *Balancer) ask(ctx context.Context, one Candidacy, m *handover) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return one.HandOver(ctx, m.to, m.reason)
}

// readAll reads one election, which shows the live nodes: the relevant ones contend for all of these locks. This node contends for the
// other locks, so it already knows their leaders: so the cost of a reading does not grow with the locks.
func (b *Balancer) readAll(ctx context.Context, candidacies []Candidacy) (*snapshot, error) {
	e, err := read(ctx, candidacies[0])
	if err != nil {
		return nil, err
	}
	s := &snapshot{self: b.self}
	shown := candidacyOf("", false, false, e)
	for i, one := range candidacies {
		c := shown // with its nodes
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

// fits reads the election of a lock that is about to be handed over: the node's own knowledge of it may be old, and only Redis knows
// which nodes stand aside.
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

// AcquireDelay is how long to leave a free lock to others, by the last reading: an elector.Config's AcquireDelay. It never waits.
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
