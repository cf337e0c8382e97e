package mapping

import (
	"slices"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// eventInputs are the inputs of a source of complete records, such as a list or a stream.
var eventInputs = row.Inputs{Names: []string{row.InputID}, Fields: true, Guarantee: row.ByLedger}

// events returns a record with a mapping's inputs.
func events(m *Mapping, fields map[string]string) row.Record {
	r := row.Record{Key: fields["id"]}
	for _, name := range m.Inputs() {
		text, ok := fields[name]
		r.Inputs = append(r.Inputs, row.Raw{Text: text, OK: ok})
	}
	return r
}

func compiledFor(t *testing.T, spec Spec, available row.Inputs) *Mapping {
	t.Helper()
	spec.Table = "articles"
	m, err := Compile(spec, articles(), available)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func titleSpec() map[string]ColumnSpec {
	return map[string]ColumnSpec{"id": {}, "views": {}, "title": {Missing: "keep"}}
}

// batch shows the result of converting records: "+1:5,text" is a row, "-1" a deletion, and "=1:…" a row that replaces an existing one.
func batch(m *Mapping, records ...row.Record) []string {
	b := converted(m, MissingIgnore, records...)
	var out []string
	for _, row := range b.Rows {
		sign := "+"
		if row.Delete {
			sign = "-"
		} else if row.Replace {
			sign = "="
		}
		var values []string
		for _, v := range row.Values {
			text := display(v)
			if v.IsAbsent() {
				text = "absent"
			}
			values = append(values, text)
		}
		out = append(out, sign+strings.Join(values, ","))
	}
	for _, d := range b.Dead {
		out = append(out, "dead "+d.Error)
	}
	return out
}

func TestWithoutAKeyEveryRecordIsARowOfItsOwn(t *testing.T) {
	m := compiledFor(t, Spec{Columns: titleSpec()}, eventInputs)
	if m.mode != ModeInsert || len(m.Plan().Key) != 0 || m.Plan().Keep {
		t.Errorf("plan %+v in mode %s", m.Plan(), m.mode)
	}
	one := events(m, map[string]string{"id": "2", "views": "1", "title": "a"})
	got := batch(m, one, one, events(m, map[string]string{"id": "1", "views": "2"}))
	if want := []string{"+integer 2,integer 1,text a", "+integer 2,integer 1,text a", "+integer 1,integer 2,absent"}; !slices.Equal(got,
		want) {
		t.Errorf("got %q, want %q: in their order", got, want)
	}
}

func TestADedupeKeyKeepsTheFirst(t *testing.T) {
	m := compiledFor(t, Spec{Mode: ModeInsert, DedupeKey: []string{"id"}, Columns: titleSpec()}, eventInputs)
	if !m.Plan().Keep || !slices.Equal(m.Plan().Key, []int{0}) {
		t.Errorf("plan %+v", m.Plan())
	}
	got := batch(m, events(m, map[string]string{"id": "1", "views": "1", "title": "first"}),
		events(m, map[string]string{"id": "1", "views": "2", "title": "second"}))
	if want := []string{"+integer 1,integer 1,text first"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRecordsOfOneKeyMeetInABatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    Spec
		records []map[string]string
		want    []string
	}{
		{"the last one counts", Spec{}, []map[string]string{{"views": "1", "title": "a"}, {"views": "2", "title": "b"}},
			[]string{"+integer 7,integer 2,text b"}},
		{"what the last one leaves alone is the earlier one's", Spec{}, []map[string]string{{"views": "1", "title": "a"}, {"views": "2"}},
			[]string{"+integer 7,integer 2,text a"}},
		{"what nobody says is left alone", Spec{}, []map[string]string{{"views": "1"}, {"views": "2"}},
			[]string{"+integer 7,integer 2,absent"}},
		{"replace leaves nothing of the earlier one", Spec{Mode: ModeReplace}, []map[string]string{{"views": "1", "title": "a"},
			{"views": "2"}}, []string{"=integer 7,integer 2,absent"}},
		{"a deletion", Spec{DeleteWhen: map[string]string{"op": "d"}}, []map[string]string{{"views": "1", "title": "a"}, {"op": "d"}},
			[]string{"-integer 7,NULL,NULL"}},
		{"after a deletion the row begins anew", Spec{DeleteWhen: map[string]string{"op": "d"}},
			[]map[string]string{{"op": "d"}, {"views": "2"}, {"views": "3"}}, []string{"=integer 7,integer 3,absent"}},
		{"only what says so deletes", Spec{DeleteWhen: map[string]string{"op": "d"}}, []map[string]string{{"op": "u", "views": "2"}},
			[]string{"+integer 7,integer 2,absent"}},
		{"mode delete needs nothing but the key", Spec{Mode: ModeDelete}, []map[string]string{{}, {}}, []string{"-integer 7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Key, c.spec.Columns = []string{"id"}, titleSpec()
			m := compiledFor(t, c.spec, eventInputs)
			var records []row.Record
			for _, fields := range c.records {
				fields["id"] = "7"
				records = append(records, events(m, fields))
			}
			if got := batch(m, records...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSumsBeginAnewAfterADeletion(t *testing.T) {
	spec := Spec{Key: []string{"id"}, DeleteWhen: map[string]string{"op": "d"},
		Columns: map[string]ColumnSpec{"id": {}, "views": {Op: "add", Missing: "keep"}}}
	m := compiledFor(t, spec, eventInputs)
	got := batch(m,
		events(m, map[string]string{"id": "7", "views": "1"}), events(m, map[string]string{"id": "7", "op": "d"}),
		events(m, map[string]string{"id": "7", "views": "5"}), events(m, map[string]string{"id": "7"}),
		events(m, map[string]string{"id": "7", "views": "6"}))
	if want := []string{"=integer 7,integer 11"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAColumnWithADefaultIsKeptWhenItIsMissing(t *testing.T) {
	m := compiledFor(t, Spec{Key: []string{"id"}}, row.Inputs{Names: []string{"id"}, Fields: true})
	got := batch(m, events(m, map[string]string{"id": "1", "views": "2"}))
	if want := []string{"+integer 1,integer 2,NULL,NULL,absent,NULL"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestANullableColumnWithADefaultIsKeptToo(t *testing.T) {
	table := articles()
	table.Columns[2].Default = true // title
	m, err := Compile(Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{"id": {}, "views": {}, "title": {},
		"score": {}}}, table, hashInputs)
	if err != nil {
		t.Fatal(err)
	}
	got := batch(m, events(m, map[string]string{"id": "1", "views": "2"}))
	if want := []string{"+integer 1,integer 2,absent,NULL"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAScanWritesItsGeneration(t *testing.T) {
	m := compiledFor(t, Spec{Key: []string{"id"}, Generation: "views", Columns: map[string]ColumnSpec{"id": {}, "title": {From: "name"}}},
		row.Inputs{Names: []string{"id", row.InputGeneration}, Fields: true})
	got := batch(m, events(m, map[string]string{"id": "1", "name": "Ann", row.InputGeneration: "17"}))
	if want := []string{"+integer 1,integer 17,text Ann"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// If a record lacks a column, an earlier record of the batch may have set it. So if the database refuses the row, the dead letter must have
// both records.
func TestARowOfSeveralRecordsIsRefusedWithAllOfThem(t *testing.T) {
	columns := titleSpec()
	columns["views"] = ColumnSpec{Missing: "keep"}
	m := compiledFor(t, Spec{Key: []string{"id"}, Columns: columns}, eventInputs)
	b := converted(m, MissingIgnore,
		events(m, map[string]string{"id": "1", "title": "old"}),
		events(m, map[string]string{"id": "1", "views": "5"}),
		events(m, map[string]string{"id": "1", "title": "new"}),
	)
	if got, want := row.RecordJSON(m.Inputs(), b.Rows[0].Record), `{"key":"1","id":"1","views":"5","title":"new"}`; got != want {
		t.Errorf("record is %s, want %s", got, want)
	}
}

func TestADeletionIsNotMadeNull(t *testing.T) {
	spec := Spec{Key: []string{"id"}, Mode: ModeDelete, Columns: map[string]ColumnSpec{"id": {}}}
	m := compiledFor(t, spec, hashInputs)
	if err := MissingNull.Check(m); err == nil || !strings.Contains(err.Error(), "`mode: delete`") {
		t.Errorf("`mode: delete` with `on_missing: null`: %v", err)
	}
	spec.Mode, spec.DeleteWhen, spec.Columns = ModeUpsert, map[string]string{"op": "d"}, titleSpec()
	m = compiledFor(t, spec, eventInputs)
	b := converted(m, MissingNull, events(m, map[string]string{"id": "1", "op": "d"}))
	if len(b.Rows) != 1 || !b.Rows[0].Delete {
		t.Errorf("`delete_when` with `on_missing: null` makes %+v", b.Rows)
	}
}

func TestModesThatCannotBeExactAreRefused(t *testing.T) {
	for _, c := range []struct {
		name      string
		spec      Spec
		available row.Inputs
		want      string
	}{
		{"insert twice", Spec{Mode: ModeInsert}, hashInputs, "`mode: insert` needs a `dedupe_key` here"},
		{"insert with a key", Spec{Mode: ModeInsert, Key: []string{"id"}}, eventInputs, "`key` is not for `mode: insert`"},
		{"upsert with a dedupe key", Spec{Key: []string{"id"}, DedupeKey: []string{"id"}}, eventInputs,
			"`dedupe_key` is only for `mode: insert`"},
		{"dedupe key that is not unique", Spec{Mode: ModeInsert, DedupeKey: []string{"views"}}, eventInputs,
			"no unique index has exactly the columns"},
		{"delete without a key", Spec{Mode: ModeDelete}, eventInputs, "no `key` is given"},
		{"delete_when without the field", Spec{Key: []string{"id"}, DeleteWhen: map[string]string{"op": "d"}}, counterInputs,
			"`delete_when` asks for \"op\""},
		{"delete_when with insert", Spec{Mode: ModeInsert, DeleteWhen: map[string]string{"op": "d"}}, eventInputs,
			"`mode: insert` has no `key`"},
		{"unknown", Spec{Mode: "merge", Key: []string{"id"}}, eventInputs, "`mode: merge` is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Table = "articles"
			_, err := Compile(c.spec, articles(), c.available)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A delete does not write the key, so the database may generate it.
func TestDeletesFindRowsByAnIdentity(t *testing.T) {
	table := articles()
	table.Unique = [][]string{{"serial"}}
	m, err := Compile(Spec{Table: "articles", Key: []string{"serial"}, Mode: ModeDelete}, table, eventInputs)
	if err != nil {
		t.Fatal(err)
	}
	if p := m.Plan(); len(p.Columns) != 1 || p.Columns[0].Name != "serial" {
		t.Errorf("the plan is %+v", p)
	}
	if _, err = Compile(Spec{Table: "articles", Key: []string{"serial"}}, table, eventInputs); err == nil {
		t.Error("an upsert writes the identity")
	}
}
