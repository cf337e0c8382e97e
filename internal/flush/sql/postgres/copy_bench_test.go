package postgres

import (
	"fmt"
	"io"
	"testing"
	"time"

	"baton/internal/flush/row"
)

// BenchmarkEncodeCopy encodes a page of 5,000 rows with 6 columns. Each row has about 100 bytes.
func BenchmarkEncodeCopy(b *testing.B) {
	plan := &row.Plan{Table: row.Table{Name: "users"}}
	for i, kind := range []row.Kind{row.KindInteger, row.KindText, row.KindText, row.KindInteger, row.KindNumeric, row.KindTimestamp} {
		plan.Columns = append(plan.Columns, row.PlanColumn{Column: row.Column{Name: fmt.Sprint("c", i), Kind: kind}})
	}
	rows := make([]row.Row, 5000)
	for i := range rows {
		rows[i].Values = []row.Value{
			row.Integer(int64(i)), row.String(row.KindText, fmt.Sprint("Some Person of Number ", i)),
			row.String(row.KindText, fmt.Sprint(i, "@example.com")), row.Integer(int64(i % 90)),
			row.String(row.KindNumeric, fmt.Sprint(i, ".25")), row.Timestamp(time.Unix(1_700_000_000+int64(i), 0)),
		}
	}
	compiled := compile(plan)
	piece, whole := make([]byte, 64<<10), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		r := &copyReader{columns: compiled.columns, rows: rows, whole: whole[:0]}
		size := 0
		for {
			n, err := r.Read(piece)
			if size += n; err == io.EOF { //nolint:errorlint // a reader's end is never wrapped
				break
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if whole = r.whole; size < 90*len(rows) {
			b.Fatalf("%d bytes of %d rows", size, len(rows))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(rows)), "ns/row")
}
