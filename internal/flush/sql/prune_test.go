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

// Long rows take long to delete. A trigger stands for a time limit of the server that allows only some rows in one statement.
func TestPruneKeptDeletesFewerRowsAfterATimeout(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		s := db.open()
		for i := range 300 {
			db.Exec(t, fmt.Sprintf("INSERT INTO baton_deleted (lock_key, job, table_name, row_key, old_row, why, epoch, at, keep_until) "+
				"VALUES ('', 'j', 'people', '{\"id\":%d}', '{}', 'missing', 1, '2020-01-01 00:00:00', '2020-01-02 00:00:00')", i))
		}
		db.allowDeletions(100)
		if n, err := s.PruneKept(t.Context()); err != nil || n != 300 {
			t.Errorf("pruned %d, %v", n, err)
		}
		db.expect("SELECT count(*) FROM baton_deleted", "0")
		db.Exec(t, "INSERT INTO baton_deleted (lock_key, job, table_name, row_key, old_row, why, epoch, at, keep_until) "+
			"VALUES ('', 'j', 'people', '{}', '{}', 'missing', 1, '2020-01-01 00:00:00', '2020-01-02 00:00:00')")
		db.allowDeletions(0)
		n, err := s.PruneKept(t.Context())
		if n != 0 || err == nil || !strings.Contains(err.Error(), "the oldest row could not be deleted") {
			t.Errorf("pruned %d, %v", n, err)
		}
	})
}

// allowDeletions makes the server refuse a statement that deletes more than this number of kept rows, with the error of a timeout.
func (b *bench) allowDeletions(most int) {
	b.t.Helper()
	if b.Driver == "mysql" { // the time of a statement does not change while the statement runs
		b.Exec(b.t, "DROP TRIGGER IF EXISTS slow")
		b.Exec(b.t, fmt.Sprintf("CREATE TRIGGER slow BEFORE DELETE ON baton_deleted FOR EACH ROW BEGIN "+
			"IF NOT (@began <=> NOW(6)) THEN SET @began = NOW(6), @deleted = 0; END IF; SET @deleted = @deleted + 1; "+
			"IF @deleted > %d THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1969, MESSAGE_TEXT = 'timeout'; END IF; END", most))
		return
	}
	b.Exec(b.t, fmt.Sprintf("CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "+
		"IF (SELECT count(*) FROM gone) > %d THEN RAISE EXCEPTION 'timeout' USING ERRCODE = '57014'; END IF; RETURN NULL; END $$", most))
	b.Exec(b.t, "CREATE OR REPLACE TRIGGER slow AFTER DELETE ON baton_deleted REFERENCING OLD TABLE AS gone "+
		"FOR EACH STATEMENT EXECUTE FUNCTION slow()")
}
