package model

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the stories in testdata anew")

// large makes the tests explore the larger bounds, as make model does.
var large = os.Getenv("MODEL") == "large"

// limit limits the memory of one exploration: a state takes about 100 bytes.
const limit = 20_000_000

// cluster returns a protocol with two nodes, a ttl of three ticks and a margin of one tick.
func cluster(b Bounds) LeaseProtocol { return LeaseProtocol{Nodes: 2, TTL: 3, Margin: 1, Bounds: b} }

// explored are the bounds in which all promises hold. The explorations are complete.
func explored() map[string]LeaseProtocol {
	all := map[string]LeaseProtocol{
		"late, lost and repeated requests": cluster(Bounds{Terms: 2, Late: 2, Twice: 1, Drifts: 1}),
		"another incarnation":              cluster(Bounds{Terms: 3, Late: 1, Incarnations: 1}),
		"an old copy of the data":          cluster(Bounds{Terms: 2, Late: 1, Incarnations: 1, Copies: 1}),
		"two incarnations":                 cluster(Bounds{Terms: 2, Late: 1, Incarnations: 2}),
		"a database, and Redis' clock":     cluster(Bounds{Terms: 2, Late: 1, Incarnations: 1, SetBacks: 1}),
		"nodes with different ttls":        cluster(Bounds{Terms: 2, Late: 1, Incarnations: 1}),
	}
	if large {
		all["late, lost and repeated requests"] = cluster(Bounds{Terms: 3, Late: 2, Twice: 1, Drifts: 1})
		all["two late requests and another incarnation"] = cluster(Bounds{Terms: 3, Late: 2, Incarnations: 1})
		all["an old copy of the data"] = cluster(Bounds{Terms: 3, Late: 1, Incarnations: 1, Copies: 1, Drifts: 1})
		all["two incarnations"] = cluster(Bounds{Terms: 3, Late: 1, Incarnations: 2, Drifts: 1})
		three := cluster(Bounds{Terms: 2, Late: 1, Incarnations: 1})
		three.Nodes = 3
		all["three nodes"] = three
	}
	for name, p := range all {
		p.Database = strings.Contains(name, "database")
		if strings.Contains(name, "ttls") {
			p.Longer = 2
		}
		if underRace {
			p.Bounds.Terms = 1
		}
		all[name] = p
	}
	return all
}

func explore(t *testing.T, p LeaseProtocol) *Exploration[Lease] {
	t.Helper()
	e, err := Explore[Lease](p, limit)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEveryPromiseHoldsInTheBounds(t *testing.T) {
	acts := map[uint8]bool{}
	for name, p := range explored() {
		t.Run(name, func(t *testing.T) {
			e := explore(t, p)
			t.Logf("%d states, %d steps, depth %d", e.States(), e.Steps, e.Depth)
			if e.Broken != "" {
				t.Errorf("with all rules:\n%s", p.Story(e))
			}
			for _, s := range e.states[:min(len(e.states), 200_000)] {
				for _, step := range p.Steps(s, nil) {
					acts[step.Act] = true
				}
			}
		})
	}
	for act := asks; act <= setBack; act++ {
		forbidden := act == releasesEarly || act == suspends || act == wakes
		if acts[act] == forbidden && !underRace {
			t.Errorf("action %d has occurred: %v; an action that never occurs proves nothing", act, acts[act])
		}
	}
}

// TestALeaderIsAlwaysReachable checks that no state is a dead end: without further faults a node can lead.
func TestALeaderIsAlwaysReachable(t *testing.T) {
	for name, b := range map[string]Bounds{
		"late requests":       {Terms: 2, Late: 1, Twice: 1},
		"another incarnation": {Terms: 2, Late: 1, Incarnations: 1},
		"a database":          {Terms: 1, Late: 1, Incarnations: 1, SetBacks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := cluster(b)
			p.Database = name == "a database"
			if underRace {
				p.Bounds.Terms = 1
			}
			e := explore(t, p)
			calm := p
			calm.Calm = true
			if e.Stuck(p, calm, p.Led, 100_000) {
				e.Broken = "From here no node can lead."
				t.Errorf("a dead end:\n%s", p.Story(e))
			}
			calm.Nodes = 0 // nodes that do nothing lead nowhere
			if !e.Stuck(p, calm, p.Led, 100_000) {
				t.Error("a leader is reachable without any node: this test notices nothing")
			}
		})
	}
}

// without is a rule, and what happens without it.
type without struct {
	rule   Rule
	bounds Bounds
	set    func(*LeaseProtocol)
	broken string // the first promise that breaks
	reason string // why the rule is there although no promise breaks in the bounds
	also   Rule   // the rule that must also be switched off so that a promise breaks
}

func database(p *LeaseProtocol) { p.Database = true }
func longer(p *LeaseProtocol)   { p.Longer = 2 }

var (
	calmRedis = Bounds{Terms: 2, Late: 1}
	lostData  = Bounds{Terms: 3, Late: 1, Incarnations: 1}
	lostData2 = Bounds{Terms: 2, Late: 1, Incarnations: 1}
)

var withouts = []without{
	{rule: SetIfAbsent, bounds: calmRedis, broken: OneActs},
	{rule: SameOwner, bounds: lostData2, reason: "It is there for speed. " +
		"Without it a lost answer locks all nodes out for the rest of the lease."},
	{rule: RenewOwn, bounds: lostData, broken: OneActs},
	{rule: ReleaseOwn, bounds: lostData, broken: OneActs},
	{rule: TrustFromSending, bounds: calmRedis, broken: OneActs},
	{rule: Margin, bounds: Bounds{Terms: 2, Late: 1, Drifts: 1}, broken: OneActs},
	{rule: BootClock, bounds: calmRedis, broken: OneActs},
	{rule: GuardNeverWaits, bounds: calmRedis, broken: OneActs},
	{rule: LostStops, bounds: lostData2, reason: "It is there for faults that the model does not contain, " +
		"such as an operator or another program that deletes the lock. While the other rules hold, no other node leads inside the window of the node that hears that it has lost."},
	{rule: UnknownMovesNothing, bounds: calmRedis, broken: OneActs},
	{rule: NeverPastH, bounds: lostData, broken: OneActs},
	{rule: ProofNeverPastH, bounds: lostData, broken: OneActs},
	{rule: NewUUID, bounds: calmRedis, broken: OneActs},
	{rule: LostIfRunOut, bounds: Bounds{Terms: 2, Late: 1, Drifts: 1}, also: NeverPastH, broken: OneActs, reason: "A lease lasts longer " +
		"than its window, so that the answer to a renewal that comes after the lease has ended is read after H, and moves nothing."},
	{rule: ReleaseAfterWork, bounds: calmRedis, broken: OneActs},
	{rule: EpochAboveClock, bounds: lostData, broken: EpochRises},
	{rule: EpochAboveFloor, bounds: Bounds{Terms: 2, Late: 1, Incarnations: 1, SetBacks: 1}, broken: EpochRises},
	{rule: Raise, bounds: Bounds{Terms: 2, Late: 1, Incarnations: 1, SetBacks: 1}, set: database, broken: LeaderWrites},
	{rule: Fence, bounds: calmRedis, set: database, broken: NoneCommits},
	{rule: FenceOwner, bounds: Bounds{Terms: 2, Late: 1, Incarnations: 1, SetBacks: 1}, set: database, broken: NoneCommits},
	{rule: Quarantine, bounds: lostData2, broken: OneActs},
	{rule: LongestLease, bounds: lostData2, set: longer, broken: OneActs},
	{rule: FloorShowsLoss, bounds: lostData2, broken: OneActs},
	{rule: Restore, bounds: lostData2, reason: "It is there for availability. " +
		"Without it each restart of Redis ends the term, and no node leads for a quarantine."},
	{rule: RestoredWithKey, bounds: lostData2, broken: OneActs},
	{rule: LaterTermStays, bounds: Bounds{Terms: 2, Late: 1, Incarnations: 1, Copies: 1}, reason: "It is a second " +
		"defence: a renewal with a proof was sent inside its window and in this incarnation, so that no later term exists."},
	{rule: Proof, bounds: lostData, broken: OneActs},
}

// TestEachRuleIsNeeded switches each rule off, and compares the shortest counterexamples with testdata/stories.txt.
func TestEachRuleIsNeeded(t *testing.T) {
	var stories strings.Builder
	for _, w := range withouts {
		p := cluster(w.bounds)
		if w.set != nil {
			w.set(&p)
		}
		p.Off, p.Watch = []Rule{w.rule}, w.broken
		fmt.Fprintf(&stories, "Without rule %s\n", w.rule)
		if w.reason != "" {
			all := p
			all.Watch = ""
			if underRace {
				all.Bounds.Terms = 1
			}
			if e := explore(t, all); e.Broken != "" {
				t.Errorf("without rule %q there is a counterexample:\n%s", w.rule, all.Story(e))
			}
			fmt.Fprintf(&stories, "    No promise breaks in the bounds. %s\n", w.reason)
			if w.also == "" {
				continue
			}
			p.Off, p.Watch = append(p.Off, w.also), w.broken
			fmt.Fprintf(&stories, "... and without rule %s\n", w.also)
		}
		e := explore(t, p)
		if e.Broken == "" {
			t.Errorf("without rule %q no promise breaks in %+v", p.Off, p.Bounds)
		}
		t.Logf("without rule %q: %d steps to a broken promise, %d states", p.Off, len(e.Path), e.States())
		stories.WriteString(p.Story(e))
	}
	golden(t, "testdata/stories.txt", stories.String())
}

// golden compares a text with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("the stories differ from %s; go test ./test/model -update writes it. They are now:\n%s", file, got)
	}
}

// TestANodeThatKnowsNoEpochCannotNoticeALoss shows the limit that docs/adr/0006 states.
func TestANodeThatKnowsNoEpochCannotNoticeALoss(t *testing.T) {
	p := cluster(lostData2)
	p.New = true
	if e := explore(t, p); e.Broken != OneActs {
		t.Errorf("%q; want the stated limit", e.Broken)
	} else {
		t.Logf("the limit:\n%s", p.Story(e))
	}
}
