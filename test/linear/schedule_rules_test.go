package linear

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeedReplaysTheSchedule(t *testing.T) {
	traits := slices.Concat(common, (&single{}).traits())
	one, two := schedule(7, 50, traits), schedule(7, 50, traits)
	if diff := cmp.Diff(one, two, cmp.AllowUnexported(fault{}, trait{})); diff != "" {
		t.Errorf("the same seed draws another schedule:\n%s", diff)
	}
	if diff := cmp.Diff(one, schedule(8, 50, traits), cmp.AllowUnexported(fault{}, trait{})); diff == "" {
		t.Error("two seeds draw the same schedule")
	}
}

func TestScheduleBreaksAPlaceOnceAtATime(t *testing.T) {
	busy := map[place]time.Duration{}
	apart := 0
	healed := time.Duration(0)
	for _, f := range schedule(7, 500, slices.Concat(common, (&single{}).traits())) {
		if f.at < busy[f.place] {
			t.Errorf("%s at %v, where the fault before lasts until %v", f.kind, f.at, busy[f.place])
		}
		if f.at >= healed+quiet {
			apart++
		}
		busy[f.place] = f.at + f.lasts
		healed = max(healed, f.at+f.lasts)
	}
	if apart < 50 {
		t.Errorf("only %d of 500 faults leave time to see that the election recovers", apart)
	}
}
