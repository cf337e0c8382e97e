package mapping

import (
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"baton/internal/flush/row"
)

// benchRecords returns a page of 5,000 rows with 6 columns and about 150 bytes each.
func benchRecords(sorted bool) []row.Record {
	const rows = 5000
	order := rand.New(rand.NewPCG(1, 2)).Perm(rows)
	records := make([]row.Record, rows)
	for i := range records {
		n := i
		if !sorted {
			n = order[i]
		}
		id := strconv.Itoa(1_000_000 + n)
		records[i] = row.Record{Key: id, Inputs: []row.Raw{
			{Text: id, OK: true}, {Text: "Some Person of Number " + id, OK: true}, {Text: id + "@example.com", OK: true},
			{Text: strconv.Itoa(n % 90), OK: true}, {Text: strconv.Itoa(n) + ".25", OK: true},
			{Text: "2024-02-29T12:00:00.123456Z", OK: true},
		}}
	}
	return records
}

func benchMapping(b *testing.B) *Mapping {
	m, err := Compile(Spec{Table: "users", Key: []string{"id"}}, row.Table{Name: "users", Unique: [][]string{{"id"}}, Columns: []row.Column{
		{Name: "id", Kind: row.KindInteger, Bits: 64},
		{Name: "name", Kind: row.KindText, Nullable: true, MaxChars: 100},
		{Name: "email", Kind: row.KindText, Nullable: true},
		{Name: "age", Kind: row.KindInteger, Bits: 16, Nullable: true},
		{Name: "balance", Kind: row.KindNumeric, Precision: 12, Scale: 2, Nullable: true},
		{Name: "seen", Kind: row.KindTimestamp, Nullable: true},
	}}, row.Inputs{Names: []string{"id"}, Fields: true})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func BenchmarkConvertAndCoalesce(b *testing.B) {
	for name, sorted := range map[string]bool{"sorted": true, "random": false} {
		b.Run(name, func(b *testing.B) {
			m, records := benchMapping(b), benchRecords(sorted)
			b.ReportAllocs()
			before := cpuTime(b)
			var space Space
			for b.Loop() {
				if rows, dead := m.Rows(records, MissingDelete, &space); len(rows) != len(records) {
					b.Fatalf("%d rows, dead: %v", len(rows), dead[:1])
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/float64(len(records)), "cpu-ns/row")
		})
	}
}

// cpuTime returns the processor time of this process, including its garbage collector.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
