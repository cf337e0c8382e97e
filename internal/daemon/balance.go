package daemon

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// seat is this node's part in one election, as far as the spreading of work goes.
type seat interface {
	lockKey() string
	// leads answers from memory.
	leads() bool
	// idle reports that no run would be cut off if the lock went to another node now:
	// none goes on under it but those that go on always, and none is about to begin.
	idle() bool
	// heard answers from memory. It fails while Redis does not answer.
	heard() (heard, error)
	// read asks Redis.
	read(ctx context.Context) (electionSeen, error)
	// handOver has this node step down in favour of another. It fails, and changes
	// nothing, if a run has begun meanwhile.
	handOver(ctx context.Context, to, reason string) error
}

// heard is what a node knows of an election without asking.
type heard struct {
	leader string // "" where no node is known to lead
	free   bool   // nobody is known to hold the lock
	barred bool   // and nobody may take it
}

// electionSeen is an election as Redis tells of it.
type electionSeen struct {
	now    time.Time // by Redis' clock
	lease  time.Duration
	leader string
	free   bool // nobody holds the lock
	barred bool // it cannot change hands now: paused, in quarantine, or an order is under way
	nodes  []contender
}

// contender is a live node that may lead.
type contender struct {
	id       string
	priority int
	config   string
	seen     time.Time // by Redis' clock
	aside    bool      // it leaves the lead to others
	// reluctant: it stepped down by an operator's order lately. That must not be undone.
	reluctant bool
}

// balancer spreads the locks over the nodes that contend for them, so that each leads
// about as many: a node that leads its share leaves a free lock to others first, and one
// that leads two more than another hands it one, or several where it is far more. It starts nothing and ends no run; that
// two nodes never lead at once is the locks' affair. With one lock there is nothing to do.
type balancer struct {
	self  string
	seats func() []seat // it must not block for long
	every time.Duration
	log   *zap.Logger

	watch // of run alone

	mu   sync.Mutex
	last *scene // what the last look saw; nil before
}

// slowestLook bounds the time between two looks: one that joins is not to wait long.
const slowestLook = 2 * time.Second

// balanceWords begin the reason of a step-down that spreads the work.
const balanceWords = "balance: "

// isHandover reports whether a step-down for that reason is one that spreads the work.
func isHandover(reason string) bool { return strings.HasPrefix(reason, balanceWords) }

// newBalancer makes the balancer of a node, which looks at the elections about so often,
// but no more rarely than every slowestLook.
func newBalancer(nodeID string, seats func() []seat, every time.Duration, log *zap.Logger) *balancer {
	return &balancer{self: nodeID, seats: seats, every: min(every, slowestLook), log: log, watch: newWatch()}
}

// run looks and hands over until ctx ends.
func (b *balancer) run(ctx context.Context) {
	for ctx.Err() == nil {
		b.step(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(b.every*4/5 + rand.N(b.every*2/5+1)):
		}
	}
}

// step looks once, and hands over what is to be.
func (b *balancer) step(ctx context.Context) {
	seats := b.seats()
	if len(seats) < 2 {
		b.remember(nil)
		return
	}
	s, err := b.look(ctx, seats)
	if err != nil {
		// What was seen before is as good a guess as any; nothing is handed over by it.
		b.log.Debug("the elections cannot be looked at: work is not spread", zap.Error(err))
		return
	}
	now := time.Now()
	b.learn(now, s)
	b.remember(s)
	for _, m := range b.decide(now, s) {
		i := slices.IndexFunc(seats, func(seat seat) bool { return seat.lockKey() == m.lock && seat.leads() && seat.idle() })
		if i < 0 {
			continue
		}
		if !b.fits(ctx, seats[i], m) {
			b.postpone(now, m.lock)
			continue
		}
		b.noteHandover(now, m, s.lease)
		if err := b.ask(ctx, seats[i], m); err != nil {
			b.log.Info("a lock could not be handed over", zap.String("lock_key", m.lock), zap.String("to", m.to), zap.Error(err))
			b.failedHandover(now, s.lease)
			return
		}
		b.log.Info("handing a lock over to spread the work", zap.String("lock_key", m.lock), zap.String("to", m.to), zap.String("reason", m.reason))
	}
}

// balanceTimeout bounds one look at one election, and one order.
const balanceTimeout = time.Second

func (b *balancer) ask(ctx context.Context, seat seat, m *move) error {
	ctx, cancel := context.WithTimeout(ctx, balanceTimeout)
	defer cancel()
	return seat.handOver(ctx, m.to, m.reason)
}

// look reads one election, which tells what nodes there are: those that matter contend for
// all of these locks. Who leads the others this node has heard, as it contends for them: so
// what is read does not grow with the locks.
func (b *balancer) look(ctx context.Context, seats []seat) (*scene, error) {
	e, err := read(ctx, seats[0])
	if err != nil {
		return nil, err
	}
	s := &scene{self: b.self}
	shown := contestOf("", false, false, e)
	for i, seat := range seats {
		c := shown // with its nodes
		c.lock, c.leads, c.idle = seat.lockKey(), seat.leads(), seat.idle()
		if i > 0 {
			h, err := seat.heard()
			if err != nil {
				return nil, fmt.Errorf("lock %q: %w", seat.lockKey(), err)
			}
			c.leader, c.free, c.barred = h.leader, h.free, h.barred
		}
		s.add(c, e)
	}
	return s, nil
}

func read(ctx context.Context, seat seat) (electionSeen, error) {
	ctx, cancel := context.WithTimeout(ctx, balanceTimeout)
	defer cancel()
	e, err := seat.read(ctx)
	if err != nil {
		return e, fmt.Errorf("lock %q: %w", seat.lockKey(), err)
	}
	return e, nil
}

// fits reads the election of a lock that is about to be handed over: what is known of it
// by hearsay may be out of date, and who stands aside in it is known to Redis alone.
func (b *balancer) fits(ctx context.Context, seat seat, m *move) bool {
	e, err := read(ctx, seat)
	if err != nil {
		return false
	}
	c := contestOf(m.lock, seat.leads(), seat.idle(), e)
	to, there := c.find(m.to)
	return there && !to.aside && c.leader == b.self && c.leads && c.idle && !c.barred && !c.outranked(b.self)
}

func (b *balancer) remember(s *scene) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = s
}

// courtesy is how long to leave a lock that is free to others, by what was last seen: an
// elector.Config's Courtesy. It never waits.
func (b *balancer) courtesy(lockKey string) time.Duration {
	seats := b.seats()
	if len(seats) < 2 {
		return 0
	}
	b.mu.Lock()
	s := b.last
	b.mu.Unlock()
	parts := make([]part, len(seats))
	for i, seat := range seats {
		parts[i] = part{lock: seat.lockKey(), ours: seat.leads()}
	}
	return courtesyFor(b.self, lockKey, parts, s)
}
