package linear

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// kind says what a fault breaks, and how.
type kind string

// These are the faults of every design. The faults of a design's servers are in its ground.
const (
	killLeader   kind = "SIGKILL of the leader"
	killNode     kind = "SIGKILL of a node"
	endNode      kind = "orderly end of a node"
	freezeLeader kind = "SIGSTOP of the leader"
	freezeNode   kind = "SIGSTOP of a node"
	stepDown     kind = "stepdown"
	clockAhead   kind = "wall clock an hour ahead"
	clockBehind  kind = "wall clock an hour behind"
	wayCut       kind = "way: connections reset"
	wayForget    kind = "way: connections forgotten"
	wayBlock     kind = "way: refused"
	wayHang      kind = "way: hangs"
	wayReplies   kind = "way: replies hang"
	wayRequests  kind = "way: requests hang"
)

// place is a part of the lab that only one fault at a time may break.
type place string

const (
	atNode    place = "node"
	atFreezer place = "freezer"
	atClock   place = "clock"
	onWay     place = "way"
	onOther   place = "another way"
	atControl place = "control"
	atStore   place = "store"
	atOther   place = "another part of the store"
)

// trait says how a kind of fault is drawn. Durations are in leases. A kind without a duration is over immediately.
type trait struct {
	kind           kind
	place          place
	weight         int
	least, longest float64
}

var common = []trait{
	{killLeader, atNode, 4, 0, 0},
	{killNode, atNode, 2, 0, 0},
	{endNode, atNode, 2, 0, 0},
	{freezeLeader, atFreezer, 5, 0.5, 3},
	{freezeNode, atFreezer, 1, 0.5, 3},
	{stepDown, atControl, 2, 0, 0},
	{clockAhead, atClock, 2, 0.5, 4},
	{clockBehind, atClock, 2, 0.5, 4},
	{wayCut, onWay, 2, 0, 0},
	{wayForget, onWay, 2, 0, 0},
	{wayBlock, onWay, 1, 0.25, 2},
	{wayHang, onWay, 2, 0.25, 3},
	{wayReplies, onWay, 2, 0.25, 3},
	{wayRequests, onWay, 2, 0.25, 3},
	{wayHang, onOther, 1, 0.25, 3},
	{wayReplies, onOther, 1, 0.25, 3},
	{wayRequests, onOther, 1, 0.25, 3},
}

// fault is one entry of a schedule.
type fault struct {
	trait
	at    time.Duration // since the start
	lasts time.Duration
	node  int // the node that the fault hits, unless it hits the leader
	// leader means that a fault that may hit any node hits the leader.
	leader bool
	draw   uint64 // a random number for all other choices
}

func (f fault) String() string {
	if f.lasts > 0 {
		return fmt.Sprintf("%s for %v", f.kind, f.lasts)
	}
	return string(f.kind)
}

const (
	nodes = 5
	lease = 1500 * time.Millisecond
	// pace is the average time of a fault.
	pace = 1100 * time.Millisecond
	// quiet is the length of the pauses without a fault, which show the recovery.
	quiet = lease + 500*time.Millisecond
)

// schedule draws n faults from a seed. Some faults overlap. If the pace allows it, there are pauses without a fault.
func schedule(seed uint64, n int, traits []trait) []fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	between := func(least, most time.Duration) time.Duration {
		return (least + time.Duration(rng.Int64N(int64(most-least)+1))).Round(time.Millisecond)
	}
	var faults []fault
	busy := map[place]time.Duration{} // the time until which a place is broken
	healed := time.Duration(0)        // the time when all faults so far are over
	for at := 100 * time.Millisecond; len(faults) < n; {
		t, free := pick(rng, traits, busy, at)
		if free {
			f := fault{trait: t, at: at, node: rng.IntN(nodes), leader: rng.IntN(3) > 0, draw: rng.Uint64()}
			if t.longest > 0 {
				f.lasts = between(inLeases(t.least), inLeases(t.longest))
			}
			faults = append(faults, f)
			busy[t.place] = at + f.lasts + 100*time.Millisecond
			healed = max(healed, at+f.lasts)
		}
		at += between(50*time.Millisecond, 900*time.Millisecond)
		rest := healed + quiet
		if rest <= time.Duration(len(faults))*pace && rng.IntN(10) < 7 {
			at = max(at, rest)
		}
	}
	return faults
}

func inLeases(n float64) time.Duration { return time.Duration(n * float64(lease)) }

// pick draws a kind of fault whose place is not already broken.
func pick(rng *rand.Rand, traits []trait, busy map[place]time.Duration, at time.Duration) (trait, bool) {
	free := slices.DeleteFunc(slices.Clone(traits), func(t trait) bool { return busy[t.place] > at })
	sum := 0
	for _, t := range free {
		sum += t.weight
	}
	if sum == 0 {
		return trait{}, false
	}
	n := rng.IntN(sum)
	for _, t := range free {
		if n -= t.weight; n < 0 {
			return t, true
		}
	}
	panic("unreachable: the weights add up to the sum")
}
