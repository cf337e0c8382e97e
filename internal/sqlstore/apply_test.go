package sqlstore_test

import (
	"strconv"
	"testing"

	"baton/internal/flush"
	"baton/internal/sqlstore"
)

func TestApplyInsertsUpdatesAndDeletes(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "people", []string{"id"})
		out := apply(t, s, fence(1), p, batch("a", -1, row(1, "Ann", 30), row(2, "Bob", nil), row(3, "Cid", 9)))
		if !out.Applied || out.Rows != 3 || len(out.Dead) != 0 {
			t.Errorf("outcome %+v", out)
		}
		apply(t, s, fence(1), p, batch("b", -1, row(1, "Anna", nil), gone(3, 2), row(4, "Dan", 4), gone(3, 5)))
		db.expect("SELECT id, name, age FROM people ORDER BY id", "1|Anna|NULL", "3|Cid|9", "4|Dan|4")
	})
}

func TestApplyAddsAndTreatsNullAsZero(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		db.Exec(t, "INSERT INTO articles VALUES (1, NULL), (2, 10)")
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		apply(t, s, fence(1), p, batch("a", 0, row(1, 5), row(2, -3), row(3, 7)))
		apply(t, s, fence(1), p, batch("a", 1, row(2, nil), row(3, 1)))
		db.expect("SELECT id, views FROM articles ORDER BY id", "1|5", "2|7", "3|8")
	})
}

func TestApplyFindsRowsByCompositeKey(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create(
			"CREATE TABLE c (a varchar(9), v int, b int, PRIMARY KEY (a, b))",
			"CREATE TABLE c (a varchar(9), v int, b int, PRIMARY KEY (a, b))",
			"CREATE TABLE c (a varchar(9), v int, b int, PRIMARY KEY (a, b))")
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "c", []string{"a", "b"})
		apply(t, s, fence(1), p, batch("1", -1, row("x", 1, 1), row("x", 2, 2), row("y", 3, 1)))
		del := row("x", nil, 1)
		del.Delete = true
		other := row("y", nil, 2)
		other.Delete = true
		apply(t, s, fence(1), p, batch("2", -1, del, row("x", 20, 2), other))
		db.expect("SELECT a, b, v FROM c ORDER BY a, b", "x|2|20", "y|1|3")
	})
}

func TestApplyWithoutAKeyInsertsEveryRow(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE log (line text)", "CREATE TABLE log (line text)", "CREATE TABLE log (line text)")
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "log", nil)
		apply(t, s, fence(1), p, batch("1", 0, row("a"), row("a"), row("b")))
		db.expect("SELECT line FROM log ORDER BY line", "a", "a", "b")
	})
}

func TestApplyOfKeyColumnsOnlyLeavesWhatIsThere(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE seen (id int PRIMARY KEY)", "CREATE TABLE seen (id int PRIMARY KEY)", "CREATE TABLE seen (id int PRIMARY KEY)")
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "seen", []string{"id"})
		apply(t, s, fence(1), p, batch("1", -1, row(1), row(2)))
		apply(t, s, fence(1), p, batch("2", -1, row(2), row(3)))
		db.expect("SELECT id FROM seen ORDER BY id", "1", "2", "3")
	})
}

// A deleted row gives its unique value free before another row takes it.
func TestApplyDeletesBeforeItInserts(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE u (id int PRIMARY KEY, mail varchar(9) UNIQUE)",
			"CREATE TABLE u (id int PRIMARY KEY, mail varchar(9) UNIQUE)",
			"CREATE TABLE u (id int PRIMARY KEY, mail varchar(9) UNIQUE)")
		db.Exec(t, "INSERT INTO u VALUES (2, 'x')")
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "u", []string{"id"})
		out := apply(t, s, fence(1), p, batch("1", -1, row(1, "x"), gone(2, 2)))
		if len(out.Dead) > 0 {
			t.Errorf("dead letters: %+v", out.Dead)
		}
		db.expect("SELECT id, mail FROM u", "1|x")
	})
}

// Every size of a MySQL statement occurs, and the rows of all of them arrive.
func TestApplyWritesBatchesOfAnySize(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		for n, size := range []int{0, 1, 2, 3, 999, 1000, 1001, 5000} {
			var rows, deletes []flush.Row
			for i := range size {
				rows = append(rows, row(i, 1))
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
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, name, []string{"group"}, "a'b")
		apply(t, s, fence(1), p, batch("1", 0, row(1, 2), gone(2, 3)))
		apply(t, s, fence(1), p, batch("1", 1, row(1, 2)))
		db.expect("SELECT * FROM "+name, "1|4")
	})
}

func TestLedgerAppliesABatchOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		for _, want := range []bool{true, false, false} {
			out := apply(t, s, fence(1), p, batch("a", 0, row(1, 5)))
			if out.Applied != want {
				t.Errorf("applied = %v, want %v", out.Applied, want)
			}
		}
		apply(t, s, fence(1), p, batch("a", 1, row(1, 5))) // another part
		apply(t, s, fence(1), p, batch("b", 0, row(1, 5))) // another batch
		db.expect("SELECT views FROM articles", "15")
		quoted := map[string]string{"postgres": `"rows"`, "mysql": "`rows`", "sqlite": `"rows"`}[db.Driver]
		db.expect("SELECT job, batch_id, part, "+quoted+" FROM baton_ledger ORDER BY batch_id, part", "j|a|0|1", "j|a|1|1", "j|b|0|1")
	})
}

func TestBatchWithoutLedgerMayBeAppliedAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "people", []string{"id"})
		b := batch("a", -1, row(1, "Ann", 1), row(2, "far too long a name", 2))
		b.Dead = []flush.DeadLetter{{Record: `{"key":"3"}`, Error: "not a number"}}
		for range 2 {
			if out := apply(t, s, fence(1), p, b); !out.Applied || len(out.Dead) != 2 {
				t.Errorf("outcome %+v", out)
			}
		}
		db.expect("SELECT id, name FROM people", "1|Ann")
		db.expect("SELECT count(*) FROM baton_dead_letter", "2")
		db.expect("SELECT count(*) FROM baton_ledger", "0")
	})
}

// A job that was renamed finishes what it has staged under its old name.
func TestLedgerKnowsABatchByTheNameOfItsStage(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		apply(t, s, fence(1), p, batch("a", 0, row(1, 5)))
		renamed := fence(2)
		renamed.Job = "renamed"
		takeOver(t, s, renamed)
		for part, applied := range []bool{false, true, false} {
			b := batch("a", part%2, row(1, 7))
			b.Job = "j"
			if out := apply(t, s, renamed, p, b); out.Applied != applied {
				t.Errorf("try %d: %+v", part, out)
			}
		}
		db.expect("SELECT views FROM articles", "12")
		db.expect("SELECT job, batch_id, part FROM baton_ledger ORDER BY part", "j|a|0", "j|a|1")
		db.expect("SELECT job, position FROM baton_position", "j|a")
	})
}

func TestPanicInATransactionLeavesItNotOpen(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		boom := true
		s := db.open(observing(func(step sqlstore.Step) error {
			if boom && step == sqlstore.StepAfterRows {
				panic("boom")
			}
			return nil
		}))
		takeOver(t, s, fence(1))
		p := plan(t, s, "articles", []string{"id"}, "views")
		for range 10 { // more often than there are connections
			func() {
				defer func() { _ = recover() }()
				_, err := s.Apply(t.Context(), fence(1), p, batch("a", 0, row(1, 5)))
				t.Errorf("no panic, but %v", err)
			}()
		}
		boom = false
		apply(t, s, fence(1), p, batch("a", 0, row(1, 5)))
		db.expect("SELECT views FROM articles", "5")
	})
}
