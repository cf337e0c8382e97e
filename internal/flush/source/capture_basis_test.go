package source

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// otherTable returns the table of a capture job under another name.
func otherTable(j *captureJob) row.Table {
	table, err := j.table.Table(j.t.Context(), "rows")
	if err != nil {
		j.t.Fatal(err)
	}
	table.Name = "rows2"
	return table
}

const (
	mappingChanged = "all keys are read: the mapping of the job was changed"
	tableChanged   = "was created again, truncated or restored"
)

// If a key does not change any longer, its row stays as the old mapping made it. Without a pass, a changed mapping would never reach it.
func TestAChangedMappingOwesAPass(t *testing.T) {
	changes := map[string]func(j *captureJob, r *testsupport.Redis){
		"a column's input": func(j *captureJob, _ *testsupport.Redis) { j.columns["v"] = mapping.ColumnSpec{From: "$key"} },
		"empty": func(j *captureJob, _ *testsupport.Redis) {
			j.columns["v"] = mapping.ColumnSpec{From: "$value", Empty: "null"}
		},
		"missing": func(j *captureJob, _ *testsupport.Redis) {
			j.columns["v"] = mapping.ColumnSpec{From: "$value", Missing: "error"}
		},
		"on_missing": func(j *captureJob, _ *testsupport.Redis) { j.options.OnMissing = "ignore" },
		"the table": func(j *captureJob, _ *testsupport.Redis) {
			j.table.SetTable(otherTable(j))
			j.into = "rows2"
		},
		"a column's kind": func(j *captureJob, _ *testsupport.Redis) {
			table := otherTable(j)
			table.Name = "rows"
			for i := range table.Columns {
				if table.Columns[i].Name == "v" {
					table.Columns[i].Kind = row.KindJSON
				}
			}
			j.table.SetTable(table)
		},
		"the database's number": func(j *captureJob, r *testsupport.Redis) {
			j.die()
			j.open = captureAtDatabase(j.t, r, 0).open
		},
	}
	for name, change := range changes {
		for _, how := range []string{"reload", "restart"} {
			t.Run(name+" after a "+how, func(t *testing.T) {
				g := newRig(t)
				j := captureAtDatabase(t, g.redis, 2)
				g.Do("SELECT", 2)
				g.Do("SET", "s:1", "1")
				j.must(g.Client)
				j.told()
				if name == "the database's number" {
					g.Do("SELECT", 0)
					g.Do("SET", "s:1", "1")
					g.Do("SET", "s:mark", "0")
				}
				if how == "restart" {
					j.die()
				} else {
					j.reload()
				}
				change(j, g.redis)
				j.mustPass(g.Client)
				if told := j.told(); !strings.Contains(told, mappingChanged) {
					t.Errorf("no pass: %q", told)
				}
				j.die()
				j.mustPass(g.Client)
				if told := j.told(); strings.Contains(told, "all keys are read") {
					t.Errorf("one pass too many: %q", told)
				}
			})
		}
	}
}

// A pattern has its own position. If a job returns to an earlier pattern, it finds the old position, but rows that the other pattern's pass
// has deleted.
func TestAPatternThatComesBackOwesAPass(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.MaxPct = 100
	g.Do("SET", "s:1", "1")
	g.Do("SET", "q:2", "2")
	j.must(g.Client)
	j.reload()
	j.options.Key = "q:<id>"
	if err := j.until(func() bool { return len(j.table.texts()) == 1 && j.table.texts()["2"] == "2" }); err != nil {
		t.Fatal(err)
	}
	j.told()
	j.reload()
	j.options.Key = "s:<id>"
	j.mustEqual(g.Client)
	if told := j.told(); !strings.Contains(told, mappingChanged) {
		t.Errorf("no pass: %q", told)
	}
}

// A setting that does not decide about the rows needs no pass. A job of an earlier version records the present digest.
func TestWhatIsNotPartOfTheMappingOwesNoPass(t *testing.T) {
	for name, change := range map[string]func(j *captureJob){
		"nothing":          func(*captureJob) {},
		"lanes and sizes":  func(j *captureJob) { j.options.Lanes, j.options.Rows, j.options.Bytes = 3, 7, 1<<20 },
		"max_pct":          func(j *captureJob) { j.options.MaxPct = 77 },
		"on_flush":         func(j *captureJob) { j.options.OnFlush = "pass" },
		"a default":        func(j *captureJob) { j.columns["v"] = mapping.ColumnSpec{From: "$value", Missing: "null", Op: "set"} },
		"a longer text":    func(j *captureJob) { lengthen(j) },
		"no digest so far": func(j *captureJob) { j.table.SetPlace("capture", "basis", "") },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			j := newCaptureJob(t, g.redis)
			g.Do("SET", "s:1", "1")
			j.mustEqual(g.Client)
			j.told()
			for range 2 {
				j.die()
				change(j)
				g.Do("SET", "s:2", "2")
				j.mustEqual(g.Client)
				j.reload()
				j.mustEqual(g.Client)
				told := j.told()
				if strings.Contains(told, "all keys are read") {
					t.Errorf("a pass: %q", told)
				}
				if without := strings.Count(told, "baton records the present mapping"); (without == 1) != (name == "no digest so far") {
					t.Errorf("%q", told)
				}
			}
		})
	}
}

func lengthen(j *captureJob) {
	table := otherTable(j)
	table.Name = "rows"
	for i := range table.Columns {
		table.Columns[i].DBType, table.Columns[i].MaxChars = "varchar", 1000
	}
	j.table.SetTable(table)
}

// If a table is created again, truncated or restored, it has lost rows, and no command shows which.
func TestAnotherTableOfTheNameOwesAPass(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	table := otherTable(j)
	table.Name = "rows"
	g.Do("SET", "s:1", "1")
	j.mustEqual(g.Client) // with a database that cannot report the table's identity
	j.told()
	again := func(identity string, wantPass bool) {
		t.Helper()
		if wantPass {
			j.table.DropTable("rows")
		}
		table.Identity = identity
		j.table.SetTable(table)
		j.die()
		j.mustEqual(g.Client)
		if told := j.told(); strings.Contains(told, tableChanged) != wantPass {
			t.Errorf("%s: %q", identity, told)
		}
	}
	again("1", false) // it can report it now
	again("1", false)
	again("2", true)
	again("2", false)
	again("", false)
	again("2", false)
	again("3", true)
}

// The pass must be completed, no matter at which step the process ends.
func TestACrashBeforeTheBasisIsRecordedRepeatsThePass(t *testing.T) {
	for _, end := range []flushtest.Step{flushtest.StepPositionRead, flushtest.StepStaged, flushtest.StepApplied, flushtest.StepSwept,
		flushtest.StepDiscarded, flushtest.StepBeforeApply} {
		t.Run(string(end), func(t *testing.T) {
			g := newRig(t)
			j := newCaptureJob(t, g.redis)
			g.Do("SET", "s:1", "1")
			j.mustEqual(g.Client)
			j.die()
			j.columns["v"] = mapping.ColumnSpec{From: "$key"}
			at := 0
			j.watch(func(step string) error {
				if step == string(end) {
					at++
				}
				if at == 1 && step == string(end) || at > 0 && end == flushtest.StepDiscarded && step == string(flushtest.StepBeforeApply) {
					return errDies
				}
				return nil
			})
			if err := j.run(t.Context()); !errors.Is(err, errDies) && end != flushtest.StepSwept {
				t.Fatal(err)
			}
			j.watch(nil)
			j.die()
			// The mapping is the old one again: some rows may be written with the other one.
			j.columns["v"] = mapping.ColumnSpec{From: "$value"}
			j.mustEqual(g.Client)
			j.die()
			j.columns["v"] = mapping.ColumnSpec{From: "$key"}
			j.mustPass(g.Client)
			if got := j.table.texts()["1"]; got != "s:1" {
				t.Errorf("the row is %q", got)
			}
		})
	}
}

// captureAtDatabase returns a job that reads the database with that number.
func captureAtDatabase(t testing.TB, r *testsupport.Redis, number int) *captureJob {
	t.Helper()
	address, err := url.Parse(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	address.Path = fmt.Sprint("/", number)
	return captureAt(t, redisconn.Options{URL: address.String(), ClientName: "baton-test"})
}

// mustPass runs until a command of this moment has been flushed, and ignores errors of the runs.
func (j *captureJob) mustPass(c testsupport.Client) {
	j.t.Helper()
	j.marks++
	id := fmt.Sprint("mark", j.marks)
	c.Do("SET", "s:"+id, `"1"`)
	if err := j.until(func() bool { return j.table.Rows(cmp.Or(j.into, "rows"), j.table.columns...)[id] != "" }); err != nil {
		j.t.Fatal(err)
	}
}
