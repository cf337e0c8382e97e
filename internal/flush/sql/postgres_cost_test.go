package sql_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"baton/internal/flush/row"
	"baton/internal/testsupport"
)

// BenchmarkABatchAndOneByHand shows that the ledger, the fence and all other parts of a batch cost the server almost nothing. By the
// processor time of its process, a batch costs as much as rows that are copied and upserted by hand.
func BenchmarkABatchAndOneByHand(t *testing.B) {
	const size, there, rounds = 5000, 100_000, 30
	db := testsupport.Postgres(t)
	db.Exec(t, "CREATE TABLE hits (id bigint PRIMARY KEY, views bigint, note varchar(200)) WITH (autovacuum_enabled = off)")
	db.Exec(t, "INSERT INTO hits SELECT i, 0, repeat('x', 100) FROM generate_series(1, $1::int) i", there)
	db.Exec(t, "VACUUM ANALYZE hits")
	o := prepared(t, func(testing.TB) *testsupport.Database { return db })
	s := o.benchStore(t)
	takeOver(t, s, fence(1))
	p := plan(t, s, "hits", []string{"id"}, "views")
	hand, err := pgx.Connect(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer hand.Close(t.Context())
	pid := func() (pid int) { // the process of the store's one connection
		t.Helper()
		if err := hand.QueryRow(t.Context(), "SELECT COALESCE(max(pid), 0) FROM pg_stat_activity WHERE application_name = 'baton' "+
			"AND lower(query) LIKE 'commit%'").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	const pile = "CREATE TEMPORARY TABLE pile (id bigint, views bigint, note varchar(200)) ON COMMIT DELETE ROWS"
	if _, err := hand.Exec(t.Context(), pile); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var ours, byHand time.Duration
	for n := range rounds {
		var rows []row.Row
		var values [][]any
		ids := random.Perm(there)[:2*size] // no row is written twice, because the second write would find its pages in memory
		slices.Sort(ids[:size])
		slices.Sort(ids[size:])
		for i := range size {
			note := fmt.Sprintf("%0100d", random.Uint64())
			rows = append(rows, rowOf(ids[i]+1, 1, note))
			values = append(values, []any{int64(ids[size+i] + 1), int64(1), note})
		}
		store, other := pid(), int(hand.PgConn().PID())
		before, beforeByHand := cpuOf(t, store), cpuOf(t, other)
		apply(t, s, fence(1), p, batch("a", n, rows...))
		between := cpuOf(t, store)
		err := pgx.BeginFunc(t.Context(), hand, func(tx pgx.Tx) error {
			_, err := tx.CopyFrom(t.Context(), pgx.Identifier{"pile"}, []string{"id", "views", "note"}, pgx.CopyFromRows(values))
			if err == nil {
				_, err = tx.Exec(t.Context(), "INSERT INTO hits AS t SELECT * FROM pile ON CONFLICT (id) DO UPDATE "+
					"SET views = t.views + excluded.views, note = excluded.note")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n >= rounds/5 && store > 0 { // both sides have prepared their statements
			ours, byHand = ours+between-before, byHand+cpuOf(t, other)-beforeByHand
		}
	}
	ratio := ours.Seconds() / byHand.Seconds()
	t.Logf("%v of processor time, by hand %v: %.2f ×", ours, byHand, ratio)
	if byHand == 0 || ratio > 1.15 {
		t.Errorf("batches cost the server %.2f × of what they cost by hand, want 1.15 × at most", ratio)
	}
}

// cpuOf returns the processor time of a process that has one thread.
func cpuOf(t testing.TB, pid int) time.Duration {
	t.Helper()
	if pid == 0 {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var ns int64
	if _, err := fmt.Sscan(string(b), &ns); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ns)
}
