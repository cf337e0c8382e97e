package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/finding"
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/sqltest"
)

// Old rows of much text are stored before the batch writes, and taken back if the database refuses their deletion.
func TestLongOldRowsAreStoredEarlyAndTakenBack(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		const rows, long = 20, packet / 2
		db.create("CREATE TABLE docs (id bigint PRIMARY KEY, body text)",
			"CREATE TABLE docs (id bigint PRIMARY KEY, body longtext) ENGINE=InnoDB",
			"CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT)")
		db.create("CREATE TABLE notes (doc bigint REFERENCES docs (id))",
			"CREATE TABLE notes (doc bigint, FOREIGN KEY (doc) REFERENCES docs (id)) ENGINE=InnoDB",
			"CREATE TABLE notes (doc INTEGER REFERENCES docs (id))")
		s := db.leading(ttl(10 * time.Minute))
		p := plan(t, s, "docs", []string{"id"})
		body := strings.Repeat("x", long)
		var deletes []row.Row
		for i := range rows {
			apply(t, s, fence(1), p, batch("fill", -1, rowOf(i, body)))
			deletes = append(deletes, gone(2, i))
		}
		db.Exec(t, "INSERT INTO notes VALUES (5)")
		out := apply(t, s, fence(1), p, keeping(batch("a", -1, deletes...)))
		if len(out.Dead) != 1 || out.Deleted != rows-1 {
			t.Errorf("dead letters %d, deleted %d", len(out.Dead), out.Deleted)
		}
		db.expect("SELECT id FROM docs", "5")
		db.expect(`SELECT count(*), min(length(old_row)) FROM baton_deleted`, fmt.Sprintf("%d|%d", rows-1, long+len(`{"id":0,"body":""}`)))
		db.expect(`SELECT count(*) FROM baton_deleted WHERE row_key = '{"id":5}'`, "0")
	})
}

// A key that its column cannot hold has no row. It is refused alone, as without keep_deleted.
func TestKeyThatNoRowCanHaveDoesNotStopTheBatch(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE TYPE colour AS ENUM ('red', 'blue')")
		}
		db.create("CREATE TABLE paints (id colour PRIMARY KEY, litres int)", "CREATE TABLE paints (id varchar(9) PRIMARY KEY, litres int)",
			"CREATE TABLE paints (id TEXT PRIMARY KEY, litres INTEGER)")
		db.Exec(t, "INSERT INTO paints VALUES ('red', 1), ('blue', 2)")
		s := db.leading()
		p := plan(t, s, "paints", []string{"id"})
		out := apply(t, s, fence(1), p, keeping(batch("a", -1, gone(2, "blue"), gone(2, "green"), gone(2, "red"))))
		if out.Deleted != 2 {
			t.Errorf("deleted %d", out.Deleted)
		}
		db.expect("SELECT count(*) FROM paints", "0")
		db.expect("SELECT row_key FROM baton_deleted ORDER BY row_key", `{"id":"blue"}`, `{"id":"red"}`)
	})
}

// A row is kept once, whether the batch names it twice, and an emptied row is not kept again.
func TestRowIsKeptOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE cards (id bigint PRIMARY KEY, name text)",
			"CREATE TABLE cards (id bigint PRIMARY KEY, name text) ENGINE=InnoDB",
			"CREATE TABLE cards (id INTEGER PRIMARY KEY, name TEXT)")
		db.Exec(t, "INSERT INTO cards VALUES (1, 'Ann'), (2, 'Bob')")
		s := db.leading()
		p := plan(t, s, "cards", []string{"id"})
		apply(t, s, fence(1), p, keeping(batch("a", -1, gone(2, 1), gone(2, 1))))
		emptied := rowOf(2, nil)
		emptied.Record.Gone = true
		for range 2 {
			apply(t, s, fence(1), p, keeping(batch("b", -1, emptied)))
		}
		db.expect("SELECT row_key, old_row FROM baton_deleted ORDER BY row_key",
			`{"id":1}|{"id":1,"name":"Ann"}`, `{"id":2}|{"id":2,"name":"Bob"}`)
	})
}

// The row is kept as it was when it was deleted: no other program changes it in between.
func TestOldRowIsLockedUntilItsDeletion(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		changed := make(chan error, 1)
		s := db.stopAt(sqltest.StepAfterOld, func() error {
			go func() {
				_, err := db.Query(t.Context(), "UPDATE people SET name = 'Eve' WHERE id = 1")
				changed <- err
			}()
			for db.lockWaits() == "0" {
				select {
				case err := <-changed:
					t.Errorf("another program has changed the row between its reading and its deletion, %v", err)
					changed <- err
					return nil
				case <-time.After(150 * time.Millisecond): // see TestOlderTakerOfANewJobDoesNotOverwriteTheNewerOne
				}
			}
			return nil
		}).leading(ttl(time.Minute))
		p := plan(t, s, "people", []string{"id"})
		apply(t, s, fence(1), p, keeping(batch("a", 0, gone(3, 1))))
		if err := <-changed; err != nil {
			t.Error(err)
		}
		db.expect("SELECT count(*) FROM people", "0")
		db.expect("SELECT old_row FROM baton_deleted", `{"id":1,"name":"Ann","age":30}`)
	})
}

// A row that appears between the reading and the deletion is not deleted before it was read.
func TestRowThatAppearsMeanwhileIsReadByTheNextTry(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		db.people()
		s := db.stopAt(sqltest.StepAfterOld, func() error {
			db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
			return nil
		}).leading(ttl(time.Minute))
		p := plan(t, s, "people", []string{"id"})
		b := keeping(batch("a", 0, gone(3, 1)))
		_, err := s.Apply(t.Context(), fence(1), p, b)
		wantTransient(t, err)
		db.expect("SELECT id FROM people", "1")
		apply(t, s, fence(1), p, b)
		db.expect("SELECT count(*) FROM people", "0")
		db.expect("SELECT old_row FROM baton_deleted", `{"id":1,"name":"Ann","age":30}`)
	})
}

// A row that the user may delete, and not lock, is not deleted.
func TestRowThatCannotBeReadIsNotDeleted(t *testing.T) {
	emptyServers(t, func(t *testing.T, db *bench) {
		if db.Driver != "postgres" {
			t.Skip("only PostgreSQL has policies of rows")
		}
		db.articles()
		db.Exec(t, "INSERT INTO articles VALUES (1, 10)")
		poor := db.poor()
		user := db.poorUser()
		takeOver(t, db.open(), fence(1))
		db.Exec(t, "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+user)
		db.Exec(t, "ALTER TABLE articles ENABLE ROW LEVEL SECURITY")
		db.Exec(t, "CREATE POLICY look ON articles FOR SELECT USING (true)")
		db.Exec(t, "CREATE POLICY remove ON articles FOR DELETE USING (true)")
		p := plan(t, poor, "articles", []string{"id"})
		_, err := poor.Apply(t.Context(), fence(1), p, keeping(batch("a", -1, gone(2, 1))))
		wantTransient(t, err)
		if !strings.Contains(err.Error(), "row-level security policy") {
			t.Error(err)
		}
		db.expect("SELECT id FROM articles", "1")
		db.expect("SELECT count(*) FROM baton_deleted", "0")
		db.Exec(t, "CREATE POLICY change ON articles FOR UPDATE USING (true)")
		apply(t, poor, fence(1), p, keeping(batch("a", -1, gone(2, 1))))
		db.expect("SELECT row_key FROM baton_deleted", `{"id":1}`)
	})
}

// doctor asks for the right to read all columns, and to lock rows.
func TestRightsToKeepRowsAreNamed(t *testing.T) {
	emptyServers(t, func(t *testing.T, db *bench) {
		db.articles()
		db.Exec(t, "ALTER TABLE articles ADD COLUMN secret int")
		poor := db.poor()
		if db.Driver == "mysql" { // which asks for no right to lock a row
			user := db.poorUser()
			db.Exec(t, "REVOKE SELECT ON articles FROM "+user)
			db.Exec(t, "GRANT SELECT (id, views) ON articles TO "+user)
		}
		job := target(t, db.open(), "articles", "id")
		job.Plan.Columns = job.Plan.Columns[:2] // the job writes no secrets
		job.Update, job.Delete = false, false
		if found := poor.PreflightTable(t.Context(), job); len(found) != 0 {
			t.Errorf("a job that only inserts has all it needs:\n%s", shown(found))
		}
		job.Keep = true
		wantFinding(t, poor.PreflightTable(t.Context(), job), finding.SeverityError,
			map[string]string{"postgres": "UPDATE", "mysql": "denied"}[db.Driver])
	})
}

// Without a fence there must be none when the row is back either.
func TestUndeleteRefusesAFenceThatHasAppeared(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		s := db.leading()
		apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
		all, err := s.KeptRows(t.Context(), sql.KeptFilter{}, 9, 5)
		if err != nil || len(all) != 1 || all[0].Row != "" || all[0].Key != `{"id":1}` {
			t.Fatalf("%+v, %v", all, err)
		}
		if all, err = s.KeptRows(t.Context(), sql.KeptFilter{}, 9, 0); err != nil {
			t.Fatal(err)
		}
		none := flush.Fence{Job: "j"}
		if err := s.Undelete(t.Context(), []flush.Fence{none}, all[0]); !errors.Is(err, flush.ErrFenced) {
			t.Errorf("got %v", err)
		}
		db.Exec(t, "DELETE FROM baton_fence")
		if err := s.Undelete(t.Context(), []flush.Fence{none}, all[0]); err != nil {
			t.Error(err)
		}
		db.expect("SELECT name FROM people", "Ann")
	})
}

// kept returns the only kept row.
func (b *bench) kept(s *sql.Store) sql.KeptRow {
	b.t.Helper()
	all, err := s.KeptRows(b.t.Context(), sql.KeptFilter{}, 2, 0)
	if err != nil || len(all) != 1 {
		b.t.Fatalf("%+v, %v; want one kept row", all, err)
	}
	return all[0]
}

// The database accepts an insertion and stores nothing, or would delete another row. The copy must stay in both cases.
func TestUndeleteKeepsTheCopyIfTheRowIsNotInserted(t *testing.T) {
	for name, prepare := range map[string]func(*bench){
		"a trigger skips the row": func(db *bench) {
			if db.Driver == "sqlite" {
				db.Exec(t, "CREATE TRIGGER skip BEFORE INSERT ON people WHEN NEW.id = 1 BEGIN SELECT RAISE(IGNORE); END")
				return
			}
			db.Exec(t, "CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
			db.Exec(t, "CREATE TRIGGER skip BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION skip()")
		},
		"another row has its unique value": func(db *bench) { db.Exec(t, "INSERT INTO people VALUES (2, 'Ann', 31)") },
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, db *bench) {
				if db.Driver == "mysql" {
					t.Skip("a trigger of MySQL cannot skip a row, and no index replaces one by itself")
				}
				db.create("CREATE TABLE people (id bigint PRIMARY KEY, name text UNIQUE, age int)", "",
					"CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT UNIQUE ON CONFLICT REPLACE, age INTEGER)")
				db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
				s := db.leading()
				apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
				prepare(db)
				before := fmt.Sprint(db.Rows(t, "SELECT id, name, age FROM people"))
				if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, db.kept(s)); !errors.Is(err, sql.ErrUnfit) {
					t.Errorf("got %v, want %v", err, sql.ErrUnfit)
				}
				db.kept(s)
				if after := fmt.Sprint(db.Rows(t, "SELECT id, name, age FROM people")); after != before {
					t.Errorf("rows before %s, and after %s", before, after)
				}
			})
		})
	}
}

// The answers "no such row is kept" and "the table has this row" are for facts, and not for a database that failed.
func TestUndeleteTellsAFailureFromAnAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		s := db.leading()
		apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), keeping(batch("a", -1, gone(3, 1))))
		k := db.kept(s)
		other := k
		other.Key = `{"nowhere":1}`
		if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, other); err == nil || errors.Is(err, sql.ErrRowThere) {
			t.Errorf("with a key that cannot be searched: %v", err)
		}
		db.Exec(t, "DROP TABLE baton_deleted")
		if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, k); err == nil || errors.Is(err, sql.ErrNotKept) {
			t.Errorf("without the table of deleted rows: %v", err)
		}
	})
}

// The plan that deletes vanished rows has the generation in its key. The key of a kept row must find a row of any generation.
func TestKeyOfAKeptRowHasNoGeneration(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 30)")
		s := db.leading()
		r := row.Row{Delete: true, Values: []row.Value{row.Integer(1), row.String(row.KindText, ""), row.Integer(30)}}
		out := apply(t, s, fence(1), plan(t, s, "people", []string{"id", "age"}), keeping(batch("a", -1, r)))
		if out.Deleted != 1 {
			t.Errorf("deleted %d rows", out.Deleted)
		}
		db.Exec(t, "INSERT INTO people VALUES (1, 'Ann', 31)")
		k := db.kept(s)
		if k.Key != `{"id":1}` {
			t.Errorf("the key is %s", k.Key)
		}
		if err := s.Undelete(t.Context(), []flush.Fence{fence(1)}, k); !errors.Is(err, sql.ErrRowThere) {
			t.Errorf("got %v, want %v", err, sql.ErrRowThere)
		}
	})
}

// Tables of the version before deleted rows were kept have the election of each job, and doctor can check the right to make the new table.
func TestTablesWithoutTheTableOfDeletedRows(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		ours, theirs := db.open(under("ours")), db.open(under("theirs"))
		db.letters(theirs, "orders", "t", dead(`{"key":"2"}`, "too long"))
		db.Exec(t, "DROP TABLE baton_deleted")
		newest := map[string]int{"postgres": 7, "mysql": 9, "sqlite": 7}[db.Driver]
		db.Exec(t, fmt.Sprintf("DELETE FROM baton_schema_version WHERE version_id >= %d", newest))
		if letters, err := ours.Letters(t.Context(), sql.LetterFilter{}, 9, 0); err != nil || len(letters) != 0 {
			t.Errorf("%d letters of another election, %v", len(letters), err)
		}
		if found, _ := ours.Preflight(t.Context(), true); strings.Contains(shown(found), "could not be checked") {
			t.Error(shown(found))
		}
	})
}

// A row whose JSON no statement can hold stays in the table, and the error names the setting.
func TestRowTooLongToKeepIsNotDeleted(t *testing.T) {
	emptyServers(t, func(t *testing.T, db *bench) {
		if db.Driver != "mysql" {
			t.Skip("only MySQL and MariaDB bound a statement")
		}
		db.Exec(t, "CREATE TABLE docs (id bigint PRIMARY KEY, body longblob) ENGINE=InnoDB")
		s := db.leading(ttl(10 * time.Minute))
		db.Exec(t, fmt.Sprintf("INSERT INTO docs VALUES (1, repeat('x', %d))", packet-packet/8)) // in base64 it is longer than that
		p := plan(t, s, "docs", []string{"id"})
		_, err := s.Apply(t.Context(), fence(1), p, keeping(batch("a", -1, gone(2, 1))))
		if err == nil || !strings.Contains(err.Error(), "raise max_allowed_packet") {
			t.Errorf("got %v", err)
		}
		db.expect("SELECT id FROM docs", "1")
	})
}
