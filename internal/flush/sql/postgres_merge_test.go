package sql_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// many returns so many rows that they are sent by a COPY.
func many(values func(i int) []any) []row.Row {
	rows := make([]row.Row, copied)
	for i := range rows {
		rows[i] = rowOf(values(i)...)
	}
	return rows
}

func TestLargeBatchUpdatesWhatIsThereAndInsertsTheRest(t *testing.T) {
	for _, step := range []int{1, -1} { // the first batch is upserted, the second one is merged
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			db := onPostgres(t)
			db.Exec(t, "CREATE TABLE hits (id int PRIMARY KEY, views int NOT NULL)")
			db.Exec(t, fmt.Sprintf("INSERT INTO hits SELECT i, 100 FROM generate_series(0, %d, 2) i", copied-1))
			s, p := db.flushing("hits", []string{"id"}, "views")
			for n := range 2 {
				out := apply(t, s, fence(1), p, batch("a", n, many(func(i int) []any { return []any{i, step} })...))
				if out.Rows != copied || len(out.Dead) > 0 {
					t.Errorf("%d rows, dead %v", out.Rows, out.Dead)
				}
			}
			db.expect("SELECT views, count(*) FROM hits GROUP BY 1 ORDER BY 1", textOf(2*step, copied/2), textOf(100+2*step, copied/2))
		})
	}
}

// Subtracting from many rows is one statement, also in a small batch. A row becomes a dead letter only if its value would fall below the
// column's limit, or would start there.
func TestBatchThatTakesAwayRefusesOnlyWhatFallsTooLow(t *testing.T) {
	for _, n := range []int{copied, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			db := onPostgres(t)
			db.Exec(t, "CREATE TABLE hits (id int PRIMARY KEY, views int NOT NULL CHECK (views >= 0))")
			db.Exec(t, fmt.Sprintf("INSERT INTO hits SELECT i, CASE i WHEN 2 THEN 0 ELSE 100 END FROM generate_series(0, %d, 2) i", n-1))
			s, p := db.flushing("hits", []string{"id"}, "views")
			rows := many(func(i int) []any { return []any{i, i%2*2 - 1} })[:n] // subtracts from the existing rows
			rows[7] = rowOf(7, -1)
			out := apply(t, s, fence(1), p, batch("a", 0, rows...))
			if out.Rows != int64(n)-2 || len(out.Dead) != 2 {
				t.Errorf("%d rows, dead %v", out.Rows, out.Dead)
			}
			db.expect("SELECT views, count(*) FROM hits GROUP BY 1 ORDER BY 1", textOf(0, 1), textOf(1, n/2-1), textOf(99, n/2-1))
		})
	}
}

// If two texts are the same key for the database, they are two changes of one row.
func TestLargeBatchAddsBothOfTwoKeysThatAreEqualToTheDatabase(t *testing.T) {
	for _, step := range []int{1, -1} { // the first is upserted, the second one is merged
		t.Run(fmt.Sprint(step), func(t *testing.T) { addBothOfTwoEqualKeys(t, step) })
	}
}

func addBothOfTwoEqualKeys(t *testing.T, step int) {
	db := onPostgres(t)
	db.Exec(t, `CREATE COLLATION anycase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TABLE hits (word text COLLATE anycase PRIMARY KEY, views int NOT NULL)`)
	s, p := db.flushing("hits", []string{"word"}, "views")
	rows := many(func(i int) []any { return []any{fmt.Sprint("word ", i), step} })
	rows[1] = rowOf("WORD 0", step)
	for n := range 2 { // the rows are new the first time, and exist the second time
		out := apply(t, s, fence(1), p, batch("a", n, rows...))
		if out.Rows != copied || len(out.Dead) > 0 {
			t.Errorf("%d rows, dead %v", out.Rows, out.Dead)
		}
	}
	db.expect("SELECT count(*), sum(views) FROM hits", textOf(copied-1, 2*step*copied))
	db.expect("SELECT views FROM hits WHERE word = 'word 0'", textOf(4*step))
}

// Some features of a table distinguish an update of many rows from upserts. For each of them, a large batch must have the same effect as a
// small batch.
func TestLargeBatchesDoWhatSmallOnesDo(t *testing.T) {
	const shout = `CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.name := upper(new.name); RETURN new; END';`
	const named = "CREATE TABLE hits (id int PRIMARY KEY, views int NOT NULL, name text NOT NULL)"
	for _, c := range []struct {
		name, table string
		key         string
		check, want string
	}{
		{name: "a trigger before inserts", table: named + ";" + shout +
			"CREATE TRIGGER shout BEFORE INSERT ON hits FOR EACH ROW EXECUTE FUNCTION shout()",
			check: "SELECT count(*) FROM hits WHERE name <> upper(name)", want: "0"},
		{name: "a trigger of a partition",
			table: named + " PARTITION BY RANGE (id); CREATE TABLE h1 PARTITION OF hits FOR VALUES FROM (0) TO (100000);" + shout +
				"CREATE TRIGGER shout BEFORE INSERT ON h1 FOR EACH ROW EXECUTE FUNCTION shout()",
			check: "SELECT count(*) FROM hits WHERE name <> upper(name)", want: "0"},
		{name: "a trigger that writes elsewhere", table: named + `; CREATE TABLE other (id int PRIMARY KEY, times int NOT NULL);
			CREATE FUNCTION divert() RETURNS trigger LANGUAGE plpgsql
			AS 'BEGIN INSERT INTO other VALUES (new.id, 1) ON CONFLICT (id) DO UPDATE SET times = other.times + 1; RETURN NULL; END';
			CREATE TRIGGER divert BEFORE UPDATE ON hits FOR EACH ROW EXECUTE FUNCTION divert()`,
			check: "SELECT max(times) FROM other", want: "1"},
		{name: "an heir", table: named + "; CREATE TABLE old () INHERITS (hits); INSERT INTO old VALUES (3, 1000, 'old')",
			check: "SELECT (SELECT views FROM old), (SELECT views FROM ONLY hits WHERE id = 7)", want: "1000|STEP"},
		{name: "an index that compares otherwise", key: "name", table: `CREATE COLLATION anycase
			(provider = icu, locale = 'und-u-ks-level2', deterministic = false);
			CREATE TABLE hits (id int, views int NOT NULL, name text COLLATE anycase NOT NULL);
			CREATE UNIQUE INDEX ON hits (name COLLATE "C"); INSERT INTO hits VALUES (3, 1000, 'NAME 3')`,
			check: `SELECT (SELECT views FROM hits WHERE name COLLATE "C" = 'NAME 3'),
			(SELECT views FROM hits WHERE name COLLATE "C" = 'name 7')`, want: "1000|STEP"},
		{name: "a type that is not searched for", key: "name", table: "CREATE SCHEMA ext; CREATE EXTENSION ltree SCHEMA ext; CREATE " +
			"TABLE hits (id int, views int NOT NULL, name ext.ltree PRIMARY KEY)",
			check: "SELECT views FROM hits WHERE id = 7", want: "STEP"},
	} {
		for _, n := range []int{copied, 100} {
			for _, step := range []int{1, -1} { // a batch that subtracts would be merged
				t.Run(fmt.Sprintf("%s, %d rows, %d", c.name, n, step), func(t *testing.T) {
					db := onPostgres(t)
					db.Exec(t, c.table)
					word, kind := "name ", "text"
					if strings.Contains(c.table, "ltree") {
						word, kind = "name.", "ext.ltree"
					}
					// All rows except the row 7 exist.
					db.Exec(t, fmt.Sprintf("INSERT INTO hits SELECT i, 100, ('%s' || i)::%s FROM generate_series(0, %d) i WHERE i <> 7",
						word, kind, n-1))
					s, p := db.flushing("hits", []string{cmp.Or(c.key, "id")}, "views")
					rows := many(func(i int) []any { return []any{i, step, fmt.Sprint(word, i)} })[:n]
					if out := apply(t, s, fence(1), p, batch("a", 0, rows...)); len(out.Dead) > 0 {
						t.Errorf("dead: %v", out.Dead[0])
					}
					db.expect(c.check, strings.ReplaceAll(c.want, "STEP", fmt.Sprint(step)))
				})
			}
		}
	}
}
