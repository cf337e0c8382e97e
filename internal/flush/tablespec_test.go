package flush

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableSpecIsWhatTheMappingSays(t *testing.T) {
	spec, err := NewTableSpec(MappingSpec{
		Table: "users", Key: []string{"lang", "id"}, DedupeKey: []string{"entry"}, Generation: "pass",
		Columns: map[string]ColumnSpec{
			"id": {Type: "integer"}, "lang": {Type: "text"}, "name": {Type: "text", Missing: "error"}, "born": {Type: "date"},
			"entry": {From: InputID}, "rank": {From: InputScore}, "note": {Type: "text", Missing: "error", Empty: "null"},
		},
	}, Inputs{Names: []string{InputID, InputScore}, Fields: true})
	if err != nil {
		t.Fatal(err)
	}
	want := TableSpec{Name: "users", Key: []string{"lang", "id"}, Unique: []string{"entry"}, Columns: []Column{
		{Name: "lang", Kind: KindText}, {Name: "id", Kind: KindInteger}, {Name: "born", Kind: KindDate, Nullable: true},
		{Name: "entry", Kind: KindText}, {Name: "name", Kind: KindText}, {Name: "note", Kind: KindText, Nullable: true},
		{Name: "pass", Kind: KindInteger, Default: true}, {Name: "rank", Kind: KindFloat, Nullable: true},
	}}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}
	counters := Inputs{Names: []string{InputField, InputValue}, Ledger: true}
	spec, err = NewTableSpec(MappingSpec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{
		"id": {From: InputField, Type: "integer"}, "views": {From: InputValue}, "sum": {From: InputValue, Op: "add", Type: "numeric"},
	}}, counters)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Column{{Name: "id", Kind: KindInteger}, {Name: "sum", Kind: KindNumeric, Default: true}, {Name: "views", Kind: KindInteger, Default: true}}, spec.Columns); diff != "" {
		t.Error(diff)
	}
}

func TestTableSpecTellsEveryProblem(t *testing.T) {
	_, err := NewTableSpec(MappingSpec{Table: "users", Key: []string{"id", "missing"}, Columns: map[string]ColumnSpec{
		"id": {Type: "integer"}, "name": {}, "age": {Type: "int"},
	}}, Inputs{Fields: true})
	for _, want := range []string{`column "name" has no type`, `column "age" has the unknown type "int"`, `column "missing" of `} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if _, err := NewTableSpec(MappingSpec{Table: "users", Key: []string{"id"}}, Inputs{Fields: true}); err == nil || !strings.Contains(err.Error(), "needs `columns`") {
		t.Errorf("without columns: %v", err)
	}
}
