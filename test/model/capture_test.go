package model

import (
	"fmt"
	"strings"
	"testing"
)

func exploreCapture(t *testing.T, p CaptureProtocol) *Exploration[Capture] {
	t.Helper()
	e, err := Explore[Capture](p, limit)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// captures are the bounds in which all promises hold. The explorations are complete.
func captures() map[string]CaptureProtocol {
	leaders := CaptureBounds{Writes: 1, Terms: 2, Unheard: 1}
	failover := CaptureBounds{Writes: 2, Terms: 1, Saves: 1, Failovers: 1}
	deposed := CaptureBounds{Writes: 1, Terms: 2, Saves: 1, Failovers: 1}
	restart := CaptureBounds{Writes: 2, Terms: 1, Saves: 1, Restarts: 1}
	emptied := CaptureBounds{Writes: 1, Flushes: 1, Terms: 1, Saves: 1, Failovers: 1}
	all := map[string]CaptureProtocol{
		"one leader":                   {Nodes: 1, Backlog: 2, Bounds: CaptureBounds{Writes: 3, Terms: 1}},
		"two terms, a small backlog":   {Nodes: 1, Backlog: 1, Bounds: CaptureBounds{Writes: 2, Terms: 2}},
		"a deposed leader":             {Nodes: 2, Backlog: 4, Bounds: leaders},
		"a failover":                   {Nodes: 1, Backlog: 4, Bounds: failover},
		"a failover and two terms":     {Nodes: 1, Backlog: 4, Bounds: deposed},
		"a restart":                    {Nodes: 1, Backlog: 2, Bounds: restart},
		"on_flush: stop, a failover":   {Nodes: 1, Backlog: 4, OnFlush: FlushStop, Bounds: emptied},
		"on_flush: pass, a failover":   {Nodes: 1, Backlog: 4, OnFlush: FlushPass, Bounds: emptied},
		"on_flush: delete, a failover": {Nodes: 1, Backlog: 4, OnFlush: FlushDelete, Bounds: emptied},
	}
	if large {
		emptied.Writes = 2
		deposed.Writes, restart.Terms, restart.Unheard = 2, 2, 1
		all["a failover and two terms, more"] = CaptureProtocol{Nodes: 1, Backlog: 4, Bounds: deposed}
		all["a failover and a deposed leader"] = CaptureProtocol{Nodes: 2, Backlog: 4, Bounds: CaptureBounds{
			Writes: 1, Terms: 2, Saves: 1, Failovers: 1}}
		all["a restart, more"] = CaptureProtocol{Nodes: 1, Backlog: 2, Bounds: restart}
		for _, o := range []OnFlush{FlushStop, FlushPass, FlushDelete} {
			all["a failover, more, on_flush: "+o.String()] = CaptureProtocol{Nodes: 1, Backlog: 4, OnFlush: o, Bounds: emptied}
		}
	}
	for name, p := range all {
		if underRace {
			p.Bounds.Writes, p.Bounds.Terms, p.Bounds.Flushes = 1, 1, 0
		}
		all[name] = p
	}
	return all
}

func TestEveryPromiseOfTheCaptureHoldsInTheBounds(t *testing.T) {
	acts := map[uint8]bool{}
	for name, p := range captures() {
		t.Run(name, func(t *testing.T) {
			e := exploreCapture(t, p)
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
	for _, act := range captureActs() {
		if !acts[act] && !underRace {
			t.Errorf("action %d never occurs, so that the search proves nothing about it", act)
		}
	}
}

func captureActs() []uint8 {
	all := []uint8{elects, crashes, failsRun, claims, stepsDown, begins, skips, commitsPage, commitsUnheard, commitsLate, orphanCommits,
		orphanEnds, saves}
	for act := setsKey; act <= pays; act++ {
		all = append(all, act)
	}
	return all
}

// TestTheTableBecomesEqualToTheKeys checks that no state is a dead end: without further faults each row becomes equal to its key, or the
// capture waits for the decision of an operator.
func TestTheTableBecomesEqualToTheKeys(t *testing.T) {
	for name, p := range captures() {
		t.Run(name, func(t *testing.T) {
			p.Bounds.Writes = min(p.Bounds.Writes, 2)
			e := exploreCapture(t, p)
			t.Logf("%d states", e.States())
			calm := p
			calm.Calm = true
			if e.Stuck(p, calm, p.UpToDate, 100_000) {
				e.Broken = NeverEqual
				t.Errorf("a dead end:\n%s", p.Story(e))
			}
			calm.Nodes = 0 // nodes that do nothing write nothing
			if !e.Stuck(p, calm, p.UpToDate, 100_000) {
				t.Error("the table becomes equal to the keys without any node: this test notices nothing")
			}
		})
	}
}

// uncaptured is a rule, and what happens without it.
type uncaptured struct {
	rule   Rule
	broken string // the first promise that breaks
	set    func(*CaptureProtocol)
	reason string // why the rule is there although no promise breaks in the bounds
	also   Rule   // the rule that must also be switched off so that a promise breaks
}

func promoted(p *CaptureProtocol)  { p.Bounds.Saves, p.Bounds.Failovers, p.Backlog = 1, 1, 4 }
func restarted(p *CaptureProtocol) { p.Bounds.Saves, p.Bounds.Restarts = 1, 1 }
func twoLeaders(p *CaptureProtocol) {
	p.Nodes, p.Bounds = 2, CaptureBounds{Writes: 1, Terms: 2, Unheard: 1}
}
func threeWrites(p *CaptureProtocol) { p.Bounds.Writes = 3 }
func twoTerms(p *CaptureProtocol)    { p.Bounds.Terms = 2 }

func promotedTwice(p *CaptureProtocol) {
	promoted(p)
	p.Bounds.Terms = 2
}

func flushed(o OnFlush) func(*CaptureProtocol) {
	return func(p *CaptureProtocol) { p.OnFlush, p.Bounds.Flushes, p.Bounds.Writes, p.Backlog = o, 1, 1, 4 }
}

func flushedAndPromoted(p *CaptureProtocol) {
	promoted(p)
	flushed(FlushDelete)(p)
}

var withoutCapture = []uncaptured{
	{rule: OwnEpoch, broken: NoneCommits, set: twoLeaders},
	{rule: FenceLocked, broken: NoneCommits, set: twoLeaders},
	{rule: LastMoves, broken: PlaceSilent},
	{rule: PlaceCompares, set: twoLeaders, reason: "It is a second defence: the fence stops a leader after another one."},
	{rule: OtherPlace, set: twoLeaders, reason: "It is a second defence: " +
		"a leader whose place was moved by another one has lost the fence."},
	{rule: PendingAgain, broken: FeedSilent},
	{rule: DuringPass, broken: FeedSilent},
	{rule: SeenWritten, broken: PlaceSilent, set: promotedTwice},
	{rule: SeenAfter, broken: PlaceSilent, set: promoted},
	{rule: SeenOfServer, broken: PlaceSilent, set: promoted},
	{rule: SeenShared, broken: PlaceSilent, set: promoted},
	{rule: SeenFollowed, broken: PlaceSilent, set: promoted},
	{rule: SeenPromoted, broken: PlaceSilent, set: promoted},
	{rule: UpToShared, broken: PlaceSilent, set: promoted},
	{rule: LackOwes, broken: PlaceSilent, set: restarted},
	{rule: BreakNoted, broken: PlaceSilent, set: promoted},
	{rule: PassNoted, broken: PlaceSilent, set: twoTerms},
	{rule: PassEnds, broken: FeedSilent, set: promoted},
	{rule: PassEnds, broken: PlaceSilent, set: flushedAndPromoted},
	{rule: PassWhole, broken: FeedSilent, set: promoted},
	{rule: SweepRows, broken: FeedSilent, set: restarted},
	{rule: SweepSearches, broken: RowOfKey, set: threeWrites, also: SweepPending, reason: "It is a second defence. " +
		"The change of a key that came back is pending."},
	{rule: PassWitness, set: promotedTwice, reason: "The last page of a pass also notices that its master was replaced. " +
		"The rule is there for a scan, which follows no stream."},
	{rule: SweepReceives, broken: FlushDeletes, set: flushed(FlushStop)},
	{rule: SweepPending, reason: "It is there for max_pct, which is not in the model."},
	{rule: SweepSeen, broken: FeedSilent, set: promoted},
	{rule: SweepSeen, broken: FeedSilent, set: flushedAndPromoted},
	{rule: FlushNoticed, broken: FeedSilent, set: flushed(FlushPass)},
	{rule: FlushReceived, broken: FlushDeletes, set: flushed(FlushStop)},
	{rule: FlushSpares, broken: FlushDeletes, set: flushed(FlushStop)},
	{rule: SweepSpares, broken: FlushDeletes, set: flushed(FlushStop)},
}

// TestEachRuleOfTheCaptureIsNeeded switches each rule off, and compares the shortest counterexamples with testdata/stories_capture.txt.
func TestEachRuleOfTheCaptureIsNeeded(t *testing.T) {
	var stories strings.Builder
	for _, w := range withoutCapture {
		p := CaptureProtocol{Nodes: 1, Backlog: 2, Off: []Rule{w.rule}, Watch: w.broken, Bounds: CaptureBounds{Writes: 2, Terms: 1}}
		if w.set != nil {
			w.set(&p)
		}
		fmt.Fprintf(&stories, "Without rule %s (on_flush: %s)\n", w.rule, p.OnFlush)
		if w.reason != "" {
			all := p
			if all.Watch = ""; underRace {
				all.Bounds.Writes, all.Bounds.Terms = 1, 1
			}
			if e := exploreCapture(t, all); e.Broken != "" {
				t.Errorf("without rule %q there is a counterexample:\n%s", w.rule, all.Story(e))
			}
			fmt.Fprintf(&stories, "    No promise breaks in the bounds. %s\n", w.reason)
			if w.also == "" {
				continue
			}
			p.Off = append(p.Off, w.also)
			fmt.Fprintf(&stories, "... and without rule %s\n", w.also)
		}
		e := exploreCapture(t, p)
		if e.Broken == "" {
			t.Errorf("without rule %q no promise breaks in %+v", p.Off, p.Bounds)
		}
		t.Logf("without rule %q: %d steps to a broken promise, %d states", p.Off, len(e.Path), e.States())
		stories.WriteString(p.Story(e))
	}
	golden(t, "testdata/stories_capture.txt", stories.String())
}
