package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// BenchmarkDeletes measures what it costs to keep the deleted rows: batches that delete 1,000 rows each, with keep_deleted and without.
func BenchmarkDeletes(b *testing.B) {
	const rows = 1000
	for _, kind := range kinds {
		for _, keeps := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/keep=%t", kind.name, keeps), func(b *testing.B) {
				db := prepared(b, kind.make)
				db.people()
				s := db.benchStore(b)
				takeOver(b, s, fence(1))
				p := plan(b, s, "people", []string{"id"})
				var deleted []row.Row
				var values []string
				for i := range rows {
					deleted = append(deleted, gone(3, i))
					values = append(values, fmt.Sprintf("(%d, 'name %d', 30)", i, i))
				}
				batch := batch("a", -1, deleted...)
				if keeps {
					batch = keeping(batch)
				}
				for b.Loop() {
					b.StopTimer()
					db.Exec(b, "INSERT INTO people VALUES "+strings.Join(values, ", "))
					b.StartTimer()
					apply(b, s, fence(1), p, batch)
				}
				b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
