package daemon

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/redisstore"
)

const (
	// lookAtSelfEvery is how often a node reads what stands in the list under its own id.
	lookAtSelfEvery = 20 * time.Second
	// twinGoneAfter is when another process of the same id counts as gone that has not told
	// of itself: each tells once in less than half of that.
	twinGoneAfter = 2 * time.Minute
	// offsetStep is how far the clock may move before the others are told.
	offsetStep = 100 * time.Millisecond
)

// identity is who this process is, beside its configured id, and what it finds out about
// itself by reading the list of nodes: whether another process has the same id, and how
// far its clock is from Redis'. All of it is told to the others.
type identity struct {
	node, instance string
	log            *zap.Logger

	mu     sync.Mutex
	twin   string // the other process of the same id; "" without one
	seenMS int64  // when that, or anybody under the id, was seen last, by Redis' clock
	seen   time.Time
	offset time.Duration // of this host's clock from Redis'
	told   bool          // the twin was told to the log
}

func newIdentity(node string, log *zap.Logger) *identity {
	instance, err := newID()
	if err != nil {
		log.Warn("this process has no identity of its own: another one with the same node.id would go unnoticed", zap.Error(err))
	}
	return &identity{node: node, instance: instance, log: log}
}

// describe adds it to what the node tells the others.
func (i *identity) describe(p *redisstore.Presence) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p.Instance, p.Twin, p.ClockMS = i.instance, i.twin, i.offset.Milliseconds()
}

// look compares what stands in the list with what this process is. An entry under its id
// that somebody else has written since the last look is a twin's: one that is older may be
// left from an earlier process. changed says that the others should be told.
func (i *identity) look(p redisstore.Picture, now time.Time) (changed bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if offset := now.Sub(p.Now).Round(10 * time.Millisecond); (offset - i.offset).Abs() >= offsetStep {
		i.offset, changed = offset, true
	}
	for _, n := range p.Nodes {
		if n.ID != i.node || i.instance == "" {
			continue
		}
		fresh := i.seenMS > 0 && n.SeenMS > i.seenMS
		i.seenMS = n.SeenMS
		if n.Instance == i.instance || n.Instance == "" || !fresh { // "": baton lock, on this host
			continue
		}
		changed = changed || i.twin != n.Instance
		i.twin, i.seen = n.Instance, now
		if !i.told {
			i.told = true
			i.log.Error("another process has the same node.id as this one: the two cannot be told apart, in status, by orders, and by each other. Give each host an id of its own",
				zap.String("instance", i.instance), zap.String("other_instance", i.twin), zap.String("other_address", n.Address), zap.String("other_version", n.Version))
		}
	}
	if i.twin != "" && now.Sub(i.seen) > twinGoneAfter {
		i.twin, changed = "", true
	}
	return changed
}

// knowItself keeps the node's identity up to date until ctx ends.
func (n *node) knowItself(ctx context.Context) {
	every := time.NewTicker(min(lookAtSelfEvery, 2*n.all()[0].timing.TTL)) // a reload does not change it
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		all := n.all()
		sent := time.Now()
		attempt, cancel := context.WithTimeout(ctx, commandTimeout)
		p, err := all[0].election.Picture(attempt, 0)
		cancel()
		if err != nil || !n.identity.look(p, sent.Add(time.Since(sent)/2)) {
			continue
		}
		for _, c := range all {
			w, _ := c.current()
			c.lock.Present(n.presence(w))
		}
	}
}
