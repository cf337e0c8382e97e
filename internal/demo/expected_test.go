package demo

import (
	"testing"
	"time"
)

// While the demo runs, its view must neither show damage that does not exist, nor miss damage that exists.
func TestDamageIsSeenWhileTheTrafficGoesOn(t *testing.T) {
	late := 2 * settleAfter
	for _, c := range []struct {
		name   string
		served time.Duration
		counts map[string]int64
		rows   map[int64]user
		want   damage
	}{
		{"all is there", late, map[string]int64{"1": 2, "2": 1}, map[int64]user{7: {version: 3}}, damage{}},
		{"what is asked for may be there", late, map[string]int64{"1": 3, "2": 1}, map[int64]user{7: {version: 3}, 8: {version: 4}}, damage{}},
		{"it may come yet", settleAfter / 2, nil, nil, damage{}},
		{"a counter and a row are missing", late, map[string]int64{"1": 1, "2": 1}, nil, damage{lost: 2}},
		{"stale row", late, map[string]int64{"1": 2, "2": 1}, map[int64]user{7: {version: 1}}, damage{lost: 1}},
		{"one too many, at once", 0, map[string]int64{"1": 4}, nil, damage{twice: 1}},
		{"never written", 0, map[string]int64{"9": 2}, map[int64]user{99: {version: 1}}, damage{twice: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newExpected()
			e.add(batch{counts: []string{"1", "1", "2"}, changes: []change{{7, user{version: 3}}}}, time.Now())
			e.remember(0)
			e.ask(batch{counts: []string{"1"}, changes: []change{{8, user{version: 4}}}})
			seen := tally{}
			got := e.damaged(c.served, c.counts, c.rows, seen)
			if sum := seen.sum(); got.lost+sum.lost != c.want.lost || got.twice+sum.twice != c.want.twice {
				t.Errorf("rows %+v, counters %+v, want %+v", got, sum, c.want)
			}
		})
	}
}

// New views of an article hide missing views, so an article is compared only while it gets no views.
func TestCounterIsComparedWhenItRests(t *testing.T) {
	e, seen := newExpected(), tally{}
	e.add(batch{counts: []string{"1", "1"}}, time.Now())
	e.remember(0)
	e.add(batch{counts: []string{"1"}}, time.Now())
	e.remember(settleAfter)
	e.damaged(settleAfter, map[string]int64{"1": 1}, nil, seen)
	if seen.sum() != (damage{}) {
		t.Errorf("it had views meanwhile: %+v", seen)
	}
	e.remember(2 * settleAfter)
	e.damaged(2*settleAfter, map[string]int64{"1": 1}, nil, seen)
	if seen.sum() != (damage{lost: 2}) {
		t.Errorf("%+v", seen)
	}
}

func TestNaiveDamageIsWhatIsNeitherInRedisNorInTheTable(t *testing.T) {
	e, seen := newExpected(), tally{}
	e.add(batch{counts: []string{"1", "1", "1", "2"}}, time.Now())
	e.damagedNaive(e.counted(), map[string]int64{"1": 1}, map[string]int64{"1": 1, "2": 3}, seen)
	if seen.sum() != (damage{lost: 1, twice: 2}) {
		t.Errorf("%+v", seen)
	}
}
