package model

import (
	"errors"
	"hash/maphash"
	"slices"
)

// maxNodes limits the number of nodes of a protocol.
const maxNodes = 3

// Order renames nodes: node i of the new state is node order[i] of the old state.
type Order [maxNodes]uint8

// sameOrder renames no node.
var sameOrder = Order{0, 1, 2}

// Step is one step of a protocol: one participant does one thing, or one fault happens.
type Step[S comparable] struct {
	To     S
	Act    uint8  // the number of the action in the protocol's list of actions
	Node   int8   // the node that acts; -1 if no node acts
	Detail uint8  // more about the action, for the story
	Broken string // the promise that the step itself breaks; "" if it breaks none
}

// Protocol is a transition system. All states that its steps reach must be finitely many.
type Protocol[S comparable] interface {
	// Start returns the first state.
	Start() S
	// Steps appends all possible steps from the state s to the list into.
	Steps(s S, into []Step[S]) []Step[S]
	// Canonical returns the state that represents all states which differ from s only in the names of nodes.
	Canonical(s S) (S, Order)
	// Broken returns the promise that the state s breaks, or "" if it breaks none.
	Broken(s S) string
}

// Turn is one step of a counterexample. Names contains the original number of each node of the state From.
type Turn[S comparable] struct {
	From  S
	Step  Step[S]
	Names Order
}

// Exploration contains all states that Explore has found.
type Exploration[S comparable] struct {
	Steps  int    // number of steps, including the steps to known states
	Depth  int    // length of the longest of the shortest paths to a state
	Broken string // the broken promise; "" if all promises hold
	Path   []Turn[S]

	states []S
	from   []int32 // the state from which each state was found first
	seen   set[S]
}

// States returns the number of states. States that differ only in the names of nodes count once.
func (e *Exploration[S]) States() int { return len(e.states) }

// ErrTooMany means that the protocol has more states than the limit of Explore.
var ErrTooMany = errors.New("more states than the limit: choose smaller bounds")

// Explore visits all reachable states in the order of their distance from the start. It stops at the first broken promise. Because of this
// order, the path to the broken promise is one of the shortest.
func Explore[S comparable](p Protocol[S], limit int) (*Exploration[S], error) {
	e := &Exploration[S]{seen: newSet[S]()}
	first, _ := p.Canonical(p.Start())
	e.add(first, -1)
	var steps []Step[S]
	for i, end := 0, 1; i < len(e.states); i++ {
		if i == end {
			e.Depth++
			end = len(e.states)
		}
		steps = p.Steps(e.states[i], steps[:0])
		for _, step := range steps {
			e.Steps++
			to, _ := p.Canonical(step.To)
			if broken := step.Broken + p.Broken(to); broken != "" {
				e.Broken, e.Path = broken, append(e.pathTo(p, int32(i)), Turn[S]{From: e.states[i], Step: step})
				e.rename(p)
				return e, nil
			}
			e.add(to, int32(i))
		}
		if len(e.states) > limit {
			return e, ErrTooMany
		}
	}
	return e, nil
}

func (e *Exploration[S]) add(s S, from int32) {
	if e.seen.add(s, int32(len(e.states)), e.states) {
		e.states, e.from = append(e.states, s), append(e.from, from)
	}
}

// pathTo returns the steps from the start to the state i.
func (e *Exploration[S]) pathTo(p Protocol[S], i int32) []Turn[S] {
	var path []Turn[S]
	for ; e.from[i] >= 0; i = e.from[i] {
		from := e.states[e.from[i]]
		for _, step := range p.Steps(from, nil) {
			if to, _ := p.Canonical(step.To); to == e.states[i] {
				path = append(path, Turn[S]{From: from, Step: step})
				break
			}
		}
	}
	slices.Reverse(path)
	return path
}

// rename sets the names of the nodes in the path. A canonical state may contain the nodes in another order than the state before it.
func (e *Exploration[S]) rename(p Protocol[S]) {
	names := sameOrder
	for i := range e.Path {
		e.Path[i].Names = names
		_, o := p.Canonical(e.Path[i].Step.To)
		old := names
		for j := range names {
			names[j] = old[o[j]]
		}
	}
}

// Stuck reports whether there is a state from which the protocol calm cannot reach a state that reached accepts. Then Path is the path to
// that state. The protocol calm has the same states, but no faults. If it has infinitely many states, limit ends a search that finds
// nothing.
func (e *Exploration[S]) Stuck(p, calm Protocol[S], reached func(S) bool, limit int) bool {
	good := newSet[S]()
	var goods []S
	mark := func(s S) {
		if good.add(s, int32(len(goods)), goods) {
			goods = append(goods, s)
		}
	}
	for i, s := range e.states {
		if good.has(s, goods) {
			continue
		}
		search := &Exploration[S]{seen: newSet[S]()}
		search.add(s, -1)
		found := int32(-1)
		var steps []Step[S]
		for j := 0; j < len(search.states) && found < 0 && len(search.states) < limit; j++ {
			if reached(search.states[j]) || good.has(search.states[j], goods) {
				found = int32(j)
				break
			}
			steps = calm.Steps(search.states[j], steps[:0])
			for _, step := range steps {
				to, _ := calm.Canonical(step.To)
				search.add(to, int32(j))
			}
		}
		if found < 0 {
			e.Path = e.pathTo(p, int32(i))
			e.rename(p)
			return true
		}
		for j := found; j >= 0; j = search.from[j] {
			mark(search.states[j])
		}
	}
	return false
}

// set is a set of states. It contains only their positions in a list of states, so that every state is in memory once.
type set[S comparable] struct {
	seed  maphash.Seed
	slots []int32 // position + 1 in the list; 0 if the slot is free
	used  int
}

func newSet[S comparable]() set[S] {
	return set[S]{seed: maphash.MakeSeed(), slots: make([]int32, 64)}
}

// find returns the slot of the state s, or the free slot in which s belongs.
func (t *set[S]) find(s S, states []S) int {
	i := int(maphash.Comparable(t.seed, s)) & (len(t.slots) - 1)
	for t.slots[i] != 0 && states[t.slots[i]-1] != s {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

func (t *set[S]) has(s S, states []S) bool { return t.slots[t.find(s, states)] != 0 }

// add adds the state s, which the caller then appends to the list states at the position at. It returns false if s was in the set.
func (t *set[S]) add(s S, at int32, states []S) bool {
	i := t.find(s, states)
	if t.slots[i] != 0 {
		return false
	}
	t.slots[i] = at + 1
	if t.used++; 2*t.used > len(t.slots) {
		t.slots = make([]int32, 2*len(t.slots))
		for j, old := range states {
			t.slots[t.find(old, states)] = int32(j) + 1
		}
		t.slots[t.find(s, states)] = at + 1
	}
	return true
}
