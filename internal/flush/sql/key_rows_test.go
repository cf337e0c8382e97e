package sql_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// A table that was just filled has no statistics yet. One key may have all rows of the table. Every page must be read through the index, up
// to the limit, because otherwise a key of a million members takes minutes.
func TestPagesOfKeysFollowTheIndexWithoutStatistics(t *testing.T) {
	type words struct {
		explain, option string
		bad, badOfOne   []string // badOfOne is bad only in a query for a single key
	}
	by := map[string]words{
		"postgres": {"EXPLAIN", " WITH (autovacuum_enabled = off)", []string{"Seq Scan"}, []string{"  Sort", "Bitmap"}},
		"mysql": {"EXPLAIN", " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin STATS_PERSISTENT=1 STATS_AUTO_RECALC=0",
			[]string{"filesort", "temporary", " ALL "}, nil},
		"sqlite": {"EXPLAIN QUERY PLAN", "", []string{"SCAN sets\n", "TEMP B-TREE"}, nil},
	}
	everywhere(t, func(t *testing.T, db *bench) {
		w := by[db.Driver]
		db.Exec(t, "CREATE TABLE sets (shop varchar(60), item integer, member integer, score integer, note varchar(200), "+
			"PRIMARY KEY (shop, item, member))"+w.option)
		s := db.open()
		p := plan(t, s, "sets", []string{"shop", "item", "member", "score"})
		p.Key = p.Key[:3]
		p.Columns[3].Nullable = true
		db.Exec(t, "INSERT INTO sets VALUES ('big', 7, 0, 1, 'a note that has some length')")
		for n := 1; n < 100_000; n *= 2 {
			db.Exec(t, "INSERT INTO sets SELECT shop, item, member + "+strconv.Itoa(n)+", score, note FROM sets")
		}
		big, seven, middle := row.String(row.KindText, "big"), row.Integer(7), row.Integer(50_000)
		behind := []row.Value{big, seven, middle}
		var many [][]row.Value
		for i := range 64 {
			many = append(many, []row.Value{row.String(row.KindText, strconv.Itoa(i))})
		}
		few := [][]row.Value{{big, seven}, {big, row.Integer(8)}, {row.String(row.KindText, "other"), seven}}
		for name, which := range map[string]flush.KeyRange{
			"all":                 {},
			"all, behind a key":   {Behind: behind},
			"one column":          {Of: [][]row.Value{{big}}},
			"one column, behind":  {Of: [][]row.Value{{big}}, Behind: behind},
			"two columns":         {Of: few[:1]},
			"two columns, behind": {Of: few[:1], Behind: behind},
			"one column of some":  {Of: [][]row.Value{{big}, {row.String(row.KindText, "other")}}},
			"two columns of some": {Of: few},
			"one column of many":  {Of: many},
			"all columns":         {Of: [][]row.Value{behind}},
			"all columns of some": {Of: [][]row.Value{behind, {big, seven, row.Integer(3)}}},
		} {
			which.Limit = 1000
			answer, err := s.ExplainKeyRows(t.Context(), w.explain, p, which)
			if err != nil {
				t.Fatal(err)
			}
			text, bad := strings.Join(answer, "\n")+"\n", w.bad
			if len(which.Of) < 2 {
				bad = slices.Concat(bad, w.badOfOne)
			}
			if slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(text, b) }) {
				t.Errorf("%s is not read through the index alone:\n%s", name, text)
			}
		}
	})
}
