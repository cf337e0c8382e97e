package sql

import (
	"fmt"
	"testing"

	"baton/internal/flush/row"
)

func TestNamesAreTakenApartAndQuoted(t *testing.T) {
	const standard Quote = `"`
	for _, c := range []struct{ name, quoted, schema, table string }{
		{"t", `"t"`, "", "t"},
		{"s.t", `"s"."t"`, "s", "t"},
		{`"s.x"."t""y"`, `"s.x"."t""y"`, "s.x", `t"y`},
		{`t"; DROP TABLE x --`, `"t; DROP TABLE x --"`, "", "t; DROP TABLE x --"},
		{"", `""`, "", ""},
	} {
		schema, table := standard.Schema(c.name)
		if got := standard.Table(c.name); got != c.quoted || schema != c.schema || table != c.table {
			t.Errorf("%s: %s, schema %q, table %q", c.name, got, schema, table)
		}
		if joined := standard.Join(schema, table); standard.Table(joined) != c.quoted && c.name != "" {
			t.Errorf("%s: joined again it is %s", c.name, joined)
		}
	}
	if got := Quote("`").Ident("a`b"); got != "`a``b`" {
		t.Errorf("quoted: %s", got)
	}
}

func TestSimilarNames(t *testing.T) {
	names := []string{"articles", "Users", "orders", "a"}
	for want, near := range map[string]string{"artcles": "[articles]", "users": "[Users]", "b": "[]", "order": "[orders]",
		"nothing": "[]"} {
		if got := fmt.Sprint(similar(want, names)); got != near {
			t.Errorf("%s: %s", want, got)
		}
	}
}

func TestDeadLetterIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{deadID("j", "b", 0, 0, "r"), deadID("j", "b", 0, 1, "r"), deadID("j", "b", 1, 0, "r"),
		deadID("j", "c", 0, 0, "r"), deadID("k", "b", 0, 0, "r"), deadID("j", "b", 0, 0, "s"), deadID(`j" "b`, "", 0, 0, "r")} {
		if seen[id] || len(id) != 32 {
			t.Errorf("id %q", id)
		}
		seen[id] = true
	}
	if again := deadID("j", "b", 0, 0, "r"); !seen[again] {
		t.Error("not the same each time")
	}
}

func TestPlanCacheForgetsOldPlans(t *testing.T) {
	var c PlanCache[int]
	for range 3 * maxPlans {
		c.Get(&row.Plan{}, func(*row.Plan) int { return 1 })
	}
	if len(c.plans) > maxPlans {
		t.Errorf("%d plans kept", len(c.plans))
	}
}

// The rows before the row at fault are written next, all together. The rows after it form new pieces. Each row is in exactly one of these
// groups.
func TestWhatRemainsOfRefusedPieces(t *testing.T) {
	var all []row.Row
	for i := range 40 {
		all = append(all, row.Row{Values: []row.Value{row.Integer(int64(i))}})
	}
	piece := func(from, to, at int) refusedPiece {
		return refusedPiece{group{rows: all[from:to]}, Refusal{Size: to - from, At: at}}
	}
	parts, ones := remaining([]refusedPiece{piece(0, 8, 3), piece(8, 16, -1), piece(20, 28, 7), piece(30, 38, 0), piece(39, 40, -1)})
	for _, one := range ones {
		parts = append(parts, one.group)
	}
	want := []string{"[8 9 10 11 12 13 14 15] 4 false", "[0 1 2 20 21 22 23 24 25 26] 0 true", "[4 5 6 7 31 32 33 34 35 36 37] 0 false",
		"[3] 0 false", "[27] 0 false", "[30] 0 false", "[39] 0 false"}
	if len(parts) != len(want) {
		t.Fatalf("%d parts", len(parts))
	}
	for i, part := range parts {
		var ids []int64
		for _, r := range part.rows {
			ids = append(ids, r.Values[0].Int())
		}
		if got := fmt.Sprint(ids, part.most, part.passed); got != want[i] {
			t.Errorf("part %d: %s, want %s", i, got, want[i])
		}
	}
	for i, r := range all {
		if r.Values[0].Int() != int64(i) {
			t.Fatal("the batch's rows were changed")
		}
	}
}
