package chaos

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestScheduleFollowsFromItsSeed(t *testing.T) {
	if !reflect.DeepEqual(draw(traits, 7, time.Minute), draw(traits, 7, time.Minute)) {
		t.Error("the same seed gives another schedule")
	}
	if reflect.DeepEqual(draw(traits, 7, time.Minute), draw(traits, 8, time.Minute)) {
		t.Error("two seeds give the same schedule")
	}
}

func TestScheduleIsDenseAndPausesAndEnds(t *testing.T) {
	for _, c := range []struct {
		total  time.Duration
		faults int
		pauses int
	}{{2 * time.Minute, 56, 8}, {15 * time.Second, 7, 0}} {
		seen := map[kind]int{}
		for seed := range uint64(500) {
			of := slices.Concat([][]trait{nil, poolerTraits, clusterTraits}[seed%3], traits)
			faults := draw(of, seed, c.total)
			if len(faults) < c.faults {
				t.Fatalf("seed %d: %d faults in %v", seed, len(faults), c.total)
			}
			healed, pauses := time.Duration(0), 0
			busy := map[place]time.Duration{}
			for _, f := range faults {
				seen[f.kind]++
				if f.at < busy[f.place] {
					t.Fatalf("seed %d: %v at %v, where something is broken until %v", seed, f, f.at, busy[f.place])
				}
				if f.at-healed >= quiet {
					pauses++
				}
				busy[f.place], healed = f.at+f.lasts, max(healed, f.at+f.lasts)
			}
			if healed > c.total || pauses < c.pauses {
				t.Fatalf("seed %d: the last fault is over at %v of %v, with %d pauses", seed, healed, c.total, pauses)
			}
		}
		for _, tr := range slices.Concat(clusterTraits, poolerTraits, traits) {
			if seen[tr.kind] == 0 {
				t.Errorf("in %v: never %s", c.total, tr.kind)
			}
		}
	}
}
