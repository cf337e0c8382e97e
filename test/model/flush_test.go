package model

import (
	"fmt"
	"strings"
	"testing"
)

func exploreFlush(t *testing.T, p FlushProtocol) *Exploration[Flush] {
	t.Helper()
	e, err := Explore[Flush](p, limit)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// flushes are the bounds in which all promises hold. The explorations are complete.
func flushes() map[string]FlushProtocol {
	late := FlushBounds{Changes: 2, Terms: 2, Late: 1}
	back := FlushBounds{Changes: 2, Terms: 2, Saves: 1, Rewinds: 1}
	one := FlushBounds{Changes: 3, Terms: 1, Saves: 1, Rewinds: 1}
	both := FlushBounds{Changes: 2, Terms: 2, Late: 1, Saves: 1, Rewinds: 1}
	all := map[string]FlushProtocol{
		"counters":                             {Source: Counters, Bounds: both},
		"counters, pruning and parts":          {Source: Counters, Bounds: FlushBounds{Changes: 2, Terms: 2, Prunes: 1, Settings: 1}},
		"counters with a key each":             {Source: PlainCounters, Bounds: late},
		"counters with a key each, a failover": {Source: PlainCounters, Bounds: back},
		"hashes":                               {Source: Hashes, Bounds: late},
		"hashes, a failover":                   {Source: Hashes, Bounds: one},
		"hashes and marks at once, a failover": {Source: Hashes, Atomic: true, Bounds: one},
		"a stream":                             {Source: Stream, Jobs: 1, Bounds: late},
		"a stream, a failover":                 {Source: Stream, Jobs: 1, Bounds: back},
		"a stream of two jobs, a failover":     {Source: Stream, Jobs: 2, Bounds: one},
		"totals":                               {Source: Totals, Bounds: back},
	}
	if large {
		two := FlushBounds{Changes: 3, Terms: 2, Saves: 1, Rewinds: 1}
		four := FlushBounds{Changes: 4, Terms: 1, Saves: 1, Rewinds: 1}
		twice := FlushBounds{Changes: 3, Terms: 1, Saves: 2, Rewinds: 2}
		all["counters, more"] = FlushProtocol{Source: Counters, Bounds: two}
		all["counters, three terms"] = FlushProtocol{Source: Counters, Bounds: FlushBounds{Changes: 2, Terms: 3, Late: 2}}
		all["counters with a key each, more"] = FlushProtocol{Source: PlainCounters, Bounds: both}
		all["counters with a key each, two failovers"] = FlushProtocol{Source: PlainCounters, Bounds: twice}
		all["hashes, more"] = FlushProtocol{Source: Hashes, Bounds: both}
		all["hashes and marks at once, more"] = FlushProtocol{Source: Hashes, Atomic: true, Bounds: both}
		all["a stream, more"] = FlushProtocol{Source: Stream, Jobs: 1, Bounds: two}
		all["a stream, two failovers"] = FlushProtocol{Source: Stream, Jobs: 1, Bounds: twice}
		all["a stream of two jobs, more"] = FlushProtocol{Source: Stream, Jobs: 2, Bounds: four}
		all["totals, more"] = FlushProtocol{Source: Totals, Bounds: two}
	}
	for name, p := range all {
		p.Nodes = 2
		if underRace {
			p.Bounds.Changes, p.Bounds.Terms = 1, 1
		}
		all[name] = p
	}
	return all
}

func TestEveryPromiseOfTheFlushHoldsInTheBounds(t *testing.T) {
	acts := map[uint8]bool{}
	for name, p := range flushes() {
		t.Run(name, func(t *testing.T) {
			e := exploreFlush(t, p)
			t.Logf("%d states, %d steps, depth %d", e.States(), e.Steps, e.Depth)
			if e.Broken != "" {
				t.Errorf("with all rules:\n%s", p.Story(e))
			}
			for _, s := range e.states[:min(len(e.states), 50_000)] {
				for _, step := range p.Steps(s, nil) {
					acts[step.Act] = true
				}
			}
		})
	}
	for _, act := range flushActs() {
		forbidden := act == peeks || act == readsEarly || act == notes
		if acts[act] == forbidden && !underRace {
			t.Errorf("action %d has occurred: %v; an action that never occurs proves nothing", act, acts[act])
		}
	}
}

func flushActs() (all []uint8) {
	for act := changesKey; act <= resizes; act++ {
		all = append(all, act)
	}
	for kind := toStage; kind <= toTrim; kind++ {
		all = append(all, sends0+kind, unanswered0+kind, delayed0+kind)
	}
	return all
}

// TestEachChangeReachesTheDatabase checks that no state is a dead end: without further faults all changes are flushed.
func TestEachChangeReachesTheDatabase(t *testing.T) {
	for name, p := range flushes() {
		t.Run(name, func(t *testing.T) {
			if p.Bounds.Late = 0; p.Bounds.Rewinds > 0 || p.Source == Stream || p.Source == Hashes {
				p.Bounds.Terms = 1
			}
			if p.Bounds.Changes = min(p.Bounds.Changes, 2); underRace {
				p.Bounds.Changes = 1
			}
			e := exploreFlush(t, p)
			t.Logf("%d states", e.States())
			calm := p
			calm.Calm = true
			if e.Stuck(p, calm, p.Flushed, 100_000) {
				e.Broken = NeverFlushed
				t.Errorf("a dead end:\n%s", p.Story(e))
			}
			calm.Nodes = 0 // nodes that do nothing flush nothing
			if !e.Stuck(p, calm, p.Flushed, 100_000) {
				t.Error("all changes are flushed without any node: this test notices nothing")
			}
		})
	}
}

// unflushed is a rule, and what happens without it.
type unflushed struct {
	rule   Rule
	source SourceType
	broken string // the first promise that breaks
	set    func(*FlushProtocol)
	reason string // why the rule is there although no promise breaks in the bounds
	also   Rule   // the rule that must also be switched off so that a promise breaks
}

func failover(p *FlushProtocol) { p.Bounds.Saves, p.Bounds.Rewinds = 1, 1 }
func pruned(p *FlushProtocol)   { p.Bounds.Prunes = 1 }
func resized(p *FlushProtocol)  { p.Bounds.Settings = 1 }
func twoJobs(p *FlushProtocol)  { p.Jobs, p.Bounds.Terms = 2, 1 }

// oneNode is a failover that one leader survives, with more changes.
func oneNode(p *FlushProtocol) {
	failover(p)
	p.Nodes, p.Bounds.Changes, p.Bounds.Terms, p.Bounds.Late = 1, 3, 1, 0
}

func twoJobsFailover(p *FlushProtocol) {
	oneNode(p)
	p.Jobs = 2
}

var withoutFlush = []unflushed{
	{rule: OwnEpoch, source: Counters, broken: NoneCommits},
	{rule: OwnEpoch, source: Hashes, broken: OldValue},
	{rule: FenceLocked, source: Counters, broken: NoneCommits},
	{rule: FenceLocked, source: Hashes, reason: "A row that an open transaction has written is locked, " +
		"so the newer leader writes it last."},
	{rule: InLedger, source: Counters, broken: ChangeTwice},
	{rule: LedgerInside, source: Counters, broken: ChangeTwice},
	{rule: LedgerWaits, source: Counters, broken: ChangeTwice},
	{rule: NewestStays, source: Counters, broken: ChangeTwice, set: pruned},
	{rule: KeptID, source: Counters, broken: ChangeTwice},
	{rule: FreshID, source: Counters, broken: ChangeLost},
	{rule: PartsOnce, source: Counters, broken: ChangeLost, set: resized},
	{rule: DiscardLast, source: Counters, broken: ChangeLost},
	{rule: DiscardOwn, source: Counters, broken: ChangeLost},
	{rule: SealGivesID, source: PlainCounters, broken: ChangeLost, set: failover},
	{rule: SealGivesID, source: PlainCounters, broken: ChangeLost, set: oneNode},
	{rule: SealedOnly, source: PlainCounters, broken: ChangeLost},
	{rule: SealAll, source: PlainCounters, also: SealGivesID, broken: ChangeLost, reason: "A count that is left goes into the next stage."},
	{rule: GatherIndexed, source: PlainCounters, also: SealGivesID, broken: ChangeLost, reason: "It is a second defence: a late request " +
		"names the id that the stage had before it was sealed."},
	{rule: GatherOwn, source: PlainCounters, also: GatherIndexed, broken: ChangeLost, reason: "It is a second defence: " +
		"all counts whose ids are in the staged index belong to the present stage."},
	{rule: MarkLast, source: Hashes, broken: OldValue},
	{rule: StageFirst, source: Hashes, broken: OldValue},
	{rule: RemoveAfter, source: Hashes, broken: OldValue},
	{rule: RemoveOwn, source: Hashes, broken: OldValue},
	{rule: KeepUnflushed, source: Hashes, broken: OldValue},
	{rule: MoveInside, source: Stream, broken: ChangeTwice},
	{rule: MoveCompares, source: Stream, broken: ChangeTwice},
	{rule: AnchorThere, source: Stream, broken: ChangeLost, set: oneNode},
	{rule: TrimToAnchor, source: Stream, broken: ChangeLost, set: oneNode},
	{rule: NoteAnchor, source: Stream, broken: ChangeLost, set: twoJobsFailover},
	{rule: LastNoted, source: Stream, broken: ChangeLost, set: twoJobsFailover},
	{rule: TrimForAll, source: Stream, broken: ChangeLost, set: twoJobs},
	{rule: TrimKeeps, source: Stream, set: oneNode, reason: "It is there for a Redis before 7.0, which does not count entries. " +
		"The count also shows that no entry is missing."},
	{rule: MarkInside, source: Totals, broken: ChangeTwice},
	{rule: BehindFence, source: Totals, broken: ChangeTwice},
	{rule: BehindFence, source: Stream, reason: "The position moves only from the place where the page begins."},
	{rule: UnderWay, source: Totals, broken: ChangeTwice},
	{rule: InLedger, source: Totals, broken: ChangeTwice},
	{rule: DecreaseStops, source: Totals, broken: ChangeTwice, set: failover},
}

// TestEachRuleOfTheFlushIsNeeded switches each rule off, and compares the shortest counterexamples with testdata/stories_flush.txt.
func TestEachRuleOfTheFlushIsNeeded(t *testing.T) {
	var stories strings.Builder
	for _, w := range withoutFlush {
		p := FlushProtocol{Source: w.source, Nodes: 2, Jobs: 1, Bounds: FlushBounds{Changes: 2, Terms: 2, Late: 1}}
		if w.set != nil {
			w.set(&p)
		}
		p.Off, p.Watch = []Rule{w.rule}, w.broken
		fmt.Fprintf(&stories, "Without rule %s (%s)\n", w.rule, w.source)
		if w.reason != "" {
			all := p
			if all.Watch = ""; w.rule == FenceLocked {
				all.Watch = OldValue
			}
			if underRace {
				all.Bounds.Terms = 1
			}
			if e := exploreFlush(t, all); e.Broken != "" {
				t.Errorf("without rule %q there is a counterexample:\n%s", w.rule, all.Story(e))
			}
			fmt.Fprintf(&stories, "    No promise breaks in the bounds. %s\n", w.reason)
			if w.also == "" {
				continue
			}
			p.Off = append(p.Off, w.also)
			fmt.Fprintf(&stories, "... and without rule %s\n", w.also)
		}
		e := exploreFlush(t, p)
		if e.Broken == "" {
			t.Errorf("without rule %q no promise breaks in %+v", p.Off, p.Bounds)
		}
		t.Logf("without rule %q: %d steps to a broken promise, %d states", p.Off, len(e.Path), e.States())
		stories.WriteString(p.Story(e))
	}
	golden(t, "testdata/stories_flush.txt", stories.String())
}

// TestWhatAFailoverBreaks tells the limits that section 6 states. All rules are on.
func TestWhatAFailoverBreaks(t *testing.T) {
	var stories strings.Builder
	for _, w := range []struct {
		source SourceType
		broken string
	}{
		{Counters, ChangeTwice},
		{PlainCounters, ChangeTwice},
		{Hashes, OldValue},
	} {
		p := FlushProtocol{Source: w.source, Nodes: 1, Strict: true, Watch: w.broken}
		p.Bounds = FlushBounds{Changes: 2, Terms: 1, Saves: 1, Rewinds: 1}
		e := exploreFlush(t, p)
		if e.Broken != w.broken {
			t.Errorf("%s: %q; want the stated limit", w.source, e.Broken)
		}
		fmt.Fprintf(&stories, "A failover that loses writes (%s)\n%s", w.source, p.Story(e))
	}
	golden(t, "testdata/stories_failover.txt", stories.String())
}
