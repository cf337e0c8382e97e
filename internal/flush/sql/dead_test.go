package sql_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"baton/internal/finding"
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/testsupport"
)

func TestOneBadRowAmongManyIsTheOnlyDeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s, p := db.flushing("people", []string{"id"})
		for n, bad := range []int{0, 517, 999} {
			rows := make([]row.Row, 1000)
			for i := range rows {
				rows[i] = rowOf(i, fmt.Sprint(i), i)
				if i == bad {
					rows[i] = rowOf(i, "far too long a name", i)
				}
			}
			out := apply(t, s, fence(1), p, batch("a", n, rows...))
			if out.Rows != 999 || len(out.Dead) != 1 ||
				out.Dead[0].Record != fmt.Sprintf(`{"key":"%d","all":"[%[1]d far too long a name %[1]d]"}`, bad) {
				t.Errorf("row %d is bad: %d rows written, dead letters %+v", bad, out.Rows, out.Dead)
			}
		}
		db.expect("SELECT count(*), sum(age) FROM people", "1000|499500")
		db.expect("SELECT count(*) FROM baton_dead_letter WHERE job = 'j' AND batch_id = 'a'", "3")
	})
}

func TestBatchOfBadRowsOnlyBecomesDeadLetters(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s, p := db.flushing("people", []string{"id"})
		rows := make([]row.Row, 100)
		for i := range rows {
			rows[i] = rowOf(i, "x", -1)
		}
		out := apply(t, s, fence(1), p, batch("a", 0, rows...))
		if out.Rows != 0 || len(out.Dead) != 100 {
			t.Errorf("%d rows written, %d dead letters", out.Rows, len(out.Dead))
		}
		if !strings.Contains(out.Dead[0].Error, "grown") {
			t.Errorf("the reason %q does not name the constraint", out.Dead[0].Error)
		}
		db.expect("SELECT count(*) FROM people", "0")
		db.expect("SELECT count(*) FROM baton_dead_letter", "100")
	})
}

// If a batch without a ledger entry is applied again, it finds its own letters among other letters.
func TestLettersAreNotAddedTwice(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s, p := db.flushing("people", []string{"id"})
		for _, n := range []int{5, 5, 9} {
			rows := make([]row.Row, n)
			for i := range rows {
				rows[i] = rowOf(i, "x", -1)
			}
			if out := apply(t, s, fence(1), p, batch("a", -1, rows...)); len(out.Dead) != n {
				t.Errorf("%d dead letters of %d", len(out.Dead), n)
			}
			db.expect("SELECT count(*) FROM baton_dead_letter", fmt.Sprint(n))
		}
	})
}

func TestRefusalsOfEveryKindAreDeadLetters(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.Exec(t, "CREATE TABLE city (id int PRIMARY KEY)")
		db.Exec(t, "INSERT INTO city VALUES (1)")
		db.create(
			`CREATE TABLE p (id int PRIMARY KEY, name varchar(10) NOT NULL, city int REFERENCES city (id),
				age smallint CONSTRAINT grown CHECK (age >= 0), nick varchar(10) UNIQUE)`,
			`CREATE TABLE p (id int PRIMARY KEY, name varchar(10) NOT NULL, city int, age smallint, nick varchar(10),
				CONSTRAINT grown CHECK (age >= 0), CONSTRAINT lives FOREIGN KEY (city) REFERENCES city (id))`,
			`CREATE TABLE p (id INTEGER PRIMARY KEY, name varchar(10) NOT NULL CHECK (length(name) <= 10),
				city int REFERENCES city (id), age smallint CONSTRAINT grown CHECK (age BETWEEN 0 AND 32767), nick varchar(10) UNIQUE)`)
		s, p := db.flushing("p", []string{"id"})
		bad := []row.Row{
			rowOf(2, "elevencharsx", 1, 1, "n2"),
			rowOf(3, "x", 99, 1, "n3"),
			rowOf(4, "x", 1, -1, "n4"),
			rowOf(5, "x", 1, 40000, "n5"),
			rowOf(6, nil, 1, 1, "n6"),
		}
		want := 5
		if db.Driver != "mysql" { // the package's documentation says why
			bad = append(bad, rowOf(7, "x", 1, 1, "n1"))
			want++
		}
		rows := append([]row.Row{rowOf(1, "x", 1, 1, "n1")}, bad...)
		out := apply(t, s, fence(1), p, batch("a", 0, append(rows, rowOf(8, "x", 1, 1, "n8"))...))
		if out.Rows != 2 || len(out.Dead) != want {
			t.Errorf("%d rows written, dead letters %+v", out.Rows, out.Dead)
		}
		for _, d := range out.Dead {
			t.Log(d.Record, d.Error)
		}
		db.expect("SELECT nick FROM p ORDER BY id", "n1", "n8") // only one of the two rows with n1 was written
	})
}

// A trigger, or the parser of a type, may use any error code for a bad row.
func TestRefusalInAnyWordsOfPostgresIsADeadLetter(t *testing.T) {
	db := onPostgres(t)
	db.Exec(t, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.id = 2 THEN RAISE EXCEPTION 'no' USING ERRCODE = 'ZX001'; END IF;
		IF NEW.id = 3 THEN SELECT 1 INTO STRICT NEW.id WHERE false; END IF;
		RETURN NEW; END $$`)
	db.Exec(t, "CREATE TABLE q (id int PRIMARY KEY, q tsquery)")
	db.Exec(t, "CREATE TRIGGER no BEFORE INSERT ON q FOR EACH ROW EXECUTE FUNCTION no()")
	s, p := db.flushing("q", []string{"id"})
	query := func(s string) row.Value { return row.String(row.KindOther, s) }
	out := apply(t, s, fence(1), p, batch("a", 0, rowOf(1, query("a")), rowOf(2, query("a")), rowOf(3, query("a")),
		rowOf(4, query("a b")), rowOf(5, query("a"))))
	if out.Rows != 2 || len(out.Dead) != 3 {
		t.Errorf("outcome %+v", out)
	}
	db.expect("SELECT id FROM q ORDER BY id", "1", "5")
}

func TestColumnAddedMeanwhileThatMustBeWrittenFailsTheBatch(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s, p := db.flushing("articles", []string{"id"}, "views")
		db.Exec(t, "DROP TABLE articles")
		db.Exec(t, "CREATE TABLE articles (id bigint PRIMARY KEY, views bigint, slug varchar(9) NOT NULL)")
		if _, err := s.Apply(t.Context(), fence(1), p, batch("a", 0, rowOf(1, 1), rowOf(2, 2))); err == nil ||
			errors.Is(err, flush.ErrTransient) || !strings.Contains(err.Error(), "slug") {
			t.Errorf("apply: %v", err)
		}
		db.expect("SELECT count(*) FROM baton_dead_letter", "0")
	})
}

// A row that the database cannot store must still become a dead letter that the database can store.
func TestCharactersThatTheDatabaseDoesNotHaveAreADeadLetter(t *testing.T) {
	db := onPostgres(t)
	dsn := func(user, database string) string {
		u, err := url.Parse(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		u.User, u.Path = url.User(user), "/"+database
		return u.String()
	}
	exec := func(user, database, text string) string {
		t.Helper()
		c, err := pgx.Connect(context.Background(), dsn(user, database)+"&client_encoding=UTF8")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		results, err := c.PgConn().Exec(context.Background(), text).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range results[len(results)-1].Rows {
			got = append(got, string(bytes.Join(r, []byte("|"))))
		}
		return strings.Join(got, "\n")
	}
	exec("postgres", "postgres", "CREATE DATABASE narrow OWNER app ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { exec("postgres", "postgres", "DROP DATABASE narrow WITH (FORCE)") })
	exec("app", "narrow", "CREATE TABLE people (id bigint PRIMARY KEY, name text)")
	s := db.leading(func(o *sql.Options) { o.DSN = dsn("app", "narrow") })
	found, _ := s.Preflight(t.Context(), false)
	wantFinding(t, found, finding.SeverityWarning, "encoding is LATIN1")
	out := apply(t, s, fence(1), plan(t, s, "people", []string{"id"}), batch("a", 0, rowOf(1, "Zoë"), rowOf(2, "😀 ł")))
	if out.Rows != 1 || len(out.Dead) != 1 {
		t.Errorf("outcome %+v", out)
	}
	if got := exec("app", "narrow", "SELECT name, record FROM people, "+
		"baton_dead_letter"); got != `Zoë|{"key":"2","all":"[2 \ud83d\ude00 \u0142]"}` {
		t.Errorf("got %s", got)
	}
}

// An error that every row causes is the table's fault, so the batch must fail without dead letters.
func TestSequenceThatHasRunOutFailsTheBatch(t *testing.T) {
	db := onPostgres(t)
	db.Exec(t, "CREATE SEQUENCE few MAXVALUE 2; CREATE TABLE a (id int PRIMARY KEY, n int DEFAULT nextval('few'))")
	s, p := db.flushing("a", []string{"id"})
	p.Columns = p.Columns[:1]
	if _, err := s.Apply(t.Context(), fence(1), p, batch("a", 0, rowOf(1), rowOf(2), rowOf(3))); err == nil ||
		errors.Is(err, flush.ErrTransient) {
		t.Errorf("apply: %v", err)
	}
}

func TestRefusedDeleteIsADeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.Exec(t, "CREATE TABLE city (id int PRIMARY KEY)")
		db.create("CREATE TABLE p (city int REFERENCES city (id))",
			"CREATE TABLE p (city int, FOREIGN KEY (city) REFERENCES city (id))",
			"CREATE TABLE p (city int REFERENCES city (id))")
		db.Exec(t, "INSERT INTO city VALUES (1), (2), (3)")
		db.Exec(t, "INSERT INTO p VALUES (2)")
		s, p := db.flushing("city", []string{"id"})
		out := apply(t, s, fence(1), p, batch("a", 0, gone(1, 1), gone(1, 2), gone(1, 3), rowOf(4)))
		if out.Rows != 3 || len(out.Dead) != 1 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id FROM city ORDER BY id", "2", "4")
	})
}

// A database also checks the row that an upsert would insert. But 10 minus 3 is allowed, although -3 is not.
func TestSubtractionFromAColumnThatMustNotBeNegative(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE stock (id int PRIMARY KEY, n smallint CHECK (n >= 0))",
			"CREATE TABLE stock (id int PRIMARY KEY, n smallint unsigned)",
			"CREATE TABLE stock (id INTEGER PRIMARY KEY, n int CHECK (n >= 0))")
		db.Exec(t, "INSERT INTO stock VALUES (1, 10), (2, 10), (3, 10)")
		s, p := db.flushing("stock", []string{"id"}, "n")
		out := apply(t, s, fence(1), p, batch("a", 0, rowOf(1, -3), rowOf(2, 1), rowOf(3, -11), rowOf(4, -1)))
		if out.Rows != 2 || len(out.Dead) != 2 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id, n FROM stock ORDER BY id", "1|7", "2|11", "3|10")
	})
}

// An upsert checks the row that it would insert, with the default of each column that the job does not write. If that row violates a
// constraint, the existing row may still fit.
func TestARowThatIsThereFitsByTheColumnsThatItHas(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.Exec(t, "CREATE TABLE used (id int PRIMARY KEY, n int, quota int NOT NULL DEFAULT 0, CHECK (n <= quota))")
		for _, rows := range []int{3, 900} { // PostgreSQL gets the larger batch by COPY
			db.Exec(t, "DELETE FROM used")
			for i := range rows - 1 {
				db.Exec(t, fmt.Sprintf("INSERT INTO used VALUES (%d, 1, %d)", i, 100-99*(i%3/2)))
			}
			s := db.leading()
			all := make([]row.Row, rows)
			for i := range all {
				all[i] = rowOf(i, 5)
			}
			p := plan(t, s, "used", []string{"id"})
			p.Columns = slices.DeleteFunc(p.Columns, func(c row.PlanColumn) bool { return c.Name == "quota" })
			out := apply(t, s, fence(1), p, batch("a", rows, all...))
			if tooMuch := rows / 3; out.Rows != int64(rows-tooMuch) || len(out.Dead) != tooMuch { // includes the one new row
				t.Errorf("%d rows written, %d dead", out.Rows, len(out.Dead))
			}
		}
	})
}

func TestSumThatOverflowsIsADeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		db.Exec(t, "INSERT INTO articles VALUES (1, 9223372036854775807)")
		s, p := db.flushing("articles", []string{"id"}, "views")
		out := apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 1), rowOf(2, 1)))
		if out.Rows != 1 || len(out.Dead) != 1 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id, views FROM articles ORDER BY id", "1|9223372036854775807", "2|1")
	})
}

// Two keys differ for baton, but are equal in the database because of its collation. No row may be lost, and the batch must succeed.
func TestKeysThatTheDatabaseHoldsForEqual(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE w (word "+
			"text COLLATE nocase PRIMARY KEY, n int)",
			"CREATE TABLE w (word varchar(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n int)",
			"CREATE TABLE w (word text COLLATE NOCASE PRIMARY KEY, n int)")
		s, p := db.flushing("w", []string{"word"}, "n")
		out := apply(t, s, fence(1), p, batch("a", 0, rowOf("A", 1), rowOf("a", 2)))
		if len(out.Dead) > 0 {
			t.Errorf("dead letters %+v", out.Dead)
		}
		db.expect("SELECT n FROM w", "3")
	})
}

// A trigger may skip a row without an error, so the row is not in the table. A trigger of MySQL can only refuse a row.
func TestRowsThatATriggerLeavesOutAreCounted(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.Exec(t, "CREATE TABLE odd (id bigint PRIMARY KEY, n bigint)")
		switch db.Driver {
		case "mysql":
			return
		case "postgres":
			db.Exec(t, "CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.n % 2 = 0 THEN RETURN NULL; END "+
				"IF; RETURN NEW; END'")
			db.Exec(t, "CREATE TRIGGER leave_out BEFORE INSERT OR UPDATE ON odd FOR EACH ROW EXECUTE FUNCTION leave_out()")
		case "sqlite":
			db.Exec(t, "CREATE TRIGGER leave_out BEFORE INSERT ON odd WHEN NEW.n % 2 = 0 BEGIN SELECT RAISE(IGNORE); END")
		}
		s := db.leading()
		for _, rows := range []int{9, 900} { // PostgreSQL gets the larger batch by COPY
			for _, p := range []*row.Plan{plan(t, s, "odd", []string{"id"}), plan(t, s, "odd", nil)} {
				db.Exec(t, "DELETE FROM odd")
				var some []row.Row
				for i := range rows {
					some = append(some, rowOf(i, i))
				}
				out := apply(t, s, fence(1), p, batch(fmt.Sprint(rows, len(p.Key)), 0, some...))
				odd := int64(rows / 2)
				if out.Rows != odd || out.Ignored != int64(rows)-odd || len(out.Dead) > 0 {
					t.Errorf("of %d rows, key %v: %d written, %d left out, %d dead", rows, p.Key, out.Rows, out.Ignored, len(out.Dead))
				}
				db.expect("SELECT count(*) FROM odd", fmt.Sprint(odd))
			}
		}
		// The batch contains one row of each kind, and is applied again.
		out := apply(t, s, fence(1), plan(t, s, "odd", []string{"id"}), batch("again", 0, rowOf(1, 3), rowOf(2, 4), gone(2, 3)))
		if out.Rows != 2 || out.Ignored != 1 {
			t.Errorf("%d written, %d left out", out.Rows, out.Ignored)
		}
	})
}

// MySQL closes a connection that sends more than max_allowed_packet.
func TestLongRowsAreWrittenAndOneThatIsTooLongIsADeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE notes (id bigint PRIMARY KEY, text text)",
			"CREATE TABLE notes (id bigint PRIMARY KEY, text longtext)",
			"CREATE TABLE notes (id INTEGER PRIMARY KEY, text text)")
		s := db.leading(ttl(10 * time.Minute)) // so long that the server does not end the transaction of a slow client
		p := plan(t, s, "notes", []string{"id"})
		var rows []row.Row
		for i := range 1000 {
			rows = append(rows, rowOf(i, strings.Repeat("x", packet/900)))
		}
		if out := apply(t, s, fence(1), p, batch("a", 0, rows...)); out.Rows != 1000 {
			t.Errorf("of long rows: %d written, %d dead", out.Rows, len(out.Dead))
		}
		if db.Driver != "mysql" {
			return // these databases have no limit that a test could reach
		}
		out := apply(t, s, fence(1), p, batch("b", 0, rowOf(1, "short"), rowOf(2, strings.Repeat("x", packet+packet/16)),
			rowOf(3, "short")))
		if out.Rows != 2 || len(out.Dead) != 1 || !strings.Contains(out.Dead[0].Error, "max_allowed_packet") {
			t.Errorf("outcome %d rows, %d dead", out.Rows, len(out.Dead))
		}
		db.expect("SELECT JSON_VALUE(record, '$.key'), LENGTH(JSON_UNQUOTE(JSON_EXTRACT(record, '$.all_cut'))) FROM baton_dead_letter",
			"2|1024")
		keys, err := s.LetterKeys(t.Context(), sql.LetterFilter{})
		if err != nil || len(keys) != 1 {
			t.Fatalf("letters %v, %v", keys, err)
		}
		letter, err := s.Letter(t.Context(), keys[0].ID)
		if err != nil || letter.Record != out.Dead[0].Record {
			t.Errorf("the letter has %d bytes of %d, %v", len(letter.Record), len(out.Dead[0].Record), err)
		}
		if dropped, err := s.DropLetters(t.Context(), []string{letter.ID}); err != nil || dropped != 1 {
			t.Errorf("dropped %d, %v", dropped, err)
		}
		db.expect("SELECT count(*) FROM baton_dead_letter_part", "0")
		db.expect("SELECT count(*) FROM notes WHERE text = 'short'", "2")
	})
}

// A record that does not fit into the longest statement may fit later, when the server accepts longer statements.
func TestARecordInPartsIsReplayedAsAWhole(t *testing.T) {
	db := prepared(t, mariaDB)
	db.Exec(t, "CREATE TABLE notes (id bigint PRIMARY KEY, text varchar(9))")
	s := db.leading(ttl(10 * time.Minute))
	p := plan(t, s, "notes", []string{"id"})
	const parts = (packet + packet/16) / (16 << 10)
	long := rowOf(7, strings.Repeat("ł😀", (packet+packet/16)/6))
	if out := apply(t, s, fence(1), p, batch("a", 0, long)); len(out.Dead) != 1 {
		t.Fatalf("%d dead", len(out.Dead))
	}
	if n := len(db.Rows(t, "SELECT part FROM baton_dead_letter_part")); n < parts {
		t.Errorf("%d parts, want %d or more", n, parts)
	}
	keys, err := s.LetterKeys(t.Context(), sql.LetterFilter{})
	if err != nil || len(keys) != 1 {
		t.Fatalf("letters %v, %v", keys, err)
	}
	letter, err := s.Letter(t.Context(), keys[0].ID)
	if err != nil || letter.Record != row.RecordJSON(p.Inputs, long.Record) {
		t.Errorf("the letter has %d bytes of %d, %v", len(letter.Record), len(row.RecordJSON(p.Inputs, long.Record)), err)
	}
	replay := sql.Replay{ID: letter.ID, Job: letter.Job, Plan: p, Row: long}
	if err := s.Replay(t.Context(), replay); !errors.Is(err, sql.ErrStillRefused) {
		t.Errorf("the row as it was: %v", err)
	}
	replay.Row = rowOf(7, "mended")
	if err := s.Replay(t.Context(), replay); err != nil {
		t.Errorf("the row as it was mended: %v", err)
	}
	db.expect("SELECT (SELECT count(*) FROM baton_dead_letter_part), (SELECT count(*) FROM baton_dead_letter), (SELECT text FROM notes)",
		"0|0|mended")
}

// The first dead letter is too long. If the connection then breaks before the shortened letter is written, the error must be transient, so
// that the batch is applied again.
func TestConnectionCutBeforeADeadLetterIsShortenedIsTransient(t *testing.T) {
	db := prepared(t, mariaDB)
	db.Exec(t, "CREATE TABLE notes (id bigint PRIMARY KEY, text longtext)")
	proxy := db.Proxy()
	s := db.leading(ttl(10*time.Minute), through(db, proxy))
	p := plan(t, s, "notes", []string{"id"})
	b := batch("a", 0, rowOf(1, "short"), rowOf(2, strings.Repeat("x", packet+packet/16)))
	happened := proxy.LoseRequest("all_cut") // only the shortened letter contains this text
	applyUntil(t, happened, s, p, b)
	if out := persist(t, s, fence(1), p, b); out.Rows != 1 || len(out.Dead) != 1 {
		t.Errorf("outcome %d rows, %d dead", out.Rows, len(out.Dead))
	}
	db.expect("SELECT count(*) FROM baton_dead_letter", "1")
}

// MySQL's upsert reacts to every unique index, and would change the row that has the same value in the second index.
func TestRowThatMeetsAnotherOneInASecondUniqueIndexIsADeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		for _, c := range []struct {
			table, columns string
			key            []string
			add            string
			before, met    row.Row
			want           string
		}{
			{"sums", "(id bigint PRIMARY KEY, mail varchar(20) UNIQUE, n bigint)", []string{"id"}, "n", rowOf(1, "a", 5),
				rowOf(2, "a", 7), "1|a|5"},
			{"states", "(id bigint PRIMARY KEY, mail varchar(20) UNIQUE, n bigint)", []string{"id"}, "", rowOf(1, "a", 5),
				rowOf(2, "a", 7), "1|a|5"},
			{"pairs", "(a bigint, b varchar(9), n bigint UNIQUE, PRIMARY KEY (a, b))", []string{"a", "b"}, "", rowOf(1, "x", 5),
				rowOf(1, "y", 5), "1|x|5"},
			{"keys_", "(a bigint UNIQUE, b bigint UNIQUE, n bigint)", []string{"a"}, "n", rowOf(nil, 5, 5), rowOf(1, 5, 7), "NULL|5|5"},
			{"bare", "(a bigint, b bigint UNIQUE, PRIMARY KEY (a, b))", []string{"a", "b"}, "", rowOf(1, 5), rowOf(2, 5), "1|5"},
		} {
			db.Exec(t, "CREATE TABLE "+c.table+" "+c.columns)
			s, p := db.flushing(c.table, c.key, c.add)
			if c.table == "keys_" {
				db.Exec(t, "INSERT INTO keys_ (a, b, n) VALUES (NULL, 5, 5)")
			} else {
				apply(t, s, fence(1), p, batch(c.table+" before", 0, c.before))
			}
			out := apply(t, s, fence(1), p, batch(c.table, 0, c.met))
			if out.Rows != 0 || len(out.Dead) != 1 || !strings.Contains(strings.ToLower(out.Dead[0].Error), "unique") {
				t.Errorf("%s: outcome %+v", c.table, out)
			}
			db.expect("SELECT * FROM "+c.table, c.want)
		}
	})
}

// If the batch continued, each attempt would write the later rows outside of a transaction.
func TestRowForWhichSQLiteRollsEverythingBackEndsTheBatch(t *testing.T) {
	for name, ddl := range map[string][]string{
		"trigger": {"CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER)",
			"CREATE TRIGGER no BEFORE INSERT ON a WHEN NEW.id = 3 BEGIN SELECT RAISE(ROLLBACK, 'not three'); END"},
		"constraint": {"CREATE TABLE a (id INTEGER PRIMARY KEY, n INTEGER UNIQUE ON CONFLICT ROLLBACK)", "INSERT INTO a VALUES (9, 3)"},
	} {
		t.Run(name, func(t *testing.T) {
			db := &bench{Database: kinds[2].make(t), t: t}
			for _, text := range ddl {
				db.Exec(t, text)
			}
			s, p := db.flushing("a", []string{"id"}, "n")
			for range 2 {
				_, err := s.Apply(t.Context(), fence(1), p, batch("a", 0, rowOf(1, 1), rowOf(2, 2), rowOf(3, 3), rowOf(4, 4), rowOf(5, 5)))
				if err == nil || errors.Is(err, flush.ErrTransient) || !strings.Contains(err.Error(), "RAISE(ABORT") {
					t.Errorf("apply: %v", err)
				}
			}
			db.expect("SELECT count(*) FROM a WHERE id < 9", "0")
			out := apply(t, s, fence(1), p, batch("b", 0, rowOf(1, 1), rowOf(2, 2)))
			if out.Rows != 2 {
				t.Errorf("the batch after: %+v", out)
			}
		})
	}
}

// SQLite has no exact fractions.
func TestDecimalsAreAddedExactlyOrRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE stock (id int PRIMARY KEY, n numeric(30,10) CHECK (n >= 0))",
			"CREATE TABLE stock (id int PRIMARY KEY, n decimal(30,10) unsigned)",
			"CREATE TABLE stock (id INTEGER PRIMARY KEY, n decimal(30,10) CHECK (n >= 0))")
		s, p := db.flushing("stock", []string{"id"}, "n")
		number := func(s string) row.Value { return row.String(row.KindNumeric, s) }
		before, change, whole := number("12345678901234567890.5"), number("-0.0000000001"), "12345678901234567890.4999999999"
		dead := 0
		if db.Driver == "sqlite" {
			before, whole, dead = number("1234567890123456789"), "1234567890123456789", 1
		}
		apply(t, s, fence(1), p, batch("a", 0, rowOf(1, before), rowOf(2, number("7"))))
		// A row whose value would be negative is not written by an upsert.
		out := apply(t, s, fence(1), p, batch("b", 0, rowOf(1, change), rowOf(2, number("-5"))))
		if len(out.Dead) != dead {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT n FROM stock WHERE id = 1", whole)
		db.expect("SELECT count(*) FROM stock WHERE n = 2", "1")
	})
}

// PostgreSQL and SQLite can defer a check until COMMIT, and an error of COMMIT does not name the row at fault.
func TestDeferredConstraintIsCheckedBeforeCommit(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		db := onPostgres(t)
		db.Exec(t, "CREATE TABLE n (id int PRIMARY KEY, up int REFERENCES n (id) DEFERRABLE INITIALLY DEFERRED)")
		s, p := db.flushing("n", []string{"id"})
		out := apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 2), rowOf(2, nil), rowOf(3, 99)))
		if out.Rows != 2 || len(out.Dead) != 1 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id, up FROM n ORDER BY id", "1|2", "2|NULL")
	})
	t.Run("sqlite", func(t *testing.T) {
		db := &bench{Database: testsupport.SQLite(t), t: t}
		db.Exec(t, "CREATE TABLE n (id int PRIMARY KEY, up int REFERENCES n DEFERRABLE INITIALLY DEFERRED)")
		db.Exec(t, "CREATE TABLE leaf (n int REFERENCES n (id) DEFERRABLE INITIALLY DEFERRED)")
		s, p := db.flushing("n", []string{"id"})
		out := apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 2), rowOf(2, nil), rowOf(3, 99), rowOf(4, 4)))
		if out.Rows != 3 || len(out.Dead) != 1 || !strings.Contains(out.Dead[0].Error, "FOREIGN KEY") {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id, up FROM n ORDER BY id", "1|2", "2|NULL", "4|4")

		db.Exec(t, "INSERT INTO leaf VALUES (4)")
		gone := func(id int) row.Row { r := rowOf(id, nil); r.Delete = true; return r }
		out = apply(t, s, fence(1), p, batch("b", 0, gone(1), gone(2), gone(4)))
		if out.Rows != 2 || len(out.Dead) != 1 || !strings.Contains(out.Dead[0].Error, `"leaf"`) {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id, up FROM n ORDER BY id", "4|4")

		again := rowOf(4, nil)
		again.Replace = true
		if out = apply(t, s, fence(1), p, batch("c", 0, again)); out.Rows != 1 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT id, up FROM n ORDER BY id", "4|NULL")
	})
}

// Besides constraints, databases have other reasons to refuse a row.
func TestWhateverADatabaseRefusesOfARowIsADeadLetter(t *testing.T) {
	refusals := map[string][]struct {
		name, table string
		bad         any // value of n in the row with the id 3
	}{
		"postgres": {
			{"a policy", "CREATE TABLE r (id int PRIMARY KEY, n int); ALTER TABLE r ENABLE ROW LEVEL SECURITY; " +
				"CREATE POLICY p ON r USING (true) WITH CHECK (n > 0)", -1},
			{"a generated column", "CREATE TABLE r (id int PRIMARY KEY, n int, q int GENERATED ALWAYS AS (10 / n) STORED)", 0},
			{"no partition", "CREATE TABLE r (id int PRIMARY KEY, n int) PARTITION BY RANGE (id); CREATE TABLE r1 PARTITION OF r FOR " +
				"VALUES FROM (1) TO (3)", 1},
		},
		"mysql": {
			{"a generated column", "CREATE TABLE r (id int PRIMARY KEY, n int, q int AS (10 DIV n) STORED)", 0},
			{"no partition", "CREATE TABLE r (id int PRIMARY KEY, n int) PARTITION BY LIST (id) (PARTITION a VALUES IN (1, 2))", 1},
		},
		"sqlite": {
			{"a generated column", "CREATE TABLE r (id int PRIMARY KEY, n text, q GENERATED ALWAYS AS (json_extract(n, '$.a')) STORED)",
				"{"},
		},
	}
	everywhere(t, func(t *testing.T, db *bench) {
		var as []func(*sql.Options)
		if db.Driver == "postgres" { // policies do not apply to the owner of a table
			db.Exec(t, "CREATE ROLE clerk LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk")
			// A role that owns temporary objects cannot be dropped.
			db.Exec(t, "DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$")
			defer db.Exec(t, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM clerk; DROP ROLE clerk")
			as = append(as, asRole("clerk"))
		}
		s := db.leading(as...)
		for i, r := range refusals[db.Driver] {
			db.Exec(t, r.table)
			if db.Driver == "postgres" {
				db.Exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON r TO clerk")
			}
			p := plan(t, s, "r", []string{"id"})
			p.Columns = p.Columns[:2] // a generated column is not written
			good := func(id int) row.Row { return rowOf(id, 1) }
			if db.Driver == "sqlite" {
				good = func(id int) row.Row { return rowOf(id, "{}") }
			}
			out := apply(t, s, fence(1), p, batch(fmt.Sprint("b", i), 0, good(1), good(2), rowOf(3, r.bad)))
			if out.Rows != 2 || len(out.Dead) != 1 {
				t.Errorf("%s: outcome %+v", r.name, out)
			}
			db.expect("SELECT id FROM r ORDER BY id", "1", "2")
			db.Exec(t, "DROP TABLE r")
		}
	})
}

// Each part of a batch is a transaction, so equal records in two parts are two different letters.
func TestEqualRecordsInTwoPartsAreTwoLetters(t *testing.T) {
	db := prepared(t, testsupport.SQLite)
	db.people()
	s, p := db.flushing("people", []string{"id"})
	letter := row.DeadLetter{Record: `{"key":"8"}`, Error: "no number"}
	for part := range 2 {
		b := batch("a", part, rowOf(part, "x", 1))
		b.Dead = []row.DeadLetter{letter}
		apply(t, s, fence(1), p, b)
		db.expect("SELECT count(*) FROM baton_dead_letter", fmt.Sprint(part+1))
	}
	b := batch("b", 0, rowOf(9, "x", 1)) // a letter in another batch, or of another job, is also another letter
	b.Dead = []row.DeadLetter{letter}
	apply(t, s, fence(1), p, b)
	other := fence(1)
	other.Job = "k"
	takeOver(t, s, other)
	apply(t, s, other, p, b)
	db.expect("SELECT count(*) FROM baton_dead_letter", "4")
}

func TestDeadLettersOfTheBatchAreKeptWithIt(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		s, p := db.flushing("people", []string{"id"})
		b := batch("a", 0, rowOf(1, "x", 1))
		b.Dead = []row.DeadLetter{
			{Record: `{"key":"9","name":"\u0000Zoë 😀"}`, Error: "age: \x00 \xff is not a number"},
			{Record: `{"key":"8"}`, Error: strings.Repeat("ü", 5000)},
			{Record: `{"key":"8"}`, Error: "the same record again"},
		}
		if out := apply(t, s, fence(1), p, b); len(out.Dead) != 3 {
			t.Errorf("outcome %+v", out)
		}
		db.expect("SELECT record, error FROM baton_dead_letter WHERE record LIKE '%9%'",
			`{"key":"9","name":"\u0000Zoë 😀"}|age: � � is not a number`)
		db.expect("SELECT count(*) FROM baton_dead_letter", "3")

		takeOver(t, s, fence(2)) // a batch that is fenced off also leaves no dead letters
		b.ID = "b"
		_, err := s.Apply(t.Context(), fence(1), p, b)
		wantFenced(t, err, 2)
		db.expect("SELECT count(*) FROM baton_dead_letter", "3")
	})
}
