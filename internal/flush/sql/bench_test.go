package sql_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/testsupport"
)

const benchRows = 1000

// BenchmarkApply writes batches of rows of about 150 bytes over existing rows.
func BenchmarkApply(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			db := kind.make(b)
			rows, p, s := benchTable(b, db)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := s.Apply(b.Context(), fence(1), p, batch(fmt.Sprint("b", n), 0, rows(n)...)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*benchRows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkDirectUnnest writes to PostgreSQL by hand-written SQL in the fastest direct way, without fence and ledger. BenchmarkApply is
// compared with it.
func BenchmarkDirectUnnest(b *testing.B) {
	db := testsupport.Postgres(b)
	rows, _, _ := benchTable(b, db)
	conn, err := pgx.Connect(b.Context(), db.DSN)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		var ids, scores []int64
		var names, mails, notes []string
		var ok []bool
		for _, r := range rows(n) {
			ids, names, mails = append(ids, r.Values[0].Int()), append(names, r.Values[1].Text()), append(mails, r.Values[2].Text())
			notes, scores, ok = append(notes, r.Values[3].Text()), append(scores, r.Values[4].Int()), append(ok, r.Values[5].Bool())
		}
		_, err := conn.Exec(b.Context(), `INSERT INTO people
			SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::int8[], $6::bool[])
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, mail = excluded.mail, note = excluded.note,
				score = excluded.score, ok = excluded.ok`,
			ids, names, mails, notes, scores, ok)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*benchRows)/b.Elapsed().Seconds(), "rows/s")
}

func benchTable(b *testing.B, db *testsupport.Database) (func(int) []row.Row, *row.Plan, flush.Sink) {
	b.Helper()
	const total = 50 * benchRows
	db.Exec(b, "CREATE TABLE people (id bigint PRIMARY KEY, name varchar(40), mail varchar(60), note text, score bigint, ok boolean)")
	o := &bench{Database: db}
	s := o.benchStore(b)
	if err := s.TakeOver(b.Context(), fence(1)); err != nil {
		b.Fatal(err)
	}
	table, err := s.Table(b.Context(), "people")
	if err != nil {
		b.Fatal(err)
	}
	p := &row.Plan{Table: table, Key: []int{0}}
	for _, c := range table.Columns {
		p.Columns = append(p.Columns, row.PlanColumn{Column: c})
	}
	random := rand.New(rand.NewPCG(1, 2))
	rows := func(n int) []row.Row {
		out := make([]row.Row, benchRows)
		for i := range out {
			id := (n*benchRows + i) % total
			out[i] = rowOf(id, fmt.Sprintf("name of %d", id), fmt.Sprintf("somebody.%d@example.org", random.IntN(1e6)),
				"a note that is some sixty characters long, to make up a row", random.IntN(1e9), id%2 == 0)
			out[i].Record = row.Record{}
		}
		return out
	}
	pages := make([][]row.Row, total/benchRows)
	for n := range pages {
		pages[n] = rows(n)
		if _, err := s.Apply(b.Context(), fence(1), p, batch("fill", n, pages[n]...)); err != nil {
			b.Fatal(err)
		}
	}
	return func(n int) []row.Row { return pages[n%len(pages)] }, p, s
}
