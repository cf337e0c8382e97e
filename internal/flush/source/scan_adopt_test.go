package source

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// adopting returns a scan of sessions that asks before a pass changes existing rows.
func adopting(store *redisconn.Store) *scanJob {
	j := sessions(store)
	j.adopt = flush.Adopt{Differ: tableDiffer{j.table}}
	return j
}

// passes makes one pass, and returns its notes.
func (j *scanJob) passes(t *testing.T) string {
	t.Helper()
	j.notes = nil
	if err := j.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Join(j.notes, "\n")
}

// dies makes a pass whose process dies at the n-th time that it passes a step.
func (j *scanJob) dies(t *testing.T, step flushtest.Step, n int) {
	t.Helper()
	passed := 0
	j.observe = func(s string) error {
		if s == string(step) {
			if passed++; passed == n {
				return errDies
			}
		}
		return nil
	}
	if err := j.run(t.Context()); !errors.Is(err, errDies) {
		t.Fatalf("%s, %d: %v", step, n, err)
	}
	j.observe = nil
}

// record returns the name of the acceptance of the present mapping.
func (j *scanJob) record(t *testing.T) string {
	t.Helper()
	p, err := j.pipeline()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := p.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return flush.AdoptionName(digest)
}

func (j *scanJob) accept(t *testing.T) {
	t.Helper()
	text, err := flush.Accept(j.table.Place("scan", j.record(t)), "ann", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	j.table.SetPlace("scan", j.record(t), text)
}

// byAnotherPass inserts a row that a pass of another job, or with another mapping, has written.
func (j *scanJob) byAnotherPass(id string) {
	j.table.Put("rows", map[string]row.Value{"id": row.String(row.KindText, id), "v": row.String(row.KindText, "theirs"),
		"gen": row.Integer(7)})
}

func (j *scanJob) has(t *testing.T, want string) {
	t.Helper()
	if got := fmt.Sprint(j.table.texts()); got != "map["+want+"]" {
		t.Errorf("the rows are %s, want %s", got, want)
	}
}

// A scan once overwrote existing rows of a table without asking.
func TestAScanAsksBeforeItTouchesRowsThatWereThere(t *testing.T) {
	g := newRig(t)
	j := adopting(g.store)
	for _, id := range []string{"equal", "differs", "mine"} {
		j.table.put(id, map[bool]string{true: "1", false: "theirs"}[id == "equal"])
	}
	j.byAnotherPass("extra")
	for id, v := range map[string]string{"equal": "1", "differs": "ours", "new": "ours"} {
		g.Do("SET", "session:"+id, v)
	}
	told := j.passes(t)
	j.has(t, "differs:theirs equal:1 extra:theirs mine:theirs new:ours")
	if j.waits != (flush.Unaccepted{Changes: 1, Deletes: 1}) || !strings.Contains(told, "would change 1 and delete 1 of them") ||
		!strings.Contains(told, "changes by the application are written") || !strings.Contains(told, "baton job accept scan") {
		t.Errorf("%+v waits, told %q", j.waits, told)
	}
	// From then on changes of the application are written: they are in rows that a pass has written, or found equal.
	g.Do("SET", "session:new", "again")
	g.Do("SET", "session:equal", "2")
	j.passes(t)
	j.has(t, "differs:theirs equal:2 extra:theirs mine:theirs new:again")
	g.Do("DEL", "session:new")
	j.waits = flush.Unaccepted{}
	j.passes(t)
	j.has(t, "differs:theirs equal:2 extra:theirs mine:theirs")
	if j.waits != (flush.Unaccepted{Changes: 1, Deletes: 1}) {
		t.Errorf("%+v waits", j.waits)
	}
	j.accept(t)
	j.must(t)
	j.has(t, "differs:ours equal:2 mine:theirs") // no scan ever deletes a row that no scan has written
	if text := j.table.Place("scan", j.record(t)); text != "adopted" || j.waits != (flush.Unaccepted{}) {
		t.Errorf("recorded %q, %+v waits", text, j.waits)
	}
	g.Do("DEL", "session:differs")
	j.must(t)
	j.has(t, "equal:2 mine:theirs")
}

// Without a generation a scan cannot know its own rows.
func TestAScanWithoutAGenerationOnlyInsertsUntilItIsAccepted(t *testing.T) {
	g := newRig(t)
	j := adopting(g.store)
	j.without = true
	j.table.put("differs", "theirs")
	g.Do("MSET", "session:differs", "ours", "session:new", "ours")
	if told := j.passes(t); !strings.Contains(told, "it cannot tell which rows it wrote") {
		t.Errorf("told %q", told)
	}
	g.Do("MSET", "session:new", "again", "session:newer", "ours")
	j.passes(t)
	j.has(t, "differs:theirs new:ours newer:ours")
	if j.waits != (flush.Unaccepted{Changes: 2}) {
		t.Errorf("%+v waits", j.waits)
	}
	j.accept(t)
	j.must(t)
	j.has(t, "differs:ours new:again newer:ours")
}

func TestAScanDoesNoMoreThanWasAccepted(t *testing.T) {
	g := newRig(t)
	j := adopting(g.store)
	j.table.put("1", "theirs")
	j.byAnotherPass("extra1")
	for id := range 4 {
		g.Do("SET", fmt.Sprint("session:", id), "ours")
	}
	j.passes(t)
	j.accept(t)
	j.table.put("2", "theirs")
	j.byAnotherPass("extra2")
	j.byAnotherPass("3") // the key exists: the row differs, and has not vanished
	j.passes(t)
	if rows := j.table.texts(); rows["extra1"] != "theirs" || rows["extra2"] != "theirs" ||
		j.waits != (flush.Unaccepted{Changes: 2, Deletes: 2}) {
		t.Errorf("%+v waits, rows %v", j.waits, rows)
	}
	j.accept(t)
	j.must(t)
	j.has(t, "0:ours 1:ours 2:ours 3:ours")
}

func TestAcceptanceOfAScanDoesNotLiftMaxPct(t *testing.T) {
	g := newRig(t)
	j := adopting(g.store)
	j.maxPct = 10
	g.Do("SET", "session:1", "ours")
	for i := range 9 {
		j.byAnotherPass(fmt.Sprint("extra", i))
	}
	j.passes(t)
	j.accept(t)
	if err := j.run(t.Context()); !errors.Is(err, flush.ErrTooManyVanished) || j.table.Count("rows") != 10 {
		t.Errorf("%v, %d rows", err, j.table.Count("rows"))
	}
}

func TestAModeDecidesWhatAScanMayDo(t *testing.T) {
	for mode, want := range map[flush.AdoptMode]string{
		flush.AdoptInsertOnly: "differs:theirs extra:theirs new:again", flush.AdoptOverwrite: "differs:ours extra:theirs new:again",
		flush.AdoptDelete: "differs:ours new:again",
	} {
		t.Run(string(mode), func(t *testing.T) {
			g := newRig(t)
			j := adopting(g.store)
			j.adopt.Mode = mode
			j.table.put("differs", "theirs")
			j.byAnotherPass("extra")
			g.Do("MSET", "session:differs", "ours", "session:new", "ours")
			j.passes(t)
			g.Do("SET", "session:new", "again")
			j.passes(t)
			j.has(t, want)
			if j.waits != (flush.Unaccepted{}) {
				t.Errorf("%+v waits", j.waits)
			}
		})
	}
}

// A job that ran before is known by a record, which the migration of the tables made for each fence. A fence alone is no proof: a new job
// has one before its first page.
func TestAScanThatRanBeforeAsksNothing(t *testing.T) {
	for _, before := range []bool{false, true} {
		g := newRig(t)
		j := adopting(g.store)
		if before {
			j.table.SetPlace("scan", flush.RanBefore, "yes")
		}
		j.table.put("differs", "theirs")
		j.byAnotherPass("extra")
		g.Do("SET", "session:differs", "ours")
		j.dies(t, flushtest.StepTakenOver, 1) // the fence exists now
		j.passes(t)
		if waits := j.waits != (flush.Unaccepted{}); waits == before {
			t.Fatalf("ran before %v: %+v waits", before, j.waits)
		}
		if !before {
			continue
		}
		j.has(t, "differs:ours")
		j.columns["v"] = mapping.ColumnSpec{From: "$key"} // another mapping needs an acceptance, although the job ran before
		j.passes(t)
		if j.waits != (flush.Unaccepted{Changes: 1}) {
			t.Errorf("another mapping: %+v waits", j.waits)
		}
		j.columns["v"] = mapping.ColumnSpec{From: "$value"}
		j.must(t)
		if j.waits != (flush.Unaccepted{}) {
			t.Errorf("the mapping that it had: %+v waits", j.waits)
		}
	}
}

// The process of a first pass dies at each of its steps. The next process must ask as if it were the first.
func TestAFirstScanThatDiesAsksStill(t *testing.T) {
	for _, step := range []flushtest.Step{
		flushtest.StepTakenOver, flushtest.StepPositionRead, flushtest.StepStaged, flushtest.StepPageRead, flushtest.StepBeforeApply,
		flushtest.StepApplied, flushtest.StepBeforeSweep, flushtest.StepRechecked, flushtest.StepBeforeDiscard, flushtest.StepDiscarded,
	} {
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprint(step, n), func(t *testing.T) {
				g := newRig(t)
				j := adopting(g.store)
				j.options.PageRows = 10
				j.table.put("differs", "theirs")
				j.byAnotherPass("extra")
				g.Do("SET", "session:differs", "ours")
				for i := range 30 {
					g.Do("SET", "session:"+strconv.Itoa(i), "ours")
				}
				if n > 1 && step != flushtest.StepBeforeApply && step != flushtest.StepApplied && step != flushtest.StepPageRead {
					t.Skip("it comes by once")
				}
				j.dies(t, step, n)
				g.Do("SET", "session:0", "again") // its row may be the job's by now
				j.passes(t)
				rows := j.table.texts()
				if rows["differs"] != "theirs" || rows["extra"] != "theirs" || rows["0"] != "again" || rows["29"] != "ours" ||
					j.waits != (flush.Unaccepted{Changes: 1, Deletes: 1}) {
					t.Errorf("%+v waits, rows %v", j.waits, rows)
				}
				j.accept(t)
				j.must(t)
				if rows := j.table.texts(); rows["differs"] != "ours" || len(rows) != 31 {
					t.Errorf("accepted: %v", rows)
				}
			})
		}
	}
}

// A first pass into an empty table dies. The rows that it has written are the job's. The same holds for an accepted pass that dies.
func TestAScanThatDiesGoesOnWithTheSameRights(t *testing.T) {
	for _, step := range []flushtest.Step{flushtest.StepApplied, flushtest.StepRechecked, flushtest.StepDiscarded} {
		g := newRig(t)
		j := adopting(g.store)
		j.without = step == flushtest.StepApplied
		if j.without {
			g.Do("MSET", "session:1", "ours", "session:2", "ours")
			j.dies(t, step, 3) // the page comes after begun and adopted
			if j.table.Count("rows") == 0 {
				t.Fatal("it has written nothing")
			}
			g.Do("SET", "session:1", "again")
			j.must(t)
			j.has(t, "1:again 2:ours")
			continue
		}
		j.table.put("1", "theirs")
		j.byAnotherPass("extra")
		g.Do("SET", "session:1", "ours")
		j.passes(t)
		j.accept(t)
		j.dies(t, step, 1)
		j.byAnotherPass("extra2")
		j.byAnotherPass("extra3")
		j.passes(t)
		if rows := j.table.texts(); rows["1"] != "ours" || rows["extra2"] != "theirs" || j.waits.Deletes < 2 {
			t.Errorf("%s: %+v waits, rows %v", step, j.waits, rows)
		}
		j.accept(t)
		j.must(t)
		j.has(t, "1:ours")
	}
}

// Two scans share a table. Each needs its own acceptance.
func TestTwoScansOnOneTableAskEachForItself(t *testing.T) {
	g := newRig(t)
	one, two := adopting(g.store), adopting(g.store)
	one.without = true // a column of generations belongs to one scan
	two.table, two.options.Key, two.adopt.Differ = one.table, "q:<id>", one.adopt.Differ
	one.name, two.name = "one", "two"
	g.Do("MSET", "session:1", "one", "session:both", "one", "q:2", "two", "q:both", "two")
	one.must(t)
	two.passes(t)
	one.has(t, "1:one 2:two both:one")
	if one.waits != (flush.Unaccepted{}) || two.waits != (flush.Unaccepted{Changes: 1}) {
		t.Errorf("%+v and %+v wait", one.waits, two.waits)
	}
}
