// Package identity tells a process from the other nodes of an election.
package identity

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/daemon/site"
	"baton/internal/redislock"
)

const (
	// A node whose state is not asked for reads what stands in the list under its own id this soon
	// after its start, then ever more rarely: idle standbys are to cost next to nothing.
	firstCheck  = 2 * time.Minute
	rarestCheck = 10 * time.Minute
	// twinCheckEvery is how often it does while another process has its id.
	twinCheckEvery = 20 * time.Second
	// twinGoneAfter is when another process of the same id counts as gone that has not
	// registered: each does once in less than half of that.
	twinGoneAfter = 2 * time.Minute
	// offsetStep is how far the clock may move before the others are informed.
	offsetStep = 100 * time.Millisecond
)

// Identity identifies this process beyond its configured id. Every reading of the list of
// nodes, for whatever reason, updates two facts: whether another process has the same id, and
// how far this clock is from Redis'. All of it is sent to the other nodes.
type Identity struct {
	node, instance string
	log            *zap.Logger
	changed        chan struct{} // there is something to send

	mu     sync.Mutex
	twin   string // the other process of the same id; "" without one
	seenMS int64  // when that, or any process under the id, was seen last, by Redis' clock
	seen   time.Time
	offset time.Duration // of this host's clock from Redis'
	logged bool          // the twin was logged
}

// New makes the identity of this process.
func New(node string, log *zap.Logger) *Identity {
	instance, err := site.NewID()
	if err != nil {
		log.Warn("this process has no identity of its own: another one with the same node.id would go unnoticed", zap.Error(err))
	}
	return &Identity{node: node, instance: instance, log: log, changed: make(chan struct{}, 1)}
}

// Describe adds the identity to the presence that the node sends the others.
func (i *Identity) Describe(p *redislock.Presence) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p.Instance, p.Twin, p.ClockMS = i.instance, i.twin, i.offset.Milliseconds()
}

// ClockIs notes how far this host's clock is ahead of Redis', and has the others informed. The list of nodes may not be read for minutes.
func (i *Identity) ClockIs(ahead time.Duration) {
	i.mu.Lock()
	i.offset = ahead.Round(10 * time.Millisecond)
	i.mu.Unlock()
	i.inform()
}

// inform has the others informed soon.
func (i *Identity) inform() {
	select {
	case i.changed <- struct{}{}:
	default: // they are to be informed already
	}
}

// compare compares the entries of the list with this process. An entry under its id
// that another process has written since the last reading is a twin's: one that is older may be
// left from an earlier process. changed says that the others should be informed.
func (i *Identity) compare(p redislock.Picture, now time.Time) (changed bool) {
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
		if !i.logged {
			i.logged = true
			i.log.Error("another process has the same node.id as this one: "+
				"status, orders and the processes themselves cannot distinguish the two. Give each host an id of its own",
				zap.String("instance", i.instance), zap.String("other_instance", i.twin),
				zap.String("other_address", n.Address), zap.String("other_version", n.Version))
		}
	}
	if i.twin != "" && now.Sub(i.seen) > twinGoneAfter {
		i.twin, changed = "", true
	}
	return changed
}

// Watch is an election whose pictures the identity sees, too.
func (i *Identity) Watch(e site.Election) site.Election { return election{e, i} }

// election is one whose pictures the identity sees, too.
type election struct {
	site.Election
	identity *Identity
}

// Picture is the election's.
func (e election) Picture(ctx context.Context, events int) (redislock.Picture, error) {
	sent := time.Now()
	p, err := e.Election.Picture(ctx, events)
	took := time.Since(sent)
	if err != nil || took > offsetStep { // a slow answer says little about clocks
		return p, err
	}
	if e.identity.compare(p, sent.Add(took/2)) {
		e.identity.inform()
	}
	return p, nil
}

// hasTwin reports whether another process has the same id.
func (i *Identity) hasTwin() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.twin != ""
}

// Keep reads the list once in a while, if nothing else does, until ctx ends. It informs the others of changes.
func (i *Identity) Keep(ctx context.Context, read func(context.Context), inform func()) {
	wait := firstCheck
	for {
		pause := wait
		if i.hasTwin() {
			pause = twinCheckEvery
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-i.changed:
			timer.Stop()
			inform()
		case <-timer.C:
			wait = min(2*wait, rarestCheck)
			attempt, cancel := context.WithTimeout(ctx, site.CommandTimeout)
			read(attempt) // the identity sees it, or there will be another
			cancel()
		}
	}
}
