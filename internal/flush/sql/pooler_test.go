package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/sqltest"
	"baton/internal/testsupport"
)

func TestAPoolerKeepsThePromisesOfAnyDatabase(t *testing.T) {
	t.Parallel()
	flushtest.Sink(t, func(t *testing.T) flushtest.SinkHarness { return prepared(t, testsupport.Pooled).conformance() })
}

// The test repeats batches that use every way to write, because each transaction gets another session of the server.
func TestEveryWayToWriteGoesThroughAPooler(t *testing.T) {
	t.Parallel()
	db := &bench{Database: testsupport.Pooled(t), t: t}
	db.people()
	s := db.leading() // leading also creates baton's tables
	s2 := db.open()
	takeOver(t, s2, fence(1))
	p := plan(t, s, "people", []string{"id"})
	var many []row.Row
	for id := range 2 * 1000 {
		many = append(many, rowOf(id, "Ann", id))
	}
	for n := range 8 {
		store := []*sql.Store{s, s2}[n%2]
		apply(t, store, fence(1), p, batch(fmt.Sprint("copied ", n), 0, many...))
		apply(t, store, fence(1), p, batch(fmt.Sprint("array ", n), 0, many[:10]...))
		bad := append([]row.Row{rowOf(5000+n, "much too long a name", 1), rowOf(6000+n, "Bob", -1)}, many[:50]...)
		if out := apply(t, store, fence(1), p, batch(fmt.Sprint("refused ", n), 0, bad...)); len(out.Dead) != 2 {
			t.Errorf("%d dead letters, want 2: %+v", len(out.Dead), out.Dead)
		}
	}
	db.expect("SELECT count(*), sum(age) FROM people", "2000|1999000")
	db.expect("SELECT count(*) FROM baton_dead_letter", "16")
	// A transaction must leave no objects in the sessions of the server.
	db.expect("SELECT count(*) FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'pg_temp%'", "0")
	if findings, _ := s.Preflight(t.Context(), false); !strings.Contains(fmt.Sprint(findings), "through a pooler") {
		t.Errorf("%+v, want to be told of the pooler", findings)
	}
}

// Wherever a transaction ends, applying the batch again is exact.
func TestABatchIsExactWhereverItsTransactionEndsBehindAPooler(t *testing.T) {
	t.Parallel()
	for _, stop := range sqltest.Steps() {
		t.Run(string(stop), func(t *testing.T) {
			db := prepared(t, testsupport.Pooled)
			db.articles()
			var once sync.Once
			stopped := errors.New("stopped")
			s := db.observing(func(step sqltest.Step) (err error) {
				if step == stop {
					once.Do(func() { err = stopped })
				}
				return err
			}).open()
			if err := persistTakeOver(t, s, fence(1)); err != nil {
				t.Fatal(err)
			}
			p := plan(t, s, "articles", []string{"id"}, "views")
			persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 1), rowOf(2, 2)))
			if out := persist(t, s, fence(1), p, batch("a", 0, rowOf(1, 1), rowOf(2, 2))); out.Applied {
				t.Error("the batch was applied again")
			}
			db.expect("SELECT id, views FROM articles ORDER BY id", "1|1", "2|2")
		})
	}
}

// In statement mode there are no transactions.
func TestAPoolerInStatementModeIsRefusedByName(t *testing.T) {
	t.Parallel()
	db := *onPostgres(t)
	direct := *db.Database
	direct.DSN = testsupport.PgBouncer(t, &direct, "statement")
	b := &bench{Database: &direct, t: t}
	s := b.open()
	err := s.TakeOver(t.Context(), fence(1))
	if err == nil || !strings.Contains(err.Error(), "statement mode") || errors.Is(err, flush.ErrFenced) {
		t.Errorf("take over: %v", err)
	}
	_, err = s.Table(t.Context(), "articles")
	if err == nil || !strings.Contains(err.Error(), "statement mode") {
		t.Errorf("read the catalogue: %v", err)
	}
	expectFinding(t, s, "statement mode")
}

// The settings in the DSN apply to each transaction.
func TestSettingsOfTheDSNGoThroughAPooler(t *testing.T) {
	t.Parallel()
	db := testsupport.Pooled(t)
	db.Exec(t, "CREATE SCHEMA shop")
	db.DSN += "&search_path=shop&options=-c%20statement_timeout%3D700"
	b := &bench{Database: db, t: t}
	b.Exec(t, "CREATE TABLE shop.seen (id bigint PRIMARY KEY, v text DEFAULT current_setting('statement_timeout'))")
	s := b.leading()
	p := plan(t, s, "seen", []string{"id"})
	p.Columns = p.Columns[:1]
	for n := range 5 {
		apply(t, s, fence(1), p, batch(fmt.Sprint(n), 0, rowOf(n)))
	}
	b.expect("SELECT DISTINCT v FROM shop.seen", "700ms")
	b.expect("SELECT count(*) FROM shop.baton_ledger", "5")
}

// BenchmarkPooler measures the cost of a pooler, in rows per second, for batches of 100 and of 5,000 rows.
func BenchmarkPooler(b *testing.B) {
	for _, size := range []int{100, 5000} {
		for name, make := range map[string]func(testing.TB) *testsupport.Database{
			"direct": testsupport.Postgres, "pooled": testsupport.Pooled,
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				db := prepared(b, make)
				db.articles()
				s := db.benchStore(b)
				takeOver(b, s, fence(1))
				p := plan(b, s, "articles", []string{"id"}, "views")
				var rows []row.Row
				for id := range size {
					rows = append(rows, rowOf(id, 1))
				}
				n := 0
				for b.Loop() {
					n++
					apply(b, s, fence(1), p, batch(fmt.Sprint(n), 0, rows...))
				}
				b.ReportMetric(float64(n*size)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
