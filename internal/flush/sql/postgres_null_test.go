package sql_test

import (
	"fmt"
	"testing"

	"baton/internal/testsupport"
)

func TestLargeBatchTreatsNullAsZero(t *testing.T) {
	for _, step := range []int{1, -1} { // the first is upserted, the second one is merged
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			db := &bench{Database: testsupport.Postgres(t), t: t}
			db.Exec(t, "CREATE TABLE hits (id int PRIMARY KEY, views int)")
			db.Exec(t, fmt.Sprintf("INSERT INTO hits SELECT i, CASE WHEN i %% 2 = 0 THEN 100 END FROM generate_series(0, %d) i", copied-1))
			s, p := db.flushing("hits", []string{"id"}, "views")
			apply(t, s, fence(1), p, batch("a", 0, many(func(i int) []any { return []any{i, step} })...))
			db.expect("SELECT views, count(*) FROM hits GROUP BY 1 ORDER BY 1", textOf(step, copied/2), textOf(100+step, copied/2))
		})
	}
}
