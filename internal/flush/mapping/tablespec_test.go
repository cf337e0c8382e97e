package mapping

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush/row"
)

func TestTableSpecIsWhatTheMappingSays(t *testing.T) {
	spec, err := NewTableSpec(Spec{
		Table: "users", Key: []string{"lang", "id"}, DedupeKey: []string{"entry"}, Generation: "pass",
		Columns: map[string]ColumnSpec{
			"id": {Type: "integer"}, "lang": {Type: "text"}, "name": {Type: "text", Missing: "error"}, "born": {Type: "date"},
			"entry": {From: row.InputID}, "rank": {From: row.InputScore}, "note": {Type: "text", Missing: "error", Empty: "null"},
		},
	}, row.Inputs{Names: []string{row.InputID, row.InputScore}, Fields: true})
	if err != nil {
		t.Fatal(err)
	}
	want := row.TableSpec{Name: "users", Key: []string{"lang", "id"}, Unique: []string{"entry"}, Columns: []row.Column{
		{Name: "lang", Kind: row.KindText}, {Name: "id", Kind: row.KindInteger}, {Name: "born", Kind: row.KindDate, Nullable: true},
		{Name: "entry", Kind: row.KindText}, {Name: "name", Kind: row.KindText}, {Name: "note", Kind: row.KindText, Nullable: true},
		{Name: "rank", Kind: row.KindFloat, Nullable: true}, {Name: "pass", Kind: row.KindInteger, Default: true},
	}}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
	counters := row.Inputs{Names: []string{row.InputField, row.InputValue}, Guarantee: row.ByLedger}
	spec, err = NewTableSpec(Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{
		"id": {From: row.InputField, Type: "integer"}, "views": {From: row.InputValue},
		"sum": {From: row.InputValue, Op: "add", Type: "numeric"},
	}}, counters)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]row.Column{{Name: "id", Kind: row.KindInteger}, {Name: "sum", Kind: row.KindNumeric, Default: true},
		{Name: "views", Kind: row.KindInteger, Default: true}}, spec.Columns); diff != "" {
		t.Error(diff)
	}
}

func TestACreatedTableHasTheOrderOfTheFile(t *testing.T) {
	spec, err := NewTableSpec(Spec{Table: "users", Key: []string{"id"}, Columns: map[string]ColumnSpec{
		"name": {Type: "text", Place: 1}, "id": {Type: "integer", Place: 2}, "age": {Type: "integer", Place: 3},
	}}, row.Inputs{Fields: true})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range spec.Columns {
		names = append(names, c.Name)
	}
	if want := []string{"name", "id", "age"}; !slices.Equal(names, want) {
		t.Errorf("the columns are %s, want %s", names, want)
	}
}

func TestTableSpecTellsEveryProblem(t *testing.T) {
	_, err := NewTableSpec(Spec{Table: "users", Key: []string{"id", "missing"}, Columns: map[string]ColumnSpec{
		"id": {Type: "integer"}, "name": {}, "age": {Type: "int"},
	}}, row.Inputs{Fields: true})
	for _, want := range []string{`column "name" has no type`, `column "age" has the unknown type "int"`, `column "missing" of `} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if _, err := NewTableSpec(Spec{Table: "users", Key: []string{"id"}}, row.Inputs{Fields: true}); err == nil ||
		!strings.Contains(err.Error(), "needs `columns`") {
		t.Errorf("without columns: %v", err)
	}
}
