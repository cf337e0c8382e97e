package sql_test

import (
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

var keep = row.Absent()

func replacing(values ...any) row.Row {
	r := rowOf(values...)
	r.Replace = true
	return r
}

// pets makes a table with a column of every sort: required, nullable, with a default, and unique.
func (b *bench) pets() {
	b.t.Helper()
	b.create(
		"CREATE TABLE pets (id bigint PRIMARY KEY, name varchar(10) NOT NULL, age int, legs int NOT NULL DEFAULT 4, tag int UNIQUE, "+
			"note varchar(10) DEFAULT 'none')",
		"CREATE TABLE pets (id bigint PRIMARY KEY, name varchar(10) NOT NULL, age int, legs int NOT NULL DEFAULT 4, tag int UNIQUE, "+
			"note varchar(10) DEFAULT 'none') ENGINE=InnoDB",
		"CREATE TABLE pets (id INTEGER PRIMARY KEY, name varchar(10) NOT NULL CHECK (length(name) <= 10), age int, legs int NOT NULL "+
			"DEFAULT 4, tag int UNIQUE, note varchar(10) DEFAULT 'none')")
}

// leavingOut returns the plan without some columns, as if they were not mapped.
func leavingOut(p *row.Plan, names ...string) *row.Plan {
	out := *p
	out.Columns = nil
	for _, c := range p.Columns {
		if !strings.Contains(strings.Join(names, " "), c.Name) {
			out.Columns = append(out.Columns, c)
		}
	}
	return &out
}

func TestKeepLeavesRowsThatAreThereAndRefusesWhatIsWrong(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.pets()
		db.Exec(t, "INSERT INTO pets (id, name, tag) VALUES (1, 'Ann', 7)")
		s, p := db.flushing("pets", []string{"id"})
		p.Keep = true
		rows := []row.Row{
			rowOf(1, "Other", 9, 9, 9, "x"), rowOf(2, "Bob", 1, 2, 3, "new"),
			rowOf(3, "a name too long", 1, 2, 4, "x"), rowOf(4, "Tag", 1, 2, 7, "x"), rowOf(5, "Eve", 1, 2, 5, "x"),
		}
		for n := range 2 {
			out := apply(t, s, fence(1), p, batch("a", n, rows...))
			if len(out.Dead) != 2 || out.Rows != 3 {
				t.Errorf("outcome %+v", out)
			}
		}
		db.expect("SELECT id, name, tag FROM pets ORDER BY id", "1|Ann|7", "2|Bob|3", "5|Eve|5")
	})
}

func TestReplaceGivesOtherColumnsTheirDefaultsBack(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.pets()
		db.Exec(t, "INSERT INTO pets VALUES (1, 'Ann', 1, 3, 1, 'a'), (2, 'Bob', 2, 3, 2, 'b'), (3, 'Cid', 3, 3, 3, 'c'), (4, 'Dan', "+
			"4, 3, 4, 'd')")
		s := db.leading()
		p := leavingOut(plan(t, s, "pets", []string{"id"}), "age", "note") // the plan writes id, name, legs and tag
		out := apply(t, s, fence(1), p, batch("a", 0,
			replacing(1, "Anna", 2, 10), replacing(2, "Bobby", keep, 1), // uses the value that the first row had
			replacing(3, "a name too long", 2, 30), rowOf(4, "Dan", 2, 40), replacing(5, "Eve", 2, 5), gone(4, 6)))
		if len(out.Dead) != 1 || out.Rows != 5 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT * FROM pets ORDER BY id",
			"1|Anna|NULL|2|10|none", "2|Bobby|NULL|4|1|none",
			"3|Cid|3|3|3|c", // a refused row keeps its old values
			"4|Dan|4|2|40|d", "5|Eve|NULL|2|5|none")
	})
}

func TestReplaceOfManyRowsFindsTheBadOnes(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s, p := db.flushing("people", []string{"id"})
		var rows []row.Row
		for id := range 1500 {
			rows = append(rows, replacing(id, "old", id))
		}
		apply(t, s, fence(1), p, batch("a", 0, rows...))
		for id := range rows {
			rows[id] = replacing(id, "new", id)
			if id%400 == 7 {
				rows[id] = replacing(id, "new", -1)
			}
		}
		if out := apply(t, s, fence(1), p, batch("a", 1, rows...)); len(out.Dead) != 4 || out.Rows != 1496 {
			t.Errorf("outcome: %d rows, %d dead", out.Rows, len(out.Dead))
		}
		db.expect("SELECT name, count(*), min(age) FROM people GROUP BY name ORDER BY name", "new|1496|0", "old|4|7")
	})
}

func TestAbsentValuesLeaveColumnsAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.pets()
		db.Exec(t, "INSERT INTO pets VALUES (1, 'Ann', 1, 3, 1, 'a'), (2, 'Bob', 2, 3, 2, 'b'), (3, 'Cid', 3, 3, 3, 'c'), (4, 'Dan', "+
			"4, 3, 4, 'd')")
		s, p := db.flushing("pets", []string{"id"})
		b := batch("a", -1,
			rowOf(1, "Anna", keep, keep, 10, keep), rowOf(2, keep, 20, keep, keep, keep), gone(6, 3),
			rowOf(4, keep, keep, keep, keep, keep),
			rowOf(5, "Eve", nil, keep, 1, keep), // uses the value that the first row had
			rowOf(6, "Fay", keep, 2, keep, nil), rowOf(7, keep, 1, 1, 7, "x"))
		for range 2 { // the same batch may be applied again
			out := apply(t, s, fence(1), p, b)
			if len(out.Dead) != 1 || out.Rows != 6 || !strings.Contains(out.Dead[0].Error, `"name"`) {
				t.Errorf("outcome %+v", out)
			}
		}
		db.expect("SELECT * FROM pets ORDER BY id",
			"1|Anna|1|3|10|a", "2|Bob|20|3|2|b", "4|Dan|4|3|4|d", "5|Eve|NULL|4|1|none", "6|Fay|NULL|2|NULL|NULL")
		db.expect("SELECT count(*) FROM baton_dead_letter", "1")
	})
}

// If rows lack a required column, existing rows can be updated, whatever their number is, but new rows cannot be inserted.
func TestAbsentNeededValueRefusesNewRowsOnly(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create(
			"CREATE TABLE sums (id bigint PRIMARY KEY, name varchar(10) NOT NULL, n bigint CHECK (n < 1000))",
			"CREATE TABLE sums (id bigint PRIMARY KEY, name varchar(10) NOT NULL, n bigint CHECK (n < 1000)) ENGINE=InnoDB",
			"CREATE TABLE sums (id INTEGER PRIMARY KEY, name varchar(10) NOT NULL, n bigint CHECK (n < 1000))")
		s, p := db.flushing("sums", []string{"id"}, "n")
		var rows []row.Row
		for id := range 600 {
			rows = append(rows, rowOf(id, fmt.Sprint("n", id), id))
		}
		apply(t, s, fence(1), p, batch("a", 0, rows...))
		for id := range rows {
			rows[id] = rowOf(id, keep, 1)
			if id%100 == 50 {
				rows[id] = rowOf(id, keep, 990) // too large for the column
			}
		}
		rows = append(rows, rowOf(700, keep, 1), rowOf(701, "new", 1))
		out := apply(t, s, fence(1), p, batch("a", 1, rows...))
		if out.Rows != 595 || len(out.Dead) != 7 {
			t.Errorf("outcome: %d rows, %d dead", out.Rows, len(out.Dead))
		}
		db.expect("SELECT count(*), sum(n) FROM sums", fmt.Sprintf("601|%d", 600*599/2+595))
		for _, wrong := range []row.Row{rowOf(keep, "x", 1), replacing(1, keep, 1)} {
			if out := apply(t, s, fence(1), p, batch(fmt.Sprint(wrong.Replace), 2, wrong)); len(out.Dead) != 1 {
				t.Errorf("outcome %+v", out)
			}
		}
		db.expect("SELECT name FROM sums WHERE id = 1", "n1")
	})
}

// The rows of one batch lack so many different combinations of columns that no cache holds all variants.
func TestAbsentValuesInEveryCombination(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		const many = 9
		if 1<<many <= sql.MaxStatements {
			t.Fatalf("a connection keeps %d statements: so many columns are too few", sql.MaxStatements)
		}
		columns := ""
		for i := range many {
			columns += fmt.Sprintf(", c%d int DEFAULT 7", i)
		}
		db.create("CREATE TABLE wide (id int PRIMARY KEY"+columns+")", "CREATE TABLE wide (id int PRIMARY KEY"+columns+")",
			"CREATE TABLE wide (id int PRIMARY KEY"+columns+")")
		s, p := db.flushing("wide", []string{"id"})
		var rows []row.Row
		ones := 0
		for mask := range 1 << many {
			values := []any{mask}
			for i := range many {
				if mask>>i&1 == 1 {
					values = append(values, 1)
					ones++
				} else {
					values = append(values, keep)
				}
			}
			rows = append(rows, rowOf(values...))
		}
		apply(t, s, fence(1), p, batch("a", 0, rows...))
		apply(t, s, fence(1), p, batch("a", 1, rows...))
		db.expect("SELECT count(*), sum(c0+c1+c2+c3+c4+c5+c6+c7+c8) FROM wide", textOf(1<<many, ones+7*(many<<many-ones)))
	})
}

func TestInsertWithoutKeyGivesAbsentColumnsTheirDefaults(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE log (line varchar(9), n int DEFAULT 7)", "CREATE TABLE log (line varchar(9), n int DEFAULT 7)",
			"CREATE TABLE log (line varchar(9), n int DEFAULT 7)")
		s, p := db.flushing("log", nil)
		out := apply(t, s, fence(1), p, batch("1", 0, rowOf("a", 1), rowOf("b", keep), rowOf("a", 1), rowOf(keep, keep), rowOf(keep, 3)))
		if len(out.Dead) != 1 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT line, n FROM log ORDER BY n, line", "a|1", "a|1", "NULL|3", "b|7")
	})
}
