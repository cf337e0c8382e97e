package model

import (
	"cmp"
	"slices"
)

// These limits are the sizes of arrays.
const (
	maxSlots    = 3
	maxAttempts = 2
)

// run is a run of the job: the term that claims it, its slot, and the attempt. It is also the id of the run.
type run struct{ term, slot, attempt uint8 }

// phase is the state of the job on a node.
type phase uint8

const (
	idle    phase = iota
	asking        // a claim has been sent, and asked again if there was no answer
	granted       // the answer to the claim has come, but the node has not read it
	running
	ended   // the run has ended, and its result is still to be recorded
	failed  // the same, and the run is to be tried again
	missing // a miss is still to be recorded
	losing  // the run that an earlier term left open is still to be recorded as lost
)

// runner is the job on one node. It handles one slot after another.
type runner struct {
	term  uint8 // 0: the node does not lead
	after uint8 // the last slot that is settled, as far as the node knows
	phase phase
	run   run
	retry run // the retrial that is to be claimed
}

// These are the results of a run in the history.
const (
	unrecorded uint8 = iota
	recordedLost
	recorded
)

// ledger is the job's hash and its history in Redis.
type ledger struct {
	last, missed uint8
	open         run
	retry        run // without its term
	result       [maxSlots + 1][maxAttempts + 1]uint8
}

// call is a request to the ledger that is on its way.
type call struct {
	phase phase // of the node that has sent it
	run   run
	first bool // a claim of a slot, and not of a retrial
	late  bool
}

// Slots is a state of the protocol of slots.
type Slots struct {
	node   [maxNodes]runner
	lock   uint8 // the term that holds the lock; 0: no node holds it
	terms  uint8
	due    uint8 // the latest slot that is due
	ledger ledger
	net    [maxRequests]call
	starts [maxSlots + 1][maxAttempts + 1]uint8
	misses [maxSlots + 1]uint8
	twice  uint8
}

// SlotsProtocol is the protocol of slots in the packages job and redisledger, for one job with catch-up, retry and rerun. It assumes that
// a node acts only while it has the lock. The model of the lease shows this.
type SlotsProtocol struct {
	Nodes              int
	Slots, Terms, Late uint8
	Twice              uint8
	Off                []Rule
	Watch              string // the only promise that is checked; "" if all promises are checked
	Calm               bool
}

func (p SlotsProtocol) off(r Rule) bool { return slices.Contains(p.Off, r) }

// Start implements Protocol.
func (p SlotsProtocol) Start() Slots { return Slots{} }

// Canonical implements Protocol. Only its term names a node.
func (p SlotsProtocol) Canonical(s Slots) (Slots, Order) {
	o := sameOrder
	slices.SortStableFunc(o[:p.Nodes], func(a, b uint8) int { return cmp.Compare(s.node[a].number(), s.node[b].number()) })
	old := s.node
	for i, from := range o {
		s.node[i] = old[from]
	}
	slices.SortFunc(s.net[:], func(a, b call) int { return cmp.Compare(b.number(), a.number()) })
	return s, o
}

func (r run) number() uint64 { return uint64(r.term)<<8 | uint64(r.slot)<<4 | uint64(r.attempt) }

func (n runner) number() uint64 {
	return uint64(n.term)<<44 | uint64(n.after)<<40 | uint64(n.phase)<<32 | n.run.number()<<16 | n.retry.number()
}

func (c call) number() uint64 {
	v := uint64(c.phase)<<16 | c.run.number()
	if c.first {
		v |= 1 << 30
	}
	if c.late {
		v |= 1 << 31
	}
	return v
}

// Broken implements Protocol.
func (p SlotsProtocol) Broken(s Slots) string {
	watched := func(promise string) string {
		if p.Watch != "" && p.Watch != promise {
			return ""
		}
		return promise
	}
	runs := 0
	for _, n := range s.node {
		if n.phase == running {
			runs++
		}
	}
	if runs > 1 {
		return watched(TwoRuns)
	}
	for slot, starts := range s.starts {
		if starts[1] > 1 || starts[2] > 1 {
			return watched(StartsOnce)
		}
		if s.misses[slot] > 0 && (starts[1] > 0 || s.ledger.result[slot][1] != unrecorded) {
			return watched(MissedAndRun)
		}
	}
	return ""
}

// Settled reports whether the history has the end, the loss or the miss of every slot, and no run is open.
func (p SlotsProtocol) Settled(s Slots) bool {
	for slot := uint8(1); slot <= p.Slots; slot++ {
		if s.ledger.result[slot][1] == unrecorded && s.misses[slot] == 0 {
			return false
		}
	}
	return s.ledger.open == run{}
}
