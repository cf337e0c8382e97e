package model

import (
	"cmp"
	"slices"
)

// These limits are the sizes of arrays. Bounds limits the same things within them.
const (
	maxOwners   = 4 // UUIDs of one node that are known somewhere at the same time
	maxRequests = 4 // requests on their way
)

// owner is the value of the lock key: the number of a node, and the number of one of its UUIDs. 0 means that there is no owner.
type owner uint8

func ownerOf(node, uuid int) owner { return owner(1 + node*maxOwners + uuid) }
func (o owner) node() int          { return int(o-1) / maxOwners }
func (o owner) uuid() int          { return int(o-1) % maxOwners }

// renamed returns the same owner after the node has got another number.
func (o owner) renamed(newNumber [maxNodes]uint8) owner {
	if o == 0 {
		return 0
	}
	return ownerOf(int(newNumber[o.node()]), o.uuid())
}

// answer is Redis' answer to a request. The node may read it at any time later, or never.
type answer uint8

const (
	none answer = iota
	won
	renewed
	held
	wait
	lost
	prove // repeat the renewal with a word that only this incarnation of Redis knows
)

// node is one node. A node may wait as long as it likes before each of its steps: it is then slow, or suspended.
type node struct {
	leads     bool
	suspended bool   // only if the rule BootClock is switched off; otherwise a suspended node is a node that does nothing
	window    uint8  // rest of the trust window, in ticks of the node's clock
	uuid      uint8  // of its owner + 1; 0 if it has none
	epoch     uint8  // of its term
	wrote     bool   // the term has taken the fence in the database
	holds     bool   // the fence has the owner of the term
	floor     uint8  // highest epoch that the node knows
	waits     bool   // for the answer to a request
	age       uint8  // ticks since the request was sent
	answer    answer // that has come, but that the node has not read
	answered  uint8  // the epoch in the answer
}

// request is a request on its way to Redis.
type request struct {
	kind  kind
	owner owner
	epoch uint8
	floor uint8
	proof bool // contains the word of the present incarnation
	late  bool // no node waits for the answer any more
}

type kind uint8

const (
	acquire kind = iota + 1
	renew
	release
)

// store is the data of Redis.
type store struct {
	lock      owner // K
	lease     uint8 // ticks until K expires
	epoch     uint8 // of the last term, in {K}:term; 0: there was no term
	confirmed bool  // run_id in {K}:term is the present one: a node has won or renewed in this incarnation
	wait      uint8 // 0: there was no quarantine; 1: one began in an earlier incarnation; 2: one began in this incarnation
	left      uint8 // ticks until the quarantine ends
	proof     bool  // a renewal has asked for the word of an incarnation
}

// Lease is a state of the protocol.
type Lease struct {
	node    [maxNodes]node
	redis   store
	copied  store // a snapshot, or the data of a replica that lags
	net     [maxRequests]request
	fence   uint8 // the epoch in the database
	highest uint8 // the highest epoch of any term
	spent   Bounds
}

// Bounds limits how often things may happen. In a state, it counts how often they have happened.
type Bounds struct {
	Terms        uint8 // wins
	Late         uint8 // requests on their way for whose answers no node waits
	Twice        uint8 // requests that arrive twice
	Incarnations uint8 // restarts, losses of all data, failovers and rewinds of Redis
	Copies       uint8 // moments at which a snapshot or a replica gets the data
	Drifts       uint8 // ticks that the clock of a node misses
	SetBacks     uint8 // how often Redis' clock is set back
}

// LeaseProtocol is the protocol of the lease in package elector, heartbeat and redislock.
type LeaseProtocol struct {
	Nodes  int
	TTL    uint8 // ticks
	Margin uint8
	Bounds Bounds
	Off    []Rule // the rules that are switched off
	Watch  string // the only promise that is checked; "" if all promises are checked
	New    bool   // the lock is new: no node knows an epoch
	Longer uint8  // the ttl of node 0 is longer by so many ticks
	Calm   bool   // no fault happens
	// Database means that leaders write into a database with a fence.
	Database bool
}

// Start implements Protocol.
func (p LeaseProtocol) Start() Lease {
	var s Lease
	if !p.New {
		s.highest, s.fence, s.redis.epoch, s.redis.confirmed = 1, 1, 1, true
		for i := range p.Nodes {
			s.node[i].floor = 1
		}
	}
	return s
}

func (p LeaseProtocol) off(r Rule) bool { return slices.Contains(p.Off, r) }

// broken returns the promise, if it is watched.
func (p LeaseProtocol) broken(promise string) string {
	if p.Watch != "" && p.Watch != promise {
		return ""
	}
	return promise
}

func (p LeaseProtocol) ttl(node int) uint8 {
	if node == 0 {
		return p.TTL + p.Longer
	}
	return p.TTL
}

// window returns H − s: the hard stop is ttl − margin after the request was sent.
func (p LeaseProtocol) window(node int) uint8 {
	if p.off(Margin) {
		return p.ttl(node)
	}
	return p.ttl(node) - p.Margin
}

// acts reports whether a node may act, because it leads inside its trust window.
func (p LeaseProtocol) acts(n node) bool {
	return n.leads && (n.window > 0 || p.off(GuardNeverWaits) && n.waits && n.answer == none)
}

// Broken implements Protocol.
func (p LeaseProtocol) Broken(s Lease) string {
	acting := 0
	for _, n := range s.node {
		if p.acts(n) {
			acting++
		}
	}
	if acting > 1 {
		return p.broken(OneActs)
	}
	return ""
}

// Led reports whether a node leads, and has taken the fence if there is a database.
func (p LeaseProtocol) Led(s Lease) bool {
	return slices.ContainsFunc(s.node[:], func(n node) bool { return n.leads && n.window > 0 && (n.wrote || !p.Database) })
}

// Canonical implements Protocol. It sorts the nodes.
func (p LeaseProtocol) Canonical(s Lease) (Lease, Order) {
	o := sameOrder
	for i := range p.Nodes {
		if n := &s.node[i]; !n.leads && !n.waits && n.uuid != 0 && !s.mentions(s.owner(i)) {
			n.uuid = 0 // a UUID that no other process has seen is as good as a new UUID
		}
	}
	if p.Longer == 0 {
		slices.SortStableFunc(o[:p.Nodes], func(a, b uint8) int { return s.node[a].compare(s.node[b]) })
	}
	if o != sameOrder {
		var newNumber [maxNodes]uint8
		old := s.node
		for i, from := range o {
			s.node[i], newNumber[from] = old[from], uint8(i)
		}
		s.redis.renameOwners(newNumber)
		s.copied.renameOwners(newNumber)
		for i := range s.net {
			s.net[i].owner = s.net[i].owner.renamed(newNumber)
		}
	}
	s.renumberUUIDs()
	slices.SortFunc(s.net[:], func(a, b request) int { return b.number() - a.number() })
	return s, o
}

// renumberUUIDs numbers the UUIDs of each node in the order of their appearance.
func (s *Lease) renumberUUIDs() {
	var numbers [1 + maxNodes*maxOwners]owner
	var next [maxNodes]int
	number := func(o owner) owner {
		if o != 0 && numbers[o] == 0 {
			numbers[o] = ownerOf(o.node(), next[o.node()])
			next[o.node()]++
		}
		return numbers[o]
	}
	for i := range s.node {
		if s.node[i].uuid != 0 {
			s.node[i].uuid = uint8(number(s.owner(i)).uuid()) + 1
		}
	}
	s.redis.lock, s.copied.lock = number(s.redis.lock), number(s.copied.lock)
	slices.SortFunc(s.net[:], func(a, b request) int { return b.withoutUUID() - a.withoutUUID() })
	for i := range s.net {
		s.net[i].owner = number(s.net[i].owner)
	}
}

func (r *store) renameOwners(newNumber [maxNodes]uint8) {
	r.lock = r.lock.renamed(newNumber)
}

// send puts a request on its way. It returns false if the bounds do not allow another request.
func (s *Lease) send(p LeaseProtocol, q request) bool {
	late := uint8(0)
	for i := range s.net {
		if s.net[i].kind != 0 && s.net[i].late {
			late++
		}
	}
	if q.late && late >= p.Bounds.Late {
		return false
	}
	for i := range s.net {
		if s.net[i].kind == 0 {
			s.net[i] = q
			return true
		}
	}
	return false
}

// freshUUID returns the number + 1 of a UUID of the node that appears nowhere any more. It returns 0 if the bounds do not allow another
// UUID.
func (s *Lease) freshUUID(i int) uint8 {
	for uuid := range maxOwners {
		o := ownerOf(i, uuid)
		if !s.mentions(o) {
			return uint8(uuid) + 1
		}
	}
	return 0
}

// mentions reports whether an owner appears in Redis or in a request.
func (s *Lease) mentions(o owner) bool {
	for i := range s.net {
		if s.net[i].kind != 0 && s.net[i].owner == o {
			return true
		}
	}
	return s.redis.lock == o || s.copied.lock == o
}

// owner returns the owner of a node's term or campaign.
func (s *Lease) owner(i int) owner { return ownerOf(i, int(s.node[i].uuid)-1) }

// learn lifts the highest epoch that the node knows. The node has it in its state directory, so that a crash does not lose it.
func (n *node) learn(epoch uint8) { n.floor = max(n.floor, epoch) }

// waitsNoMore ends the attempt of a node. The node ignores a later answer.
func (n *node) waitsNoMore() { n.waits, n.age, n.answer, n.answered = false, 0, none, 0 }

// extend moves the trust window: it ends ttl − margin after the request was sent.
func (n *node) extend(window, age uint8) {
	if window > age {
		n.window = max(n.window, window-age)
	}
}

// standBy ends the term or the campaign of an owner. The next campaign has a new UUID.
func (p LeaseProtocol) standBy(n *node) {
	uuid := n.uuid
	*n = node{floor: n.floor}
	if p.off(NewUUID) {
		n.uuid = uuid
	}
}

// compare orders nodes. It uses no number of a node.
func (n node) compare(m node) int { return cmp.Compare(n.number(), m.number()) }

// number returns a number that only equal nodes share.
func (n node) number() uint64 {
	v := uint64(0)
	for _, b := range []uint8{n.window, n.uuid, n.epoch, n.floor, n.age, uint8(n.answer), n.answered} {
		v = v<<4 | uint64(b)
	}
	for _, b := range []bool{n.leads, n.suspended, n.wrote, n.holds, n.waits} {
		v <<= 1
		if b {
			v |= 1
		}
	}
	return v
}

// withoutUUID returns a number that requests share which differ only in the owner's UUID.
func (q request) withoutUUID() int {
	if q.owner != 0 {
		q.owner = ownerOf(q.owner.node(), 0)
	}
	return q.number()
}

// number returns a number that only equal requests share.
func (q request) number() int {
	v := int(q.kind)<<16 | int(q.owner)<<8 | int(q.epoch)<<4 | int(q.floor)
	if q.proof {
		v |= 1 << 20
	}
	if q.late {
		v |= 1 << 21
	}
	return v
}
