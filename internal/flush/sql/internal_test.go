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
