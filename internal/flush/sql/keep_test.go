package sql_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/sqltest"
)

// keeping makes a batch keep what it deletes for a week.
func keeping(b flush.Batch) flush.Batch {
	b.Keep = flush.Keep{For: week, Why: flush.WhyMissing}
	return b
}

const keptQuery = "SELECT job, lock_key, table_name, row_key, old_row, why, epoch FROM baton_deleted ORDER BY row_key, id"

// adopted is a row that an accepted pass writes over another one.
func adopted(r row.Row) row.Row {
	r.Adopted = true
	return r
}

func TestDeletedRowsAreKeptWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30), (2, 'Bob', NULL), (3, 'Cy', 5), (4, 'Di', 6)")
		s := db.leading(func(o *sql.Options) { o.LockKey = "one" })
		p := plan(t, s, "people", []string{"id"})
		emptied := rowOf(4, "", nil)
		emptied.Record.Gone = true // on_missing: null
		out := apply(t, s, fence(1), p, keeping(batch("a", -1, gone(3, 1), adopted(rowOf(2, "Rob", 41)), rowOf(3, "Cyd", 5), emptied,
			gone(3, 9))))
		if out.Deleted != 1 {
			t.Errorf("deleted %d rows", out.Deleted)
		}
		db.expect("SELECT id, name FROM people ORDER BY id", "2|Rob", "3|Cyd", "4|")
		db.expect(keptQuery,
			`j|one|people|{"id":1}|{"id":1,"name":"Ann","age":30}|missing|1`,
			`j|one|people|{"id":2}|{"id":2,"name":"Bob","age":null}|adopted|1`,
			`j|one|people|{"id":4}|{"id":4,"name":"Di","age":6}|missing|1`)
		apply(t, s, fence(1), p, batch("b", -1, gone(3, 2))) // a job that keeps nothing
		db.expect("SELECT count(*) FROM baton_deleted", "3")
	})
}

// A row is kept only if the transaction that deletes it is committed.
func TestDeletedRowIsKeptIffTheBatchIsApplied(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		for n, step := range sqltest.Steps()[:9] {
			if step == sqltest.StepAfterMove || step == sqltest.StepAfterMarks {
				continue
			}
			db.Exec(t, fmt.Sprintf("INSERT INTO people VALUES (%d, 'Ann', 30)", n))
			struck := db.stopAt(step, func() error { return errStopped }).leading()
			p := plan(t, struck, "people", []string{"id"})
			b := keeping(batch(string(step), 0, gone(3, n)))
			b.Dead = []row.DeadLetter{{Record: string(step), Error: "bad"}}
			_, err := struck.Apply(t.Context(), fence(1), p, b)
			wantTransient(t, err)
			where := fmt.Sprintf(" WHERE row_key = '{\"id\":%d}'", n)
			want := "0"
			if step == sqltest.StepAfterCommit {
				want = "1"
			}
			db.expect("SELECT count(*) FROM baton_deleted"+where, want)
			persist(t, struck, fence(1), p, b)
			db.expect(fmt.Sprintf("SELECT count(*) FROM people WHERE id = %d", n), "0")
			db.expect("SELECT count(*) FROM baton_deleted"+where, "1")
		}
		takeOver(t, db.open(), fence(2))
		db.Exec(t, "INSERT INTO people VALUES (99, 'Ann', 30)")
		s := db.open()
		p := plan(t, s, "people", []string{"id"})
		if _, err := s.Apply(t.Context(), fence(1), p, keeping(batch("late", -1, gone(3, 99)))); !errors.Is(err, flush.ErrFenced) {
			t.Errorf("a deposed leader: %v", err)
		}
		db.expect("SELECT count(*) FROM baton_deleted WHERE row_key = '{\"id\":99}'", "0")
	})
}

// What the database refuses to delete or to overwrite is not kept.
func TestRowThatStaysIsNotKept(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.create("CREATE TABLE pets (owner bigint REFERENCES people (id))",
			"CREATE TABLE pets (owner bigint, FOREIGN KEY (owner) REFERENCES people (id)) ENGINE=InnoDB",
			"CREATE TABLE pets (owner INTEGER REFERENCES people (id))")
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30), (2, 'Bob', 31), (3, 'Cy', 32)")
		db.Exec(t, "INSERT INTO pets VALUES (1)")
		s := db.leading()
		p := plan(t, s, "people", []string{"id"})
		out := apply(t, s, fence(1), p, keeping(batch("a", -1, gone(3, 1), gone(3, 2), adopted(rowOf(3, "Cyd", -1)))))
		if len(out.Dead) != 2 || out.Deleted != 1 {
			t.Errorf("dead letters %v, deleted %d", out.Dead, out.Deleted)
		}
		db.expect("SELECT id, name FROM people ORDER BY id", "1|Ann", "3|Cy")
		db.expect("SELECT row_key FROM baton_deleted", `{"id":2}`)
	})
}

func TestKeptRowsArePrunedByTheirTime(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.leading()
		p := plan(t, s, "people", []string{"id"})
		var rows []row.Row
		for i := range 1500 {
			db.Exec(t, fmt.Sprintf("INSERT INTO people VALUES (%d, 'Ann', 30)", i))
			rows = append(rows, gone(3, i))
		}
		b := keeping(batch("a", -1, rows...))
		apply(t, s, fence(1), p, b)
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30), (2, 'Bob', 31)")
		apply(t, s, fence(1), p, keeping(batch("b", -1, gone(3, 1))))
		b = keeping(batch("c", -1, gone(3, 2)))
		b.Keep.For = time.Hour
		apply(t, s, fence(1), p, b)
		if n, err := s.PruneKept(t.Context()); err != nil || n != 0 {
			t.Errorf("pruned %d, %v", n, err)
		}
		for limit, want := range map[int]int64{1000: 1000, 2000: 1502} {
			n, first, err := s.CountKept(t.Context(), "j", limit)
			if err != nil || n != want || time.Until(first) > week || limit == 2000 && time.Until(first) > time.Hour {
				t.Errorf("counted %d rows until %v, %v; want %d rows", n, first, err, want)
			}
		}
		if n, first, err := s.CountKept(t.Context(), "other", 9); err != nil || n != 0 || !first.IsZero() {
			t.Errorf("counted %d rows of another job until %v, %v", n, first, err)
		}
		old := map[string]string{
			"postgres": "keep_until - interval '8 days'", "mysql": "keep_until - INTERVAL 8 DAY",
			"sqlite": "strftime('%Y-%m-%d %H:%M:%f', keep_until, '-8 days')",
		}[db.Driver]
		db.Exec(t, "UPDATE baton_deleted SET keep_until = "+old+
			" WHERE id <= (SELECT n FROM (SELECT min(id) + 1499 AS n FROM baton_deleted) AS x)")
		if n, err := s.PruneKept(t.Context()); err != nil || n != 1500 {
			t.Errorf("pruned %d, %v", n, err)
		}
		db.expect("SELECT row_key FROM baton_deleted ORDER BY id", `{"id":1}`, `{"id":2}`)
	})
}

// Whatever its types are, a row comes back as it was.
func TestUndeletedRowIsAsItWas(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE TYPE mood AS ENUM ('good', 'bad')")
			db.Exec(t, "CREATE TABLE twisted (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int, "+
				"m int GENERATED ALWAYS AS (n * 2) STORED)")
			db.Exec(t, "INSERT INTO twisted (n) VALUES (1), (2)")
		}
		s := db.leading()
		back := func(t *testing.T, table, show string, keys ...any) {
			t.Helper()
			p := plan(t, s, table, []string{"id"})
			query := "SELECT " + show + " FROM " + table + " ORDER BY id"
			before := db.Rows(t, query)
			var rows []row.Row
			for _, key := range keys {
				rows = append(rows, gone(len(p.Columns), key))
			}
			apply(t, s, fence(1), p, keeping(batch("a", -1, rows...)))
			db.expect("SELECT count(*) FROM "+table, "0")
			kept, err := s.KeptRows(t.Context(), sql.KeptFilter{Job: "j"}, 100, 0)
			kept = slices.DeleteFunc(kept, func(k sql.KeptRow) bool { return k.Table != table })
			if err != nil || len(kept) != len(rows) {
				t.Fatalf("kept %v, %v", kept, err)
			}
			for _, k := range kept {
				if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, k); err != nil {
					t.Errorf("%s: %v", k.Row, err)
				}
			}
			if after := db.Rows(t, query); !reflect.DeepEqual(after, before) {
				t.Errorf("got %q, want %q; kept %v", after, before, kept)
			}
		}
		for n, c := range roundTrips[db.Driver] {
			t.Run(c.column, func(t *testing.T) {
				if c.column == "uuid" || c.column == "json" {
					db.speaksMariaDB(t)
				}
				one := fmt.Sprintf("one_%d", n)
				db.Exec(t, "CREATE TABLE "+one+" (id int PRIMARY KEY, c "+c.column+")")
				p := plan(t, s, one, []string{"id"})
				rows, keys := []row.Row{rowOf(0, nil)}, []any{0}
				for i, v := range c.values {
					rows, keys = append(rows, rowOf(i+1, v)), append(keys, i+1)
				}
				apply(t, s, fence(1), p, batch("a", -1, rows...))
				show := "id, c"
				if c.show != "" {
					show = "id, " + c.show
				}
				back(t, one, show, keys...)
			})
		}
		switch db.Driver {
		case "postgres":
			back(t, "twisted", "id, n, m", 1, 2)
		case "sqlite": // values of other types than the column's
			db.Exec(t, "CREATE TABLE loose (id INTEGER PRIMARY KEY, c)")
			db.Exec(t, "INSERT INTO loose VALUES (1, 1), (2, 1.0), (3, '1'), (4, x'31'), (5, 9e999), (6, -9e999), (7, 0.1), "+
				"(8, 'a' || char(0) || 'b'), (9, CAST(x'ff' AS TEXT))")
			back(t, "loose", "id, typeof(c), hex(c), c", 1, 2, 3, 4, 5, 6, 7, 8, 9)
		case "mysql":
			db.Exec(t, "CREATE TABLE loose "+
				"(id int PRIMARY KEY, f float, t time(3), y year, u bigint unsigned, l varchar(9) CHARACTER SET latin1, "+
				"s set('a', 'b'), b bit(64), g int AS (id * 2) STORED)")
			db.Exec(t, "INSERT INTO loose (id, f, t, y, u, l, s, b) "+
				"VALUES (1, 0.1, '-12:34:56.789', 2024, 18446744073709551615, 'Zoë', 'a,b', "+
				"18446744073709551615), (2, 16777217, NULL, NULL, 1, '', '', 1)")
			back(t, "loose", "id, f + 0.0, t, y, u, hex(l), s, b + 0, g", 1, 2)
		}
	})
}

func TestUndeleteGoesThroughTheFenceAndOverwritesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		s := db.leading(func(o *sql.Options) { o.LockKey = "one" })
		apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
		other := db.open(func(o *sql.Options) { o.LockKey = "two" })
		if of, err := other.KeptRows(t.Context(), sql.KeptFilter{}, 9, 0); err != nil || len(of) != 0 {
			t.Errorf("another election sees %v, %v", of, err)
		}
		all, err := s.KeptRows(t.Context(), sql.KeptFilter{Text: "Ann"}, 9, 0)
		if err != nil || len(all) != 1 || all[0].At.IsZero() || all[0].Why != flush.WhyMissing {
			t.Fatalf("kept %v, %v", all, err)
		}
		db.Exec(t, "INSERT INTO people VALUES (1, 'newer', 1)")
		if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, all[0]); !errors.Is(err, sql.ErrRowThere) {
			t.Errorf("over a row: %v", err)
		}
		db.Exec(t, "DELETE FROM people")
		takeOver(t, s, fence(2))
		if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, all[0]); !errors.Is(err, flush.ErrFenced) {
			t.Errorf("after another leader: %v", err)
		}
		db.expect("SELECT count(*) FROM people", "0")
		db.Exec(t, "ALTER TABLE people RENAME COLUMN age TO years")
		if err := s.Undelete(t.Context(), []flush.Fence{fence(2)}, all[0]); !errors.Is(err, sql.ErrUnfit) {
			t.Errorf("without its column: %v", err)
		}
		db.Exec(t, "ALTER TABLE people RENAME COLUMN years TO age")
		db.expect("SELECT count(*) FROM baton_deleted", "1")
		for _, want := range []error{nil, sql.ErrRowThere} {
			if err := s.Undelete(t.Context(), []flush.Fence{fence(2)}, all[0]); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		db.expect("SELECT id, name, age FROM people", "1|Ann|30")
	})
}

// The next pass of the job may overwrite a row that was put back, and such a row is not kept. So the copy stays until its time is over.
func TestCopyOfARowThatWasPutBackStays(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		s := db.leading()
		p := plan(t, s, "people", []string{"id"})
		apply(t, s, fence(1), p, keeping(batch("a", -1, gone(3, 1))))
		if k := db.kept(s); !k.PutBackAt.IsZero() || !k.KeepUntil.Equal(k.At.Add(week)) {
			t.Errorf("%+v", k)
		}
		if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, db.kept(s)); err != nil {
			t.Fatal(err)
		}
		apply(t, s, fence(1), p, keeping(batch("b", -1, rowOf(1, "Eve", 1))))
		db.expect("SELECT name FROM people", "Eve")
		first := db.kept(s)
		if first.PutBackAt.Before(first.At) || first.Row != `{"id":1,"name":"Ann","age":30}` {
			t.Errorf("%+v", first)
		}
		db.Exec(t, "DELETE FROM people")
		if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, first); err != nil {
			t.Error(err)
		}
		db.expect("SELECT name FROM people", "Ann")
		if again := db.kept(s); !again.PutBackAt.After(first.PutBackAt) {
			t.Errorf("put back at %v, and before at %v", again.PutBackAt, first.PutBackAt)
		}
		db.Exec(t, "UPDATE baton_deleted SET keep_until = at")
		if n, err := s.PruneKept(t.Context()); err != nil || n != 1 {
			t.Errorf("pruned %d, %v", n, err)
		}
	})
}

// A job may have kept very many rows when the database refuses to delete another one.
func TestCopiesAreTakenBackByTheIndexOfTheirTime(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		const columns = "INSERT INTO baton_deleted (lock_key, job, table_name, row_key, old_row, why, epoch, at, keep_until) "
		const numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
		selected := "SELECT '', 'j', 'people', %s, '{}', 'missing', 1, '2020-01-01 00:00:00', %s FROM n"
		db.create(numbers+columns+fmt.Sprintf(selected, "i::text", "'2020-01-01'::timestamptz + i * interval '1 second'"),
			columns+numbers+fmt.Sprintf(selected, "i", "'2020-01-01' + INTERVAL i SECOND"),
			columns+numbers+fmt.Sprintf(selected, "i", "strftime('%Y-%m-%d %H:%M:%f', '2020-01-01', i || ' seconds')"))
		explain := "EXPLAIN"
		switch db.Driver {
		case "postgres":
			db.Exec(t, "ANALYZE baton_deleted")
		case "mysql":
			db.Rows(t, "ANALYZE TABLE baton_deleted")
		case "sqlite":
			explain = "EXPLAIN QUERY PLAN"
		}
		plan, err := db.open().ExplainTakeBack(t.Context(), explain, "j")
		if err != nil || !strings.Contains(plan, "baton_deleted_keep_until") {
			t.Errorf("%v, %s", err, plan)
		}
	})
}

// A row may be older than the rules of the server's strict mode. It is put back exactly.
func TestZeroDatesOfMySQLArePutBackAsTheyWere(t *testing.T) {
	emptyServers(t, func(t *testing.T, db *bench) {
		if db.Driver != "mysql" {
			t.Skip("only MySQL and MariaDB have zero dates")
		}
		db.Exec(t, "CREATE TABLE dates (id bigint PRIMARY KEY, d date, dt datetime(6), ts timestamp NULL, n int) ENGINE=InnoDB")
		db.Exec(t, "INSERT IGNORE INTO dates VALUES (1, '0000-00-00', '0000-00-00', '0000-00-00', 1), "+
			"(2, '2024-00-10', '2024-05-00 01:02:03.000004', NULL, 0)")
		query := "SELECT id, CAST(d AS CHAR), CAST(dt AS CHAR), CAST(ts AS CHAR), n FROM dates ORDER BY id"
		before := fmt.Sprint(db.Rows(t, query))
		if !strings.Contains(before, "0000-00-00 00:00:00.000000") || !strings.Contains(before, "2024-00-10") {
			t.Fatalf("the table has %s", before)
		}
		s := db.leading()
		p := plan(t, s, "dates", []string{"id"})
		apply(t, s, fence(1), p, keeping(batch("a", -1, gone(5, 1), gone(5, 2))))
		rows, err := s.KeptRows(t.Context(), sql.KeptFilter{}, 9, 0)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%v, %v", rows, err)
		}
		for _, k := range rows {
			if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, k); err != nil {
				t.Errorf("%s: %v", k.Row, err)
			}
		}
		if after := fmt.Sprint(db.Rows(t, query)); after != before {
			t.Errorf("got %s, want %s", after, before)
		}
		// The statements of batches stay strict.
		refused := apply(t, s, fence(1), p, batch("b", -1, rowOf(3, "0000-00-00", nil, nil, 1)))
		if len(refused.Dead) != 1 {
			t.Errorf("a zero date was written: %+v", refused)
		}
	})
}
