package slots

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// at is a moment of these tests, in seconds.
func at(s float64) time.Time { return time.UnixMilli(1_000_000_000_000 + int64(s*1000)) }

// ran is a run of the sound evidence: it begins 10 ms after its slot and lasts 100 ms.
func ran(job string, slot float64, attempt int, epoch int64) run {
	began := time.Duration(slot*1e9) + 10*time.Millisecond
	return run{
		job: job, id: fmt.Sprintf("%s-%v-%d", job, slot, attempt), node: "n1", trigger: "schedule", slot: at(slot), attempt: attempt, epoch: epoch,
		began: began, alive: began + 100*time.Millisecond, at: at(slot + 0.01), ended: true,
	}
}

func tell(r run, state string) entry {
	return entry{job: r.job, state: state, slot: r.slot, id: r.id, attempt: r.attempt}
}

func notRun(job, reason string, first, last float64, count int) entry {
	return entry{job: job, reason: reason, first: at(first), slot: at(last), count: count}
}

// sound is evidence without fault: a job of every second, led in epoch 5, by nobody from
// 4.5 on and in epoch 6 from 8.2 on.
func sound(change func(*spec)) *evidence {
	s := spec{name: "j", every: time.Second, catchUp: "latest", overlap: "forbid", rerun: true, lasts: 100 * time.Millisecond}
	if change != nil {
		change(&s)
	}
	e := &evidence{jobs: []spec{s}, from: at(0), until: at(13), patience: time.Second, broken: []span{{at(4.4), at(4.5)}}}
	e.terms = []term{{node: "n1", epoch: 5, won: at(0.1)}, {node: "n2", epoch: 6, won: at(8.2)}}
	for slot := 1.0; slot <= 13; slot++ {
		r := ran("j", slot, 1, 5)
		switch {
		case slot > 4 && slot < 8:
			continue
		case slot == 8:
			r.trigger, r.began, r.alive, r.at = "catch_up", r.began+time.Second/2, r.alive+time.Second/2, at(8.51)
			fallthrough
		case slot > 8:
			r.epoch = 6
		}
		e.runs = append(e.runs, r)
		e.entries = append(e.entries, tell(r, "succeeded"))
	}
	e.entries = append(e.entries, notRun("j", "unknown", 0.1, 0.1, 0), notRun("j", "no_leader", 5, 7, 3))
	return e
}

// run finds a slot's first run.
func (e *evidence) run(slot float64) *run {
	for i := range e.runs {
		if e.runs[i].slot.Equal(at(slot)) {
			return &e.runs[i]
		}
	}
	panic("no such slot")
}

// drop takes a slot out of the runs and of the history.
func (e *evidence) drop(slots ...float64) {
	for _, slot := range slots {
		e.runs = slices.DeleteFunc(e.runs, func(r run) bool { return r.slot.Equal(at(slot)) })
		e.entries = slices.DeleteFunc(e.entries, func(h entry) bool { return h.slot.Equal(at(slot)) })
	}
}

// again runs a slot once more, a while after it ran first.
func (e *evidence) again(slot float64, attempt int, after time.Duration) {
	r := *e.run(slot)
	r.id, r.attempt, r.began, r.alive, r.at = r.id+"-again", attempt, r.began+after, r.alive+after, r.at.Add(after)
	e.runs = append(e.runs, r)
	e.entries = append(e.entries, tell(r, "succeeded"))
}

func TestJudgeFindsWhatMustNotBe(t *testing.T) {
	skip := func(s *spec) { s.rerun = false }
	for _, c := range []struct {
		name   string
		spec   func(*spec)
		plant  func(*evidence)
		wanted string // in the one finding; "" for none
	}{
		{"all is well", nil, func(*evidence) {}, ""},
		{"a lost run that is rerun", nil, func(e *evidence) {
			e.again(4, 2, 500*time.Millisecond)
			e.run(4).ended, e.entries[3].state = false, "lost"
		}, ""},
		{"the same attempt twice", nil, func(e *evidence) { e.again(3, 1, 200*time.Millisecond) }, "slot 01:46:43.000 was started twice"},
		{"a second attempt of a job that has one", skip, func(e *evidence) { e.again(3, 2, 200*time.Millisecond) }, "started more than 1 times"},
		{"a second run under the first attempt's number", skip, func(e *evidence) { e.again(3, 1, 200*time.Millisecond) }, "started"},
		{"a slot that is none", nil, func(e *evidence) {
			e.runs = append(e.runs, ran("j", 3.5, 1, 5))
			e.entries = append(e.entries, tell(e.runs[len(e.runs)-1], "succeeded"))
		}, "is not of its schedule"},
		{"a slot before its time", nil, func(e *evidence) { e.run(3).at = at(2.99) }, "before its time"},
		{"a slot that nobody speaks of", nil, func(e *evidence) { e.drop(11) }, "slot 01:46:51.000 was not started, and the history does not say why"},
		{"one that was claimed and came to nothing", nil, func(e *evidence) { h := tell(*e.run(11), "lost"); e.drop(11); e.entries = append(e.entries, h) }, ""},
		{"an outage that the history leaves out", nil, func(e *evidence) { e.entries = e.entries[:len(e.entries)-1] }, "does not say why"},
		{"an outage that it tells too short", nil, func(e *evidence) {
			e.entries[len(e.entries)-1] = notRun("j", "no_leader", 5, 6, 2)
		}, "slot 01:46:47.000 was not started"},
		{"a wrong count", nil, func(e *evidence) { e.entries[len(e.entries)-1].count = 2 }, "says that 2 slots were missed"},
		{"a slot that was missed twice", nil, func(e *evidence) { e.entries = append(e.entries, notRun("j", "late", 6, 6, 1)) }, "is missed twice"},
		{"one that was both run and missed", nil, func(e *evidence) { e.entries = append(e.entries, notRun("j", "overlap", 2, 2, 1)) }, "was started, and the history says that it was missed"},
		{"one that was lost before it began, and missed", nil, func(e *evidence) {
			h := tell(*e.run(11), "lost")
			e.drop(11)
			e.entries = append(e.entries, h, notRun("j", "ledger", 11, 11, 1))
		}, "slot 01:46:51.000 is told twice"},
		{"the latest slot is forgotten", nil, func(e *evidence) {
			e.drop(8, 9)
			e.entries[len(e.entries)-1] = notRun("j", "no_leader", 5, 9, 5)
		}, "and slot 01:46:48.000, the latest one, was not caught up on"},
		{"one on a machine that starts nothing for a while", nil, func(e *evidence) {
			e.drop(8, 9)
			e.entries[len(e.entries)-1] = notRun("j", "no_leader", 5, 9, 5)
			e.probes = []probe{{at(8), 5 * time.Second}}
		}, ""},
		{"one on a machine that started nothing before", nil, func(e *evidence) {
			e.drop(8, 9)
			e.entries[len(e.entries)-1] = notRun("j", "no_leader", 5, 9, 5)
			e.probes = []probe{{at(3), 5 * time.Second}}
		}, "and slot 01:46:48.000, the latest one, was not caught up on"},
		{"a job that catches nothing up", func(s *spec) { s.catchUp = "none" }, func(e *evidence) {
			e.drop(8, 9)
			e.entries[len(e.entries)-1] = notRun("j", "no_leader", 5, 9, 5)
		}, ""},
		{"one in a term that something disturbed", nil, func(e *evidence) {
			e.drop(8, 9)
			e.entries[len(e.entries)-1] = notRun("j", "no_leader", 5, 9, 5)
			e.broken = append(e.broken, span{at(8.9), at(9)})
		}, ""},
		{"one that was claimed and lost before it began", skip, func(e *evidence) {
			h := tell(*e.run(8), "lost")
			e.drop(8, 9)
			e.entries = append(e.entries, h, notRun("j", "overlap", 9, 9, 1))
		}, ""},
		{"one that was to be rerun", nil, func(e *evidence) {
			h := tell(*e.run(8), "lost")
			e.drop(8, 9)
			e.entries = append(e.entries, h, notRun("j", "overlap", 9, 9, 1))
		}, "was not caught up on"},
		{"one in a term that soon stopped by itself", nil, func(e *evidence) {
			e.drop(8, 9)
			e.entries[len(e.entries)-1] = notRun("j", "no_leader", 5, 9, 5)
			e.terms[1].stopped = at(9)
		}, ""},
		{"the latest slot does not run to its end", nil, func(e *evidence) {
			e.run(8).ended, e.run(9).ended = false, false
			e.entries[4].state, e.entries[5].state = "lost", "lost"
		}, "did not run to its end"},
		{"one that may be lost", skip, func(e *evidence) { e.run(8).ended = false; e.entries[4].state = "lost" }, ""},
		{"all slots, and some are missed", func(s *spec) { s.catchUp = "all" }, func(*evidence) {}, "it catches up on all slots, and 3 were missed"},
		{"a process that outlives its term", nil, func(e *evidence) { e.run(4).alive = 8600 * time.Millisecond }, "lived for"},
		{"a deposed leader that starts something", nil, func(e *evidence) { e.run(10).epoch = 5 }, "lived for"},
		{"two runs at a time", nil, func(e *evidence) { e.run(2).alive = 3100 * time.Millisecond }, "two runs at a time"},
		{"two runs at a time that may be", func(s *spec) { s.overlap = "allow" }, func(e *evidence) { e.run(2).alive = 3100 * time.Millisecond }, ""},
		{"a success that was none", nil, func(e *evidence) { e.run(2).code = 1 }, "and it did not"},
		{"a success that nobody saw", nil, func(e *evidence) { e.runs = e.runs[1:] }, "it never began"},
		{"a run that the history does not know", nil, func(e *evidence) { e.entries = e.entries[1:] }, "the history does not know it"},
		{"a run of another slot", nil, func(e *evidence) { e.entries[0].slot = at(1.5) }, "has slot 01:46:41.500"},
	} {
		e := sound(c.spec)
		c.plant(e)
		wrong := judge(*e)
		switch {
		case c.wanted == "" && len(wrong) > 0:
			t.Errorf("%s: %q", c.name, wrong)
		case c.wanted != "" && !slices.ContainsFunc(wrong, func(w string) bool { return strings.Contains(w, c.wanted) }):
			t.Errorf("%s: %q, which says nothing of %q", c.name, wrong, c.wanted)
		}
	}
}

// The locks are judged each by itself: their epochs tell nothing of each other.
func TestLocksAreJudgedEachByItself(t *testing.T) {
	e := sound(nil)
	e.jobs = append(e.jobs, spec{name: "k", lock: "east", every: 20 * time.Second})
	r := ran("k", 0, 1, 3)
	r.lock, r.alive = "east", 13*time.Second
	e.runs = append(e.runs, r)
	e.entries = append(e.entries, tell(r, "succeeded"))
	if wrong := judge(*e); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
}

func TestARunAfterALossMayTakeTheNextSlot(t *testing.T) {
	rerun := ran("j", 8, 2, 6)
	rerun.trigger, rerun.at = "retry", at(8.95) // for 100 ms
	for slot, want := range map[float64]bool{8: false, 9: true, 10: false} {
		if got := busy([]run{ran("j", 7, 1, 6), rerun}, at(slot), 200*time.Millisecond); got != want {
			t.Errorf("slot %v: %v", slot, got)
		}
	}
	rerun.trigger = "schedule"
	if busy([]run{rerun}, at(9), time.Second) {
		t.Error("a scheduled run may take the next slot")
	}
}

// A run of the slot before may last until the slot comes. For any other reason the latest slot must not be missed.
func TestOnlyTheRunBeforeMayTakeTheLatestSlot(t *testing.T) {
	for _, c := range []struct {
		reason string
		gone   []float64
		wrong  int
	}{{"overlap", []float64{13}, 0}, {"late", []float64{13}, 1}, {"overlap", []float64{12, 13}, 1}} {
		e := sound(nil)
		e.drop(c.gone...)
		e.entries = append(e.entries, notRun("j", c.reason, 13, 13, 1))
		if wrong := within(*e); len(wrong) != c.wrong {
			t.Errorf("%s, without %v: %q, want %d findings", c.reason, c.gone, wrong, c.wrong)
		}
	}
}

// A run that took the slot after its own excuses one slot, and not a chain of them.
func TestOneRunExcusesOneSlotThatItOverlapped(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	overlap := func(n int64) entry { return entry{job: "all", reason: "overlap", first: at(n), slot: at(n), count: 1} }
	e := evidence{
		jobs: []spec{{name: "all", every: time.Second, catchUp: "all"}}, from: at(10), until: at(13),
		runs: []run{{job: "all", slot: at(11)}}, entries: []entry{overlap(12), overlap(13)},
	}
	if wrong := within(e); len(wrong) != 1 || !strings.Contains(wrong[0], slotTime(at(13))) {
		t.Errorf("%q, want only the slot %s", wrong, slotTime(at(13)))
	}
}
