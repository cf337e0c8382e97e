package main

import (
	"testing"
	"time"

	"baton/internal/heartbeat"
)

const ms = heartbeat.Instant(time.Millisecond)

// told records the reports of a node's witness: one report every 5 ms between two times, and then the end, if the spell ends.
func told(r *record, node string, from, to heartbeat.Instant, end string) {
	word := wordStart
	for at := from; at <= to; at += 5 * ms {
		r.note(node, word, at)
		word = wordAct
	}
	if end != "" {
		r.note(node, end, to+2*ms)
	}
}

func TestOverlapIsTheTimeInWhichTwoAct(t *testing.T) {
	r := newRecord()
	told(r, "a", 0, 100*ms, wordEnd) // until 102
	told(r, "b", 90*ms, 200*ms, wordEnd)
	told(r, "c", 202*ms, 300*ms, "") // begins as b ends
	if got, want := overlap(r.until(400*ms)), 12*time.Millisecond; got != want {
		t.Errorf("overlap is %v, want %v", got, want)
	}
}

func TestALeaderThatWakesTooLateOverlapsFromTheThawOn(t *testing.T) {
	const thawed, end = 4000 * ms, 6000 * ms
	for _, c := range []struct {
		name string
		late func(r *record) // what the old leader tells after the thaw
		want clash
	}{
		{"it asks before it acts", func(r *record) { r.note("old", wordQuit, thawed+ms) }, clash{}},
		{"it is told before it acts", func(r *record) { r.note("old", wordEnd, thawed+ms) }, clash{overlap: time.Millisecond}},
		{"it acts once", func(r *record) {
			r.note("old", wordAct, thawed+ms)
			r.note("old", wordEnd, thawed+3*ms)
		}, clash{overlap: 3 * time.Millisecond, acts: 1}},
		{"it acts on", func(r *record) {
			for at := thawed; at < end; at += 5 * ms {
				r.note("old", wordAct, at)
			}
		}, clash{overlap: 2000 * time.Millisecond, acts: 400, never: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecord()
			told(r, "old", 0, 100*ms, "") // and then it is stopped
			told(r, "new", 2000*ms, end, "")
			r.thaw("old", thawed)
			c.late(r)
			if got := clashOf(r.until(end), "old", thawed, end); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSettledIsWhenTheLastOfTheOthersStopped(t *testing.T) {
	const up, end = 1000 * ms, 5000 * ms
	for _, c := range []struct {
		name string
		tell func(r *record)
		want heartbeat.Instant
		ok   bool
	}{
		{"one leads on", func(r *record) { told(r, "a", 0, end, "") }, up, true},
		{"another follows", func(r *record) {
			told(r, "a", 0, 500*ms, wordEnd)
			told(r, "b", 1300*ms, end, "")
		}, 1300 * ms, true},
		{"two for a while", func(r *record) {
			told(r, "a", 0, 1600*ms, wordEnd)
			told(r, "b", 1300*ms, end, "")
		}, 1602 * ms, true},
		{"two to the end", func(r *record) {
			told(r, "a", 0, end, "")
			told(r, "b", 1300*ms, end-3*ms, "")
		}, 0, false},
		{"nobody", func(r *record) { told(r, "a", 0, 1600*ms, wordEnd) }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecord()
			c.tell(r)
			got, ok := settled(r.until(end), up, end)
			if ok != c.ok || ok && got != c.want {
				t.Errorf("got %v, %v; want %v, %v", time.Duration(got), ok, time.Duration(c.want), c.ok)
			}
		})
	}
}

func TestQuantileIsTheNearestRank(t *testing.T) {
	var all []time.Duration
	for i := range 20 {
		all = append(all, time.Duration(20-i))
	}
	for percent, want := range map[int]time.Duration{50: 10, 95: 19, 100: 20} {
		if got := quantile(all, percent); got != want {
			t.Errorf("p%d is %d, want %d", percent, got, want)
		}
	}
}
