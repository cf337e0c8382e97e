package sql_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
)

const week = 7 * 24 * time.Hour

// age makes the ledger entries of batches more than a week older.
func (b *bench) age(where string) {
	b.t.Helper()
	old := map[string]string{
		"postgres": "applied_at - interval '8 days'", "mysql": "applied_at - INTERVAL 8 DAY",
		"sqlite": "strftime('%Y-%m-%d %H:%M:%f', applied_at, '-8 days')",
	}[b.Driver]
	b.Exec(b.t, "UPDATE baton_ledger SET applied_at = "+old+" WHERE "+where)
}

func (b *bench) entries(want ...string) {
	b.t.Helper()
	b.expect("SELECT job, batch_id, part FROM baton_ledger ORDER BY job, batch_id, part", want...)
}

func ofShard(shard string, b flush.Batch) flush.Batch {
	b.Shard = shard
	return b
}

func TestPruneKeepsEntriesWhoseStageMayStillBeThere(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s, p := db.flushing("articles", []string{"id"}, "views")
		for _, b := range []flush.Batch{
			ofShard("views:0", batch("a", 0, rowOf(1, 1))), ofShard("views:0", batch("a", 1, rowOf(2, 1))),
			ofShard("views:1", batch("b", 0, rowOf(3, 1))), // the shard was then removed from the configuration
			ofShard("views:0", batch("c", 0, rowOf(1, 1))), // superseded, but not old
			ofShard("views:0", batch("d", 0, rowOf(1, 1))), ofShard("views:0", batch("d", 2, rowOf(2, 1))),
			ofShard("views:0 ", batch("e", 0, rowOf(1, 1))), // in some collations this is the same shard
		} {
			apply(t, s, fence(1), p, b)
		}
		db.age("batch_id <> 'c'")
		if n, err := s.Prune(t.Context(), week); err != nil || n != 2 {
			t.Errorf("pruned %d, %v", n, err)
		}
		db.entries("j|b|0", "j|c|0", "j|d|0", "j|d|2", "j|e|0")

		// A stage that has waited for weeks continues where it stopped.
		if out := apply(t, s, fence(1), p, ofShard("views:1", batch("b", 0, rowOf(3, 1)))); out.Applied {
			t.Error("a part was applied again")
		}
		// After the next batch, whichever process applies it, the old entry is no longer needed.
		apply(t, db.open(), fence(1), p, ofShard("views:1", batch("f", 0, rowOf(3, 1))))
		if n, err := s.Prune(t.Context(), week); err != nil || n != 1 {
			t.Errorf("pruned %d, %v", n, err)
		}
		db.entries("j|c|0", "j|d|0", "j|d|2", "j|e|0", "j|f|0")
	})
}

func TestNewestBatchIsThatOfWhatWasCommitted(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s, p := db.flushing("articles", []string{"id"}, "views")
		long := strings.Repeat("ü", 300)
		apply(t, s, fence(1), p, ofShard(long, batch("a", 0, rowOf(1, 1))))
		takeOver(t, s, fence(2))
		_, err := s.Apply(t.Context(), fence(1), p, ofShard(long, batch("b", 0, rowOf(1, 1))))
		wantFenced(t, err, 2)
		db.age("true")
		if n, err := s.Prune(t.Context(), week); err != nil || n != 0 {
			t.Errorf("pruned %d, %v", n, err)
		}
		apply(t, s, fence(2), p, ofShard(long, batch("b", 0, rowOf(1, 1))))
		if n, err := s.Prune(t.Context(), week); err != nil || n != 1 {
			t.Errorf("pruned %d, %v", n, err)
		}
		db.entries("j|b|0")
	})
}

func TestPruneGoesThroughAnyNumberOfEntries(t *testing.T) {
	emptyEverywhere(t, func(t *testing.T, db *bench) {
		s := db.open()
		if n, err := s.Prune(t.Context(), week); err != nil || n != 0 {
			t.Fatalf("pruned %d of no table, %v", n, err)
		}
		quoted := map[bool]string{true: "`rows`", false: `"rows"`}[db.Driver == "mysql"]
		var values []string
		for i := range 2500 {
			values = append(values, fmt.Sprintf("('j', 'x%d', 0, 1, '2020-01-01 00:00:00')", i))
		}
		db.Exec(t, "INSERT INTO baton_ledger (job, batch_id, part, "+quoted+", applied_at) VALUES "+strings.Join(values, ", "))
		db.Exec(t, "INSERT INTO baton_position (job, shard, position) VALUES ('j', 's', 'x17'), ('other', 's', 'x18')")
		if n, err := s.Prune(t.Context(), week); err != nil || n != 2499 {
			t.Errorf("pruned %d, %v", n, err)
		}
		db.entries("j|x17|0")
	})
}
