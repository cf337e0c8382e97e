package flushtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// keysThatBeginAlikeAreListed lists the keys that begin with given values in one, two or three columns. It also lists the keys that have
// one of several such beginnings.
func keysThatBeginAlikeAreListed(_ *testing.T, b *sinkCase) {
	s := b.open()
	b.table(s, "sets", 3, "shop", "item int", "member", "score int", "note")
	p := b.plan(s, "sets", "shop", "item", "member")
	b.apply(s, fenceOf(1), p, batchOf("a", -1, rowOf("a", 1, "x", 1, nil), rowOf("a", 1, "y", nil, nil), rowOf("a", 2, "x", nil, "n"),
		rowOf("a", 10, "x", 4, nil), rowOf("b", 1, "x", 5, nil), rowOf("b", 1, "z", nil, nil)))
	list := &row.Plan{Table: p.Table, Inputs: p.Inputs, Columns: p.Columns, Key: []int{0, 1, 2}}
	bare := &row.Plan{Table: p.Table, Inputs: p.Inputs, Columns: p.Columns[:3], Key: list.Key}
	text := func(s string) row.Value { return row.String(row.KindText, s) }
	a, b1, none, x, one := text("a"), text("b"), text("none"), text("x"), row.Integer(1)
	key := func(values ...row.Value) []row.Value { return values }
	for _, c := range []struct {
		of   [][]row.Value
		want []string
	}{
		{[][]row.Value{key(a)}, []string{"a 1 x 1", "a 1 y ", "a 2 x 1", "a 10 x 1"}},
		{[][]row.Value{key(a, one)}, []string{"a 1 x 1", "a 1 y "}},
		{[][]row.Value{key(a, one, x)}, []string{"a 1 x 1"}},
		{[][]row.Value{key(none)}, nil},
		{[][]row.Value{key(a), key(none), key(b1)},
			[]string{"a 1 x 1", "a 1 y ", "a 2 x 1", "a 10 x 1", "b 1 x 1", "b 1 z "}},
		{[][]row.Value{key(a, one, x), key(b1, one, x), key(a, row.Integer(7), x)}, []string{"a 1 x 1", "b 1 x 1"}},
	} {
		b.lists(list, s.(flush.KeyLister), c.of, c.want)
		var keys []string
		for _, text := range c.want {
			keys = append(keys, text[:strings.LastIndexByte(text, ' ')])
		}
		b.lists(bare, s.(flush.KeyLister), c.of, keys)
	}
}

// lists checks the keys that KeyRows returns in pages of one, two and many keys. Each of these keys has one of the given beginnings.
func (b *sinkCase) lists(p *row.Plan, lister flush.KeyLister, of [][]row.Value, want []string) {
	b.t.Helper()
	for _, limit := range []int{1, 2, 100} {
		var got []string
		for which := (flush.KeyRange{Of: of, Limit: limit}); ; {
			if len(of) > 1 {
				which.Limit = 100
			}
			rows, err := lister.KeyRows(b.t.Context(), p, which)
			if err != nil || len(rows) > which.Limit {
				b.t.Fatalf("%d rows of %d at a time, %v", len(rows), which.Limit, err)
			}
			for _, texts := range rows {
				got = append(got, strings.Join(texts, " "))
			}
			if len(rows) == 0 || len(of) > 1 {
				break
			}
			last := rows[len(rows)-1]
			n, err := strconv.ParseInt(last[1], 10, 64)
			if err != nil {
				b.t.Fatal(err)
			}
			which.Behind = []row.Value{row.String(row.KindText, last[0]), row.Integer(n), row.String(row.KindText, last[2])}
		}
		if len(of) > 1 {
			slices.Sort(got)
			want = slices.Sorted(slices.Values(want))
		}
		if !slices.Equal(got, want) {
			b.t.Errorf("of %v, %d at a time: %q, want %q", fmt.Sprint(of), limit, got, want)
		}
	}
}
