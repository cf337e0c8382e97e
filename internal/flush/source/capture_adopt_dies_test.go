package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
)

// dies runs the job until its process dies, at the n-th time that it passes a step.
func (j *captureJob) dies(step flushtest.Step, n int) {
	j.t.Helper()
	passed := 0
	j.watch(func(s string) error {
		if s == string(step) {
			if passed++; passed == n {
				return errDies
			}
		}
		return nil
	})
	if err := j.until(func() bool { return false }); !errors.Is(err, errDies) {
		j.t.Fatal(err)
	}
	j.watch(nil)
	j.die()
}

// theirs inserts n rows that the job never wrote.
func (j *captureJob) theirs(n int) {
	for i := range n {
		j.table.put(fmt.Sprint("extra", i), "theirs")
	}
}

// A first pass that died had recorded a position. The next process took the job for one of an earlier version, and its rows for the job's.
func TestAFirstPassThatDiesAsksStill(t *testing.T) {
	for _, otherwise := range []bool{false, true} {
		g := newRig(t)
		j := newCaptureJob(t, g.redis)
		j.options.MaxPct = 100
		waits := asking(j)
		j.table.put("differs", "theirs")
		j.theirs(2)
		g.Do("SET", "s:differs", "ours")
		for i := range 30 {
			g.Do("SET", fmt.Sprint("s:", i), "ours")
		}
		j.dies(flushtest.StepBeforeApply, 4) // the position was moved
		if otherwise {
			j.columns["v"] = mapping.ColumnSpec{From: "$value", Empty: "null"}
		}
		j.must(g.Client)
		if rows := j.table.texts(); rows["differs"] != "theirs" || rows["extra0"] != "theirs" || rows["29"] != "ours" ||
			*waits != (flush.Unaccepted{Changes: 1, Deletes: 2}) {
			t.Errorf("%+v waits, rows %v", *waits, rows)
		}
		j.accept()
		j.mustEqual(g.Client)
	}
}

// If the table was empty, the rows that a first pass wrote before it died are the job's.
func TestAFirstPassIntoAnEmptyTableThatDiesAsksNothing(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	waits := asking(j)
	for i := range 30 {
		g.Do("SET", fmt.Sprint("s:", i), "first")
	}
	j.dies(flushtest.StepAllRead, 1)
	if j.table.Count("rows") == 0 {
		t.Fatal("it has written nothing")
	}
	for i := range 30 {
		g.Do("SET", fmt.Sprint("s:", i), "second")
	}
	g.Do("DEL", "s:1")
	g.Do("CONFIG", "SET", "repl-backlog-size", 16384)
	g.Do("SET", "filler", strings.Repeat("x", 1<<20)) // no node can continue in the stream
	j.mustEqual(g.Client)
	if told := j.told(); *waits != (flush.Unaccepted{}) || strings.Contains(told, "job accept") {
		t.Errorf("%+v waits, told %q", *waits, told)
	}
}

// If a process dies in an accepted pass, the next process makes the pass again with the same bounds.
func TestAnAcceptedPassThatDiesIsMadeAgain(t *testing.T) {
	for _, step := range []flushtest.Step{flushtest.StepConverted, flushtest.StepRechecked, flushtest.StepSwept, flushtest.StepDiscarded} {
		t.Run(string(step), func(t *testing.T) {
			g := newRig(t)
			j := newCaptureJob(t, g.redis)
			j.options.MaxPct = 100
			waits := asking(j)
			j.table.put("differs", "theirs")
			j.theirs(2)
			g.Do("SET", "s:differs", "ours")
			j.must(g.Client)
			j.accept()
			j.dies(step, 1)
			j.theirs(5) // three more than were accepted
			j.must(g.Client)
			if j.table.Count("rows") < 5 || waits.Deletes < 3 {
				t.Errorf("%+v waits, rows %v", *waits, j.table.texts())
			}
			j.accept()
			j.mustEqual(g.Client)
		})
	}
}

// Changes of the application during a pass are written after it, and need no acceptance.
func TestAKeyThatChangesDuringThePassIsNotAskedAbout(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	waits := asking(j)
	j.table.put("changes", "theirs")
	g.Do("SET", "s:changes", "ours")
	other := g.redis.Client(t) // of the observer
	changed := false
	j.watch(func(s string) error {
		if s == string(flushtest.StepPageRead) && !changed {
			changed = true
			_, err := other.Conn.Do("SET", "s:changes", "again")
			return err
		}
		return nil
	})
	j.mustEqual(g.Client)
	if told := j.told(); *waits != (flush.Unaccepted{}) || strings.Contains(told, "job accept") {
		t.Errorf("%+v waits, told %q", *waits, told)
	}
}

// An operator may accept while a pass counts again. The pass must not overwrite the acceptance.
func TestWhatIsAcceptedDuringAPassStaysAccepted(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	waits := asking(j)
	j.theirs(2)
	g.Do("SET", "s:1", "ours")
	j.must(g.Client)
	digest, err := j.pipeline.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	record := flush.AdoptionName(digest)
	accepted, err := flush.Accept(j.table.Place("capture", record), "ann", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	j.die()
	j.table.SetPlace("capture", "s:<id>", "") // a pass is owed
	j.theirs(3)
	did := false
	j.watch(func(s string) error {
		if s == string(flushtest.StepPageRead) && !did {
			did = true
			j.table.SetPlace("capture", record, accepted)
		}
		return nil
	})
	if err := j.until(func() bool { return did && j.table.Place("capture", record) != accepted }); err != nil {
		t.Fatal(err)
	}
	j.watch(nil)
	text := j.table.Place("capture", record)
	if text != "waits 0 3" || *waits != (flush.Unaccepted{Deletes: 3}) || j.table.Count("rows") < 5 {
		t.Errorf("recorded %q, %+v waits, rows %v", text, *waits, j.table.texts())
	}
	if told := j.told(); strings.Count(told, "all keys are read") < 2 {
		t.Errorf("the acceptance was not found: %q", told)
	}
	j.accept()
	j.mustEqual(g.Client)
}
