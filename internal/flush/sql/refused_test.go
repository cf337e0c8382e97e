package sql_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// refusals lists reasons for which a database refuses a row of the table that refusalTable makes.
var refusals = []struct {
	name   string
	row    func(id int) []any // id, name, age, country, mail
	reason map[string]string  // a part of the reason, by driver
}{
	{"check", func(id int) []any { return []any{id, "a name", -1, 1, nil} },
		map[string]string{"postgres": "23514", "mysql": "4025|3819", "sqlite": "CHECK"}},
	{"not null", func(id int) []any { return []any{id, nil, 1, 1, nil} },
		map[string]string{"postgres": "23502", "mysql": "1048", "sqlite": "NOT NULL"}},
	{"foreign key", func(id int) []any { return []any{id, "a name", 1, 77, nil} },
		map[string]string{"postgres": `\(country\)=\(77\)`, "mysql": "1452", "sqlite": "FOREIGN KEY"}},
	{"unique", func(id int) []any { return []any{id, "a name", 1, 1, "taken"} },
		map[string]string{"postgres": `\(mail\)=\(taken\)`, "mysql": "taken|unique value", "sqlite": "UNIQUE"}},
	{"too long", func(id int) []any { return []any{id, "a name that is much too long for it", 1, 1, nil} },
		map[string]string{"postgres": "22001", "mysql": "1406", "sqlite": "CHECK"}},
	{"trigger", func(id int) []any { return []any{id, "raise", 1, 1, nil} },
		map[string]string{"postgres": "not this one", "mysql": "not this one", "sqlite": "not this one"}},
}

// refusalTable makes a table that refuses rows for all of these reasons.
func refusalTable(b *bench) {
	b.t.Helper()
	b.Exec(b.t, "CREATE TABLE countries (id int PRIMARY KEY)")
	b.Exec(b.t, "INSERT INTO countries VALUES (1), (2)")
	b.create(
		`CREATE TABLE guests (id bigint PRIMARY KEY, name varchar(20) NOT NULL, age integer CHECK (age >= 0),
			country int REFERENCES countries, mail varchar(40) UNIQUE, note text DEFAULT repeat('x', 60));
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN IF NEW.name = ''raise'' THEN RAISE ''not this one''; END IF; RETURN NEW; END';
		CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON guests FOR EACH ROW EXECUTE FUNCTION refuse()`,
		`CREATE TABLE guests (id bigint PRIMARY KEY, name varchar(20) NOT NULL, age integer CHECK (age >= 0),
			country int, mail varchar(40) UNIQUE, note varchar(100) DEFAULT '`+strings.Repeat("x", 60)+`',
			FOREIGN KEY (country) REFERENCES countries (id)) ENGINE=InnoDB`,
		`CREATE TABLE guests (id INTEGER PRIMARY KEY, name varchar(20) NOT NULL CHECK (length(name) <= 20), age integer CHECK (age >= 0),
			country int REFERENCES countries, mail varchar(40) UNIQUE, note text DEFAULT '`+strings.Repeat("x", 60)+`')`)
	for _, event := range []string{"INSERT", "UPDATE"} {
		switch b.Driver {
		case "mysql":
			b.Exec(b.t, "CREATE TRIGGER refuse_"+event+" BEFORE "+event+" ON guests FOR EACH ROW IF NEW.name = 'raise' THEN "+
				"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF")
		case "sqlite":
			b.Exec(b.t, "CREATE TRIGGER refuse_"+event+" BEFORE "+event+" ON guests WHEN NEW.name = 'raise' "+
				"BEGIN SELECT RAISE(ABORT, 'not this one'); END")
		}
	}
	b.Exec(b.t, "INSERT INTO guests (id, name, age, mail) VALUES (-1, 'who has it', 1, 'taken')")
}

// Whatever share of the rows is refused, for whatever reasons, exactly the refused rows become dead letters, each with its own reason. All
// other rows are written once. The outcomes that one batch has recorded do not change the result of the next batch.
func TestExactlyTheRefusedRowsAreDeadLetters(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		refusalTable(db)
		s := db.leading()
		upsert := plan(t, s, "guests", []string{"id"})
		upsert.Columns = upsert.Columns[:5]
		keep := *upsert
		keep.Keep = true
		plain := *upsert
		plain.Key = nil
		count := *upsert
		count.Columns = slices.Clone(upsert.Columns)
		count.Columns[2].Op = row.OpAdd
		const size = 700
		random := rand.New(rand.NewPCG(1, 2))
		next := 0
		for name, p := range map[string]*row.Plan{"upsert": upsert, "keep": &keep, "no key": &plain, "counters": &count} {
			for n, share := range []int{0, 1000, 100, 10, 2, 1, 30, 0, 0, 1000, 3} {
				var rows []row.Row
				want := map[string]string{}
				from := next
				for ; next < from+size; next++ {
					values := []any{next, "a name", 5, 1, fmt.Sprint("mail", next)}
					if share > 0 && random.IntN(share) == 0 {
						r := refusals[random.IntN(len(refusals))]
						values = r.row(next)
						want[fmt.Sprint(next)] = r.reason[db.Driver]
					}
					rows = append(rows, rowOf(values...))
				}
				out := apply(t, s, fence(1), p, batch(name, n, rows...))
				for _, d := range out.Dead {
					key, _, _ := strings.Cut(strings.TrimPrefix(d.Record, `{"key":"`), `"`)
					if reason, bad := want[key]; !bad || !regexp.MustCompile(reason).MatchString(d.Error) {
						t.Errorf("%s, one of %d: dead letter of row %s, want %q: %s", name, share, key, reason, d.Error)
					}
					delete(want, key)
				}
				if len(want) > 0 || out.Rows != int64(size-len(out.Dead)) {
					t.Errorf("%s, one of %d: %d rows written, %d dead letters, missing %v", name, share, out.Rows, len(out.Dead), want)
				}
				db.expect(fmt.Sprintf("SELECT count(*), COALESCE(sum(age), 0) FROM guests WHERE id BETWEEN %d AND %d", from, next-1),
					fmt.Sprintf("%d|%d", out.Rows, 5*out.Rows))
			}
		}
	})
}

// The position of a refused row that the database reports is only a hint. If a condition is checked after all rows of a statement, the last
// row seems to be at fault.
func TestARowThatIsNotAtFaultIsWritten(t *testing.T) {
	db := onPostgres(t)
	db.Exec(t, `CREATE TABLE late (id int PRIMARY KEY, n int);
		CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
			IF NEW.n < 0 THEN RAISE ''less than nothing: %'', NEW.id USING ERRCODE = ''check_violation''; END IF; RETURN NULL; END';
		CREATE TRIGGER late AFTER INSERT OR UPDATE ON late FOR EACH ROW EXECUTE FUNCTION late()`)
	s, p := db.flushing("late", []string{"id"})
	for n := range 3 {
		var rows []row.Row
		for id := range 1000 {
			rows = append(rows, rowOf(id, n))
		}
		rows[500], rows[700] = rowOf(500, -1), rowOf(700, -1)
		out := apply(t, s, fence(1), p, batch("a", n, rows...))
		reasons := fmt.Sprint(out.Dead)
		if len(out.Dead) != 2 || !strings.Contains(reasons, "nothing: 500") || !strings.Contains(reasons, "nothing: 700") {
			t.Errorf("batch %d: dead letters %+v", n, out.Dead)
		}
		db.expect("SELECT count(*), sum(n) FROM late", fmt.Sprintf("998|%d", 998*n))
	}
}

// Rows that refer to each other within the batch are written whichever row comes first, also in pieces.
func TestRowsThatReferToOthersOfTheirBatchAreWrittenInPieces(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create("CREATE TABLE tree (id int PRIMARY KEY, parent int REFERENCES tree, n int CHECK (n >= 0))",
			"CREATE TABLE tree (id int PRIMARY KEY, parent int, n int CHECK (n >= 0), FOREIGN KEY (parent) REFERENCES tree (id)) "+
				"ENGINE=InnoDB",
			"CREATE TABLE tree (id INTEGER PRIMARY KEY, parent int REFERENCES tree, n int CHECK (n >= 0))")
		s, p := db.flushing("tree", []string{"id"})
		for n := range 3 {
			const size = 600
			var rows []row.Row
			for i := range size {
				id := n*size + i
				parent := any(nil)
				if i%2 == 0 { // refers to an odd row before or after it, but not to a row that is refused
					if other := (7*i + 301) % size; other != 55 && other != 405 {
						parent = n*size + other
					}
				}
				rows = append(rows, rowOf(id, parent, 1))
			}
			rows[55].Values[2], rows[405].Values[2] = row.Integer(-1), row.Integer(-1)
			out := apply(t, s, fence(1), p, batch("a", n, rows...))
			if len(out.Dead) != 2 {
				t.Errorf("batch %d: %d dead letters, %+v", n, len(out.Dead), out.Dead[:min(3, len(out.Dead))])
			}
			db.expect("SELECT count(*) FROM tree", fmt.Sprint((n+1)*(size-2)))
		}
	})
}

func TestDeferredConstraintIsCheckedInEveryPiece(t *testing.T) {
	db := onPostgres(t)
	db.Exec(t, `CREATE TABLE countries (id int PRIMARY KEY); INSERT INTO countries VALUES (1);
		CREATE TABLE people (id int PRIMARY KEY, country int REFERENCES countries DEFERRABLE INITIALLY DEFERRED)`)
	s, p := db.flushing("people", []string{"id"})
	for n := range 3 {
		var rows []row.Row
		for id := range 300 {
			rows = append(rows, rowOf(1000*n+id, 1+id%100/99)) // the country of every hundredth row does not exist
		}
		if out := apply(t, s, fence(1), p, batch("a", n, rows...)); len(out.Dead) != 3 || out.Rows != 297 {
			t.Errorf("batch %d: %d rows, %d dead letters", n, out.Rows, len(out.Dead))
		}
	}
}
