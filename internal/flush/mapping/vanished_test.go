package mapping

import (
	"slices"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

func TestTextsOfARowAreThoseOfItsRecord(t *testing.T) {
	v := &Vanished{width: 3, inputs: []int{2, 0}, plan: row.Plan{Key: []int{0, 1}, Columns: []row.PlanColumn{
		{Column: row.Column{Name: "k", Kind: row.KindText, Padded: true}}, {Column: row.Column{Name: "gen", Kind: row.KindInteger}},
	}}}
	for _, c := range v.plan.Columns {
		read, _ := row.NewReader(c.Kind, c.Column, row.OpSet, "")
		v.reads = append(v.reads, read)
	}
	r := v.Record([]string{"a b  ", "7"})
	if want := []row.Raw{{Text: "7", OK: true}, {}, {Text: "a b", OK: true}}; !slices.Equal(r.Inputs, want) || !r.Gone {
		t.Errorf("record %+v", r)
	}
	row, err := v.Row(r)
	if err != nil || !row.Delete || row.Values[0].Text() != "a b" || row.Values[1].Int() != 7 {
		t.Errorf("row %+v, %v", row, err)
	}
	if _, err := v.Row(v.Record([]string{"a", "seven"})); err == nil || !strings.Contains(err.Error(), `"gen"`) {
		t.Errorf("a row that no scan has written: %v", err)
	}
}
