package mapping

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// setsIn returns a mapping of sets "<shop>:<item>" into a table with these unique indexes.
func setsIn(t *testing.T, score bool, unique ...string) *Mapping {
	t.Helper()
	table := row.Table{Name: "sets"}
	spec := Spec{Table: "sets", Key: []string{"shop", "item", "member"}, Columns: map[string]ColumnSpec{
		"shop": {}, "item": {}, "member": {From: row.InputMember},
	}}
	for _, name := range []string{"shop", "item", "member", "score"} {
		table.Columns = append(table.Columns, row.Column{Name: name, Kind: row.KindText, Nullable: name == "score"})
	}
	for _, index := range unique {
		table.Unique = append(table.Unique, strings.Fields(index))
	}
	if score {
		spec.Columns["score"] = ColumnSpec{From: row.InputScore}
	}
	m, err := Compile(spec, table, row.Inputs{Names: []string{"shop", "item", row.InputMember, row.InputScore}, Guarantee: row.ByChanges})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRowsOfAKeyAreFoundByAnIndexThatBeginsWithIt(t *testing.T) {
	for _, c := range []struct {
		unique []string
		order  string // "": refused
	}{
		{[]string{"shop item member"}, "shop item member"},
		{[]string{"item shop member"}, "item shop member"},
		{[]string{"member shop item", "item shop member", "shop member item"}, "item shop member"},
		{[]string{"member shop item"}, ""},
		{[]string{"shop member item"}, ""},
	} {
		v, _, err := setsIn(t, true, c.unique...).Vanished("")
		if err != nil {
			t.Fatal(err)
		}
		switch err := v.FindsRows(); {
		case c.order == "":
			if err == nil || !strings.Contains(err.Error(), "add a unique index on (") || !strings.HasSuffix(err.Error(), ", member)") {
				t.Errorf("%v: %v", c.unique, err)
			}
			continue
		case err != nil:
			t.Errorf("%v: %v", c.unique, err)
		}
		record := row.Record{Inputs: make([]row.Raw, len(v.plan.Inputs))}
		for i, name := range v.plan.Inputs {
			record.Inputs[i] = row.Raw{Text: "of " + name, OK: name != row.InputMember}
		}
		lead, ok := v.Lead(&record)
		want := strings.Fields(c.order)[:2]
		if !ok || !v.HasMembers() || len(lead) != 2 || lead[0].Text() != "of "+want[0] || lead[1].Text() != "of "+want[1] {
			t.Errorf("%v: begins with %v, %v", c.unique, lead, ok)
		}
	}
}

func TestARowOfNullsIsNone(t *testing.T) {
	m := setsIn(t, true, "shop item member")
	v, _, err := m.Vanished("")
	if err != nil {
		t.Fatal(err)
	}
	key := []string{"a", "b", "c"}
	if !v.Live(key) || len(v.List().Columns) != 3 {
		t.Error("a row has vanished without on_missing: null")
	}
	if err := v.Empties(m); err != nil {
		t.Fatal(err)
	}
	if v.Live(append(slices.Clone(key), "")) || !v.Live(append(slices.Clone(key), row.Listed)) || len(v.List().Columns) != 4 {
		t.Error("a row of NULLs is one")
	}
	if got := v.Record(append(slices.Clone(key), row.Listed)); fmt.Sprint(got.Inputs) == "" || !got.Gone {
		t.Errorf("the record of a row: %+v", got)
	}
	bare := setsIn(t, false, "shop item member")
	if v, _, err = bare.Vanished(""); err != nil {
		t.Fatal(err)
	}
	if err := v.Empties(bare); err == nil || !strings.Contains(err.Error(), "use delete or ignore") {
		t.Errorf("nothing but a key: %v", err)
	}
}
