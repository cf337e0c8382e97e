package source

import (
	"fmt"
	"testing"

	"baton/internal/flush/row"
	"baton/internal/flush/source/paging"
	"baton/internal/redisconn"
)

func BenchmarkDecodeItems(b *testing.B) {
	const n = 1000
	var a redisconn.Answers
	for i := range n {
		before := len(a.All)
		a.All = fmt.Appendf(a.All, `{"id":%d,"name":"Somebody With A Name","email":"somebody@example.org","city":"Shenzhen",`+
			`"score":%d,"updated_at":"2026-01-01T12:34:56Z"}`, 100_000+i, i*7)
		a.Sizes = append(a.Sizes, len(a.All)-before)
	}
	items := newItems([]string{"id", "name", "email", "city", "score", "updated_at"}, paging.Bytes(0, 1))
	records := make([]row.Record, 0, n)
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		records = items.decode(records[:0], &a, n)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/n, "cpu-ns/row")
}
