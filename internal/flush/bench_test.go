package flush

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// benchPage is a page of 5,000 rows of 6 columns of ~150 bytes.
func benchPage(sorted bool) Page {
	const rows = 5000
	order := rand.New(rand.NewPCG(1, 2)).Perm(rows)
	p := Page{Part: -1, Records: make([]Record, rows)}
	for i := range p.Records {
		n := i
		if !sorted {
			n = order[i]
		}
		id := strconv.Itoa(1_000_000 + n)
		p.Records[i] = Record{Key: id, Inputs: []Raw{
			{id, true}, {"Some Person of Number " + id, true}, {id + "@example.com", true},
			{strconv.Itoa(n % 90), true}, {strconv.Itoa(n) + ".25", true}, {"2024-02-29T12:00:00.123456Z", true},
		}}
	}
	return p
}

func benchMapping(b *testing.B) *Mapping {
	m, err := Compile(MappingSpec{Table: "users", Key: []string{"id"}}, Table{Name: "users", Unique: [][]string{{"id"}}, Columns: []Column{
		{Name: "id", Kind: KindInteger, Bits: 64},
		{Name: "name", Kind: KindText, Nullable: true, MaxChars: 100},
		{Name: "email", Kind: KindText, Nullable: true},
		{Name: "age", Kind: KindInteger, Bits: 16, Nullable: true},
		{Name: "balance", Kind: KindNumeric, Precision: 12, Scale: 2, Nullable: true},
		{Name: "seen", Kind: KindTimestamp, Nullable: true},
	}}, Inputs{Names: []string{"id"}, Fields: true})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

func BenchmarkConvertAndCoalesce(b *testing.B) {
	for name, sorted := range map[string]bool{"sorted": true, "random": false} {
		b.Run(name, func(b *testing.B) {
			m, p := benchMapping(b), benchPage(sorted)
			b.ReportAllocs()
			for b.Loop() {
				if got := m.batchOf("id", p, MissingDelete); len(got.Rows) != len(p.Records) {
					b.Fatalf("%d rows, dead: %v", len(got.Rows), got.Dead[:1])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.Records)), "ns/row")
		})
	}
}
