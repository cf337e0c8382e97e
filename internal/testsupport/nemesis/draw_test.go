package nemesis_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"baton/internal/testsupport/nemesis"
)

func traits() []nemesis.Trait {
	return []nemesis.Trait{
		{Kind: "kill", Place: "node", Weight: 3},
		{Kind: "freeze", Place: "node", Weight: 2, Least: time.Second, Longest: 3 * time.Second},
		{Kind: "cut", Place: "way", Weight: 1, Least: 0, Longest: time.Second},
	}
}

func TestScheduleFollowsFromItsSeed(t *testing.T) {
	p := nemesis.Pace{Least: 50 * time.Millisecond, Most: time.Second, Quiet: 2 * time.Second, Each: 2 * time.Second}
	draw := func(seed uint64) []nemesis.Fault { return nemesis.Draw(seed, 50, traits(), p) }
	if !reflect.DeepEqual(draw(7), draw(7)) {
		t.Error("the same seed gives another schedule")
	}
	if reflect.DeepEqual(draw(7), draw(8)) {
		t.Error("two seeds give the same schedule")
	}
	for seed := range uint64(200) {
		busy, healed, pauses := map[string]time.Duration{}, time.Duration(0), 0
		seen := map[string]int{}
		for _, f := range draw(seed) {
			seen[f.Kind]++
			if f.At < busy[f.Place] || f.Lasts < f.Least || f.Lasts > f.Longest {
				t.Fatalf("seed %d: %v at %v, where something is broken until %v", seed, f, f.At, busy[f.Place])
			}
			if f.At-healed >= p.Quiet {
				pauses++
			}
			busy[f.Place], healed = f.At+f.Lasts, max(healed, f.At+f.Lasts)
		}
		if len(seen) != 3 || pauses < 5 {
			t.Fatalf("seed %d: %v, with %d pauses", seed, seen, pauses)
		}
	}
}

func TestFaultsBeginAndEndInTheirTurn(t *testing.T) {
	var did []string
	n := nemesis.Nemesis{Log: &nemesis.Timeline{}, Tick: func() {}, Begin: func(f nemesis.Fault) (string, func()) {
		did = append(did, "+"+f.Kind)
		return "x", func() { did = append(did, "-"+f.Kind) }
	}}
	ms := time.Millisecond
	n.Rage([]nemesis.Fault{
		{Trait: nemesis.Trait{Kind: "long", Place: "a"}, At: 0, Lasts: 60 * ms},
		{Trait: nemesis.Trait{Kind: "short", Place: "b"}, At: 10 * ms},
		{Trait: nemesis.Trait{Kind: "waits", Place: "a"}, At: 20 * ms},
	})
	if want := []string{"+long", "+short", "-short", "-long", "+waits", "-waits"}; !slices.Equal(did, want) {
		t.Errorf("it did %v, want %v", did, want)
	}
	if len(n.Strikes) != 3 || len(n.Kinds()) != 3 {
		t.Errorf("strikes: %+v", n.Strikes)
	}
}
