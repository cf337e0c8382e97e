package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// asking makes a job ask before a pass changes existing rows. It returns the counts that OnUnaccepted receives.
func asking(j *captureJob) *flush.Unaccepted {
	waits := &flush.Unaccepted{}
	j.adopt = flush.Adopt{Differ: tableDiffer{j.table}, OnUnaccepted: func(w flush.Unaccepted) { *waits = w }}
	return waits
}

// tableDiffer compares the texts of rows.
type tableDiffer struct{ *scanTable }

func (d tableDiffer) Differing(_ context.Context, _ flush.Sink, m *mapping.Mapping, rows []row.Row, own flush.OwnRows,
) ([]flush.Differs, error) {
	have, passes := d.texts(), d.Rows("rows", own.Column)
	found := make([]flush.Differs, len(rows))
	for i, r := range rows {
		shown := m.Show(r)
		column := func(name string) string {
			at := slices.IndexFunc(m.Plan().Columns, func(c row.PlanColumn) bool { return c.Name == name })
			if shown[at] == nil {
				return "-"
			}
			return *shown[at]
		}
		text, ok := have[column("id")]
		if pass, _ := strconv.ParseInt(passes[column("id")], 10, 64); ok && own.Column != "" && pass >= own.Since {
			found[i] = flush.RowOwn
		} else if ok {
			found[i] = flush.RowDiffers
			if column("v") == text {
				found[i] = flush.RowEqual
			}
		}
	}
	return found, nil
}

// acceptance returns the record for the digest.
func (j *captureJob) acceptance(digest string) string {
	return j.table.Place("capture", flush.AdoptionName(digest))
}

func (j *captureJob) accept() {
	j.t.Helper()
	digest, err := j.pipeline.Digest(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	text, err := flush.Accept(j.acceptance(digest), "ann", time.Unix(0, 0))
	if err != nil {
		j.t.Fatal(err)
	}
	j.table.SetPlace("capture", flush.AdoptionName(digest), text)
}

// has compares the rows, without the row of the mark.
func (j *captureJob) has(want string) {
	j.t.Helper()
	rows := maps.Clone(j.table.texts())
	delete(rows, "mark")
	if got := fmt.Sprint(rows); got != "map["+want+"]" {
		j.t.Errorf("the rows are %s, want %s", got, want)
	}
}

// A first run once changed and deleted existing rows of a table without asking.
func TestAPassAsksBeforeItTouchesRowsThatWereThere(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	waits := asking(j)
	for id, v := range map[string]string{"equal": "1", "differs": "theirs", "extra": "theirs", "changes": "theirs", "goes": "theirs"} {
		j.table.put(id, v)
	}
	for id, v := range map[string]string{"equal": "1", "differs": "ours", "new": "ours", "changes": "ours", "goes": "ours"} {
		g.Do("SET", "s:"+id, v)
	}
	j.must(g.Client)
	j.has("changes:theirs differs:theirs equal:1 extra:theirs goes:theirs new:ours")
	told := j.told()
	if *waits != (flush.Unaccepted{Changes: 3, Deletes: 1}) || !strings.Contains(told, "would change 3 and delete 1 of them") ||
		!strings.Contains(told, "baton job accept capture") {
		t.Errorf("%+v waits, told %q", *waits, told)
	}
	// If the application sets or deletes a key, the key's row is written at once.
	g.Do("SET", "s:changes", "again")
	g.Do("DEL", "s:goes")
	j.must(g.Client)
	j.has("changes:again differs:theirs equal:1 extra:theirs new:ours")
	j.die()
	*waits = flush.Unaccepted{}
	j.must(g.Client)
	if told := j.told(); strings.Contains(told, "all keys are read") || *waits != (flush.Unaccepted{Changes: 3, Deletes: 1}) {
		t.Errorf("the next leader: %+v waits, told %q", *waits, told)
	}
	j.accept()
	j.mustEqual(g.Client)
	j.has("changes:again differs:ours equal:1 new:ours")
	if *waits != (flush.Unaccepted{}) {
		t.Errorf("%+v waits", *waits)
	}
	j.told()
	j.table.put("extra", "theirs")
	j.table.SetPlace("capture", "s:<id>", "")
	j.die()
	j.mustEqual(g.Client) // the rows are the job's now
	if told := j.told(); !strings.Contains(told, "all keys are read") {
		t.Errorf("told %q", told)
	}
}

func TestAPassDoesNoMoreThanWasAccepted(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	waits := asking(j)
	j.table.put("1", "theirs")
	j.table.put("extra1", "theirs")
	for id := range 4 {
		g.Do("SET", fmt.Sprint("s:", id), "ours")
	}
	j.must(g.Client)
	if *waits != (flush.Unaccepted{Changes: 1, Deletes: 1}) {
		t.Fatalf("%+v", *waits)
	}
	j.accept()
	j.table.put("2", "theirs")
	j.table.put("extra2", "theirs")
	j.die()
	j.must(g.Client)
	if *waits != (flush.Unaccepted{Changes: 1, Deletes: 2}) {
		t.Errorf("%+v waits", *waits)
	}
	theirs := 0
	for _, v := range j.table.texts() {
		if v == "theirs" {
			theirs++
		}
	}
	if theirs != 3 {
		t.Errorf("the rows are %v", j.table.texts())
	}
	j.accept()
	j.die()
	j.mustEqual(g.Client)
}

func TestAModeDecidesInsteadOfAsking(t *testing.T) {
	for mode, want := range map[flush.AdoptMode]string{
		flush.AdoptInsertOnly: "differs:theirs extra:theirs new:ours", flush.AdoptOverwrite: "differs:ours extra:theirs new:ours",
		flush.AdoptDelete: "differs:ours new:ours",
	} {
		t.Run(string(mode), func(t *testing.T) {
			g := newRig(t)
			j := newCaptureJob(t, g.redis)
			j.options.MaxPct = 100
			waits := asking(j)
			j.adopt.Mode = mode
			j.table.put("differs", "theirs")
			j.table.put("extra", "theirs")
			g.Do("SET", "s:differs", "ours")
			g.Do("SET", "s:new", "ours")
			for range 2 {
				j.must(g.Client)
				j.has(want)
				j.die()
			}
			if told := j.told(); strings.Count(told, "all keys are read") != 1 || *waits != (flush.Unaccepted{}) {
				t.Errorf("%+v waits, told %q", *waits, told)
			}
			j.adopt.Mode = flush.AdoptAsk
			j.must(g.Client)
			j.has(want)
		})
	}
}

// An acceptance does not include max_pct.
func TestAcceptanceDoesNotLiftMaxPct(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	asking(j)
	g.Do("SET", "s:1", "ours")
	for id := range 9 {
		j.table.put(fmt.Sprint("extra", id), "theirs")
	}
	j.must(g.Client)
	j.accept()
	j.die()
	if err := j.run(t.Context()); err == nil || !strings.Contains(err.Error(), "max_pct allows 10 %") {
		t.Errorf("%v", err)
	}
	if n := j.table.Count("rows"); n < 10 {
		t.Errorf("%d rows are left", n)
	}
}

// No acceptance is needed if the table is empty or equals the keys, nor for a mapping that was accepted before.
func TestWhatNeedsNoAcceptance(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	waits := asking(j)
	g.Do("SET", "s:1", "ours")
	j.mustEqual(g.Client) // the table was empty
	j.table.put("2", "theirs")
	j.table.SetPlace("capture", "s:<id>", "") // a pass is owed, and the rows are the job's
	j.die()
	j.mustEqual(g.Client)
	j.die()
	j.columns["v"] = mapping.ColumnSpec{From: "$key"} // another mapping
	j.mustPass(g.Client)
	if waits.Changes == 0 {
		t.Fatalf("%+v waits, rows %v", *waits, j.table.texts())
	}
	j.die()
	j.columns["v"] = mapping.ColumnSpec{From: "$value"} // a rollback
	j.mustEqual(g.Client)
	if *waits != (flush.Unaccepted{}) {
		t.Errorf("%+v waits", *waits)
	}
}

// A job that ran before baton asked has a position, and at most a basis. Its rows are its own, also with the mapping that it had then.
func TestAJobThatRanBeforeAsksNothing(t *testing.T) {
	for _, how := range []string{"", "basis", "pass", "basis pass"} {
		g := newRig(t)
		j := newCaptureJob(t, g.redis)
		j.options.MaxPct = 100
		g.Do("SET", "s:1", "ours")
		j.mustEqual(g.Client) // needs no acceptance, and records none
		if !strings.Contains(how, "basis") {
			j.table.SetPlace("capture", "basis", "")
		}
		j.die()
		waits := asking(j)
		j.must(g.Client)
		j.die()
		if strings.Contains(how, "pass") {
			j.table.put("1", "theirs")
			j.table.put("extra", "theirs")
			j.table.SetPlace("capture", "s:<id>", "")
			j.mustEqual(g.Client)
			j.die()
		}
		j.columns["v"] = mapping.ColumnSpec{From: "$key"}
		j.mustPass(g.Client)
		if waits.Changes == 0 {
			t.Errorf("another mapping: %+v waits", *waits)
		}
		j.die()
		j.columns["v"] = mapping.ColumnSpec{From: "$value"}
		j.mustEqual(g.Client)
		if *waits != (flush.Unaccepted{}) {
			t.Errorf("the mapping that it had: %+v waits", *waits)
		}
	}
}

// An operator who accepts with the old file accepts only rows that the old mapping has left alone, and none of another mapping.
func TestAcceptanceIsOfOneMapping(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	waits := asking(j)
	j.table.put("1", "theirs")
	g.Do("SET", "s:1", "ours")
	j.must(g.Client)
	old, err := j.pipeline.Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j.die()
	j.columns["v"] = mapping.ColumnSpec{From: "$key"}
	j.mustPass(g.Client)
	text, err := flush.Accept(j.acceptance(old), "ann", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	j.table.SetPlace("capture", flush.AdoptionName(old), text)
	j.die()
	j.mustPass(g.Client)
	if rows := j.table.texts(); rows["1"] != "theirs" || *waits == (flush.Unaccepted{}) {
		t.Errorf("%+v waits, rows %v", *waits, rows)
	}
}

// Two jobs share a table. A row that one of them wrote, or may write, was never written by the other.
func TestTwoJobsOnOneTableAskEachForItself(t *testing.T) {
	g := newRig(t)
	one, two := newCaptureJob(t, g.redis), newCaptureJob(t, g.redis)
	one.options.OnMissing = "ignore"
	two.name, two.options.Key, two.table, two.options.MaxPct = "two", "q:<id>", one.table, 100
	waits, others := asking(one), asking(two)
	one.table.put("theirs", "theirs")
	g.Do("MSET", "s:1", "one", "s:both", "one", "s:theirs", "one", "q:2", "two", "q:both", "two")
	one.must(g.Client)
	one.accept()
	one.must(g.Client)
	one.has("1:one both:one theirs:one")
	if err := two.until(func() bool { return two.table.texts()["2"] == "two" && *others != (flush.Unaccepted{}) }); err != nil {
		t.Fatal(err)
	}
	one.has("1:one 2:two both:one theirs:one")
	if *waits != (flush.Unaccepted{}) || *others != (flush.Unaccepted{Changes: 1, Deletes: 3}) { // 1, theirs and the mark
		t.Errorf("%+v and %+v wait", *waits, *others)
	}
	if text := one.table.Place("two", "basis"); !strings.HasSuffix(text, " ask") {
		t.Errorf("the basis of the other is %q", text)
	}
}
