package sqlstore_test

import (
	"fmt"
	"testing"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

// many are as many rows as go by a COPY, and so by a merge.
func many(values func(i int) []any) []flush.Row {
	rows := make([]flush.Row, copied)
	for i := range rows {
		rows[i] = row(values(i)...)
	}
	return rows
}

func TestMergeUpdatesWhatIsThereAndInsertsTheRest(t *testing.T) {
	db := &bench{Database: testsupport.Postgres(t), t: t}
	db.Exec(t, "CREATE TABLE hits (id int PRIMARY KEY, views int NOT NULL)")
	db.Exec(t, fmt.Sprintf("INSERT INTO hits SELECT i, 100 FROM generate_series(0, %d, 2) i", copied-1))
	s := db.open()
	takeOver(t, s, fence(1))
	p := plan(t, s, "hits", []string{"id"}, "views")
	for n := range 2 {
		out := apply(t, s, fence(1), p, batch("a", n, many(func(i int) []any { return []any{i, 1} })...))
		if out.Rows != copied || len(out.Dead) > 0 {
			t.Errorf("%d rows, dead %v", out.Rows, out.Dead)
		}
	}
	db.expect("SELECT views, count(*) FROM hits GROUP BY 1 ORDER BY 1", textOf(2, copied/2), textOf(102, copied/2))
}

// Two texts that the database holds for the same key are two changes of one row.
func TestMergeAddsBothOfTwoKeysThatAreEqualToTheDatabase(t *testing.T) {
	db := &bench{Database: testsupport.Postgres(t), t: t}
	db.Exec(t, `CREATE COLLATION anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TABLE hits (word text COLLATE anycase PRIMARY KEY, views int NOT NULL)`)
	s := db.open()
	takeOver(t, s, fence(1))
	p := plan(t, s, "hits", []string{"word"}, "views")
	rows := many(func(i int) []any { return []any{fmt.Sprint("word ", i), 1} })
	rows[1] = row("WORD 0", 1)
	for n := range 2 { // once they are inserted, once they are there
		out := apply(t, s, fence(1), p, batch("a", n, rows...))
		if out.Rows != copied || len(out.Dead) > 0 {
			t.Errorf("%d rows, dead %v", out.Rows, out.Dead)
		}
	}
	db.expect("SELECT count(*), sum(views) FROM hits", textOf(copied-1, 2*copied))
	db.expect("SELECT views FROM hits WHERE word = 'word 0'", textOf(4))
}

// A trigger sees the same in a large batch as in a small one.
func TestTriggersOfInsertsKeepSeeingEveryRow(t *testing.T) {
	db := &bench{Database: testsupport.Postgres(t), t: t}
	db.people()
	db.Exec(t, `CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.name := upper(new.name); RETURN new; END';
		CREATE TRIGGER shout BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION shout()`)
	s := db.open()
	takeOver(t, s, fence(1))
	p := plan(t, s, "people", []string{"id"})
	for n := range 2 {
		apply(t, s, fence(1), p, batch("a", n, many(func(i int) []any { return []any{i, "ann", n} })...))
		apply(t, s, fence(1), p, batch("b", n, row(1, "ann", n)))
		db.expect("SELECT DISTINCT name FROM people", "ANN")
	}
}
