package sql_test

import (
	"strconv"
	"testing"

	"baton/internal/flush/row"
	"baton/internal/flush/sql/sqltest"
)

// A deletion must free the unique value of its row before another row uses that value.
func TestApplyDeletesBeforeItInserts(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE u (id int PRIMARY KEY, mail varchar(9) UNIQUE)",
			"CREATE TABLE u (id int PRIMARY KEY, mail varchar(9) UNIQUE)",
			"CREATE TABLE u (id int PRIMARY KEY, mail varchar(9) UNIQUE)")
		db.Exec(t, "INSERT INTO u VALUES (2, 'x')")
		s, p := db.flushing("u", []string{"id"})
		out := apply(t, s, fence(1), p, batch("1", -1, rowOf(1, "x"), gone(2, 2)))
		if len(out.Dead) > 0 {
			t.Errorf("dead letters: %+v", out.Dead)
		}
		db.expect("SELECT id, mail FROM u", "1|x")
	})
}

// The sizes need MySQL statements of every length, and all rows must arrive.
func TestApplyWritesBatchesOfAnySize(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s, p := db.flushing("articles", []string{"id"}, "views")
		for n, size := range []int{0, 1, 2, 3, 999, 1000, 1001, 5000} {
			var rows, deletes []row.Row
			for i := range size {
				rows = append(rows, rowOf(i, 1))
				deletes = append(deletes, gone(2, i))
			}
			apply(t, s, fence(1), p, batch("add", n, rows...))
			apply(t, s, fence(1), p, batch("add again", n, rows...))
			db.expect("SELECT count(*), COALESCE(sum(views), 0) FROM articles", strconv.Itoa(size)+"|"+strconv.Itoa(2*size))
			apply(t, s, fence(1), p, batch("delete", n, deletes...))
			db.expect("SELECT count(*) FROM articles", "0")
		}
	})
}

func TestApplyQuotesWhateverATableIsCalled(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create(
			`CREATE SCHEMA "my schema"; CREATE TABLE "my schema"."or.der ""x""" ("group" int PRIMARY KEY, "a'b" int)`,
			"CREATE TABLE `or.der \"x\"` (`group` int PRIMARY KEY, `a'b` int)",
			`CREATE TABLE "or.der ""x""" ("group" int PRIMARY KEY, "a'b" int)`)
		name := map[string]string{
			"postgres": `"my schema"."or.der ""x"""`, "mysql": "`or.der \"x\"`", "sqlite": `"or.der ""x"""`,
		}[db.Driver]
		s, p := db.flushing(name, []string{"group"}, "a'b")
		apply(t, s, fence(1), p, batch("1", 0, rowOf(1, 2), gone(2, 3)))
		apply(t, s, fence(1), p, batch("1", 1, rowOf(1, 2)))
		db.expect("SELECT * FROM "+name, "1|4")
	})
}

// The column batch_id of a ledger entry names the stage of its batch, because Prune and operators need it. Only batches that need an entry
// have one.
func TestLedgerSaysOfWhichStageABatchWas(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s, p := db.flushing("articles", []string{"id"}, "views")
		apply(t, s, fence(1), p, batch("none", -1, rowOf(1, 5)))
		apply(t, s, fence(1), p, moving("", "1", rowOf(1, 5)))
		apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		apply(t, s, fence(1), p, batch("b", 0, rowOf(1, 5)))
		renamed := batch("b", 1, rowOf(1, 5), rowOf(2, 5))
		renamed.Job = "old"
		apply(t, s, fence(1), p, renamed)
		db.expect("SELECT job, batch_id, part, "+quoted(db, "rows")+" FROM baton_ledger ORDER BY batch_id, part", "j|a|0|1", "j|b|0|1",
			"old|b|1|2")
		db.expect("SELECT job, position FROM baton_position WHERE position <> '1' ORDER BY job", "j|b", "old|b")
	})
}

func TestPanicInATransactionLeavesItNotOpen(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		boom := true
		s := db.observing(func(step sqltest.Step) error {
			if boom && step == sqltest.StepAfterRows {
				panic("boom")
			}
			return nil
		}).open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		for range 10 { // more often than the pool has connections
			func() {
				defer func() { _ = recover() }()
				_, err := s.Apply(t.Context(), fence(1), p, batch("a", 0, rowOf(1, 5)))
				t.Errorf("no panic, but %v", err)
			}()
		}
		boom = false
		apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
		db.expect("SELECT views FROM articles", "5")
	})
}
