// Package identity distinguishes a process from the other nodes of an election.
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
	// firstCheck is how long after its start a node first reads its entry in the list of nodes, if nothing else reads this list. The
	// intervals between later readings grow, because idle standbys must cost almost nothing.
	firstCheck  = 2 * time.Minute
	rarestCheck = 10 * time.Minute
	// twinCheckEvery is the interval between two readings while another process has the same id.
	twinCheckEvery = 20 * time.Second
	// twinGoneAfter is how long another process with the same id must be silent to count as gone. Each process registers at least twice in
	// that time.
	twinGoneAfter = 2 * time.Minute
	// offsetStep is the minimum change of this host's clock offset that is sent to the other nodes.
	offsetStep = 100 * time.Millisecond
)

// Identity identifies this process beyond its configured id. Every reading of the list of nodes, for whatever reason, updates two
// facts: whether another process has the same id, and how far this host's clock differs from Redis' clock. Both facts are sent to the
// other nodes.
type Identity struct {
	node, instance string
	log            *zap.Logger
	changed        chan struct{} // receives a value when there is a change to send

	mu     sync.Mutex
	twin   string // the other process of the same id; "" without one
	seenMS int64  // when that process, or any process with this id, was last seen, in ms of Redis' clock
	seen   time.Time
	offset time.Duration // the difference between this host's clock and Redis' clock
	logged bool          // the other process with the same id was logged
}

// New returns the identity of this process.
func New(node string, log *zap.Logger) *Identity {
	instance, err := site.NewID()
	if err != nil {
		log.Warn("cannot detect another process with the same node.id", zap.Error(err))
	}
	return &Identity{node: node, instance: instance, log: log, changed: make(chan struct{}, 1)}
}

// Describe adds the identity to p, which is the data that the node sends to the other nodes.
func (i *Identity) Describe(p *redislock.NodeInfo) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p.Instance, p.Twin, p.ClockMS = i.instance, i.twin, i.offset.Milliseconds()
}

// ClockIs records how far this host's clock is ahead of Redis' clock. It also makes the node inform the other nodes, because the next
// reading of the list of nodes may be minutes away.
func (i *Identity) ClockIs(ahead time.Duration) {
	i.mu.Lock()
	i.offset = ahead.Round(10 * time.Millisecond)
	i.mu.Unlock()
	i.inform()
}

// inform makes the node send its changed data to the other nodes soon.
func (i *Identity) inform() {
	select {
	case i.changed <- struct{}{}:
	default: // they will be informed already
	}
}

// compare compares the entries in the list of nodes with this process. An entry with the same id that another process has written since the
// last reading belongs to a twin. An older entry may come from an earlier process. The result changed means that the other nodes should be
// informed.
func (i *Identity) compare(p redislock.ElectionState, now time.Time) (changed bool) {
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

// Watch returns an election that does the same as e. Its State method also passes each state to the identity.
func (i *Identity) Watch(e site.Election) site.Election { return election{e, i} }

// election wraps an election, and passes its states to the identity.
type election struct {
	site.Election
	identity *Identity
}

// State returns the state of the election.
func (e election) State(ctx context.Context, events int) (redislock.ElectionState, error) {
	sent := time.Now()
	p, err := e.Election.State(ctx, events)
	took := time.Since(sent)
	if err != nil || took > offsetStep { // a slow answer says little about the difference between the clocks
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

// Keep reads the list of nodes from time to time until ctx ends, if nothing else reads this list. It calls the function inform to send
// changes to the other nodes.
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
			read(attempt) // the identity sees the state, or a later reading follows
			cancel()
		}
	}
}
