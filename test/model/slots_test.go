package model

import (
	"fmt"
	"strings"
	"testing"
)

// exploreSlots explores the protocol. It also looks for a state from which the history never becomes complete.
func exploreSlots(t *testing.T, p SlotsProtocol) *Exploration[Slots] {
	t.Helper()
	e, err := Explore[Slots](p, limit)
	if err != nil {
		t.Fatal(err)
	}
	calm := p
	calm.Calm = true
	if e.Broken == "" && e.Stuck(p, calm, p.Settled, 20_000) {
		e.Broken = NoAccount
	}
	return e
}

func TestEveryPromiseOfSlotsHoldsInTheBounds(t *testing.T) {
	bounds := map[string]SlotsProtocol{
		"three slots":       {Nodes: 2, Slots: 3, Terms: 2, Late: 1, Twice: 1},
		"three terms":       {Nodes: 2, Slots: 2, Terms: 3, Late: 2},
		"repeated requests": {Nodes: 2, Slots: 2, Terms: 2, Late: 2, Twice: 2},
	}
	if large {
		bounds["three slots and terms"] = SlotsProtocol{Nodes: 3, Slots: 3, Terms: 3, Late: 2, Twice: 1}
	}
	acts := map[uint8]bool{}
	for name, p := range bounds {
		t.Run(name, func(t *testing.T) {
			e := exploreSlots(t, p)
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
	for act := falls; act <= fails; act++ {
		if !acts[act] {
			t.Errorf("action %d never occurs, so that the search proves nothing about it", act)
		}
	}
}

// TestEachRuleOfSlotsIsNeeded switches each rule off, and compares the shortest counterexamples with testdata/stories_slots.txt.
func TestEachRuleOfSlotsIsNeeded(t *testing.T) {
	var stories strings.Builder
	for _, w := range []struct {
		rule   Rule
		broken string
	}{
		{OwnerClaims, NoAccount},
		{OwnerMisses, MissedAndRun},
		{LaterSlot, StartsOnce},
		{MissedBars, MissedAndRun},
		{ClaimedIsNotMissed, MissedAndRun},
		{SameRun, NoAccount},
		{RetrialPending, NoAccount},
		{RetrialOnce, StartsOnce},
		{MissesFirst, NoAccount},
		{StartsInTerm, TwoRuns},
		{RecordedOnce, StartsOnce},
		{LostKeepsRetrial, StartsOnce},
	} {
		p := SlotsProtocol{Nodes: 2, Slots: 2, Terms: 2, Late: 1, Twice: 1, Off: []Rule{w.rule}, Watch: w.broken}
		if w.rule == LostKeepsRetrial {
			p.Slots, p.Terms, p.Twice = 1, 3, 0
		}
		e := exploreSlots(t, p)
		if e.Broken != w.broken {
			t.Errorf("without rule %q: %q; want %q", w.rule, e.Broken, w.broken)
		}
		t.Logf("without rule %q: %d steps to a broken promise, %d states", w.rule, len(e.Path), e.States())
		fmt.Fprintf(&stories, "Without rule %s\n%s", w.rule, p.Story(e))
	}
	golden(t, "testdata/stories_slots.txt", stories.String())
}
