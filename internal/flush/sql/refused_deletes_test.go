package sql_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

// A deletion writes no row, whatever other rows are refused, and in whichever pieces the rows are written. A refused deletion leaves its
// row unchanged.
func TestADeletionAmongRefusedRowsWritesNoRow(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.create(
			`CREATE TABLE desks (id int PRIMARY KEY, n int CHECK (n >= 0), nick varchar(20) UNIQUE, f double precision);
			CREATE TABLE sits (desk int REFERENCES desks (id));
			CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
				IF NEW.f = -1 THEN RAISE ''not this one''; END IF; RETURN NULL; END';
			CREATE TRIGGER late AFTER INSERT OR UPDATE ON desks FOR EACH ROW EXECUTE FUNCTION late()`,
			"CREATE TABLE desks (id int PRIMARY KEY, n int CHECK (n >= 0), nick varchar(20) UNIQUE, f double)",
			"CREATE TABLE desks (id INTEGER PRIMARY KEY, n int CHECK (n >= 0), nick varchar(20) UNIQUE, f double)")
		if db.Driver != "postgres" {
			db.Exec(t, "CREATE TABLE sits (desk int, FOREIGN KEY (desk) REFERENCES desks (id))")
		}
		s, p := db.flushing("desks", []string{"id"})
		odd := map[string]float64{"postgres": -1, "mysql": math.Inf(1), "sqlite": math.NaN()}[db.Driver]
		const size = 120
		for n := range 6 {
			random := rand.New(rand.NewPCG(7, uint64(n)))
			var before, rows []row.Row
			for id := range size {
				before = append(before, rowOf(n*size+id, 1, nil, 1.0))
			}
			apply(t, s, fence(1), p, batch("before", n, before...))
			kept := 0
			for i := range size {
				id := n*size + i
				switch random.IntN(12) {
				case 0, 1, 2:
					rows = append(rows, gone(4, id))
					if random.IntN(3) == 0 {
						kept++
						db.Exec(t, fmt.Sprintf("INSERT INTO sits VALUES (%d)", id))
					}
				case 3:
					rows = append(rows, rowOf(id, -1, nil, 1.0))
				case 4:
					rows = append(rows, rowOf(id, 2, nil, odd))
				case 5, 6:
					rows = append(rows, rowOf(id, 2, fmt.Sprint(n, " ", random.IntN(5)), 1.0))
				default:
					rows = append(rows, rowOf(id, 2, nil, 1.0))
				}
			}
			apply(t, s, fence(1), p, batch("a", n, rows...))
			db.expect("SELECT count(*) FROM desks WHERE n IS NULL OR f IS NULL", "0")
			db.expect(fmt.Sprintf("SELECT count(*), sum(n) FROM desks, sits WHERE id = desk AND id >= %d", n*size),
				fmt.Sprintf("%d|%[1]d", kept))
		}
	})
}

// If MariaDB refuses a row that a trigger writes to another table, its row number belongs to that row, not to a row of the batch.
func TestARowThatATriggersStatementNumbersIsNotAtFault(t *testing.T) {
	db := prepared(t, mariaDB)
	db.Exec(t, "CREATE TABLE visits (id int PRIMARY KEY, n int CHECK (n < 100)) ENGINE=InnoDB")
	db.Exec(t, "CREATE TABLE seen (id int, n int CHECK (n >= 0)) ENGINE=InnoDB")
	db.Exec(t, "CREATE TRIGGER seen AFTER INSERT ON visits FOR EACH ROW INSERT INTO seen VALUES (NEW.id, 1), (NEW.id, NEW.n)")
	s, p := db.flushing("visits", []string{"id"})
	const size = 600
	for n := range 6 {
		var rows []row.Row
		for i := range size {
			rows = append(rows, rowOf(n*size+i, 1))
		}
		for _, i := range []int{100, 101, 400} {
			rows[i] = rowOf(n*size+i, -1)
		}
		rows[599] = rowOf(n*size+599, 100)
		out := apply(t, s, fence(1), p, batch("a", n, rows...))
		var dead []string
		for _, d := range out.Dead {
			key, _, _ := strings.Cut(strings.TrimPrefix(d.Record, `{"key":"`), `"`)
			dead = append(dead, key)
		}
		slices.Sort(dead)
		want := []string{fmt.Sprint(n*size + 100), fmt.Sprint(n*size + 101), fmt.Sprint(n*size + 400), fmt.Sprint(n*size + 599)}
		slices.Sort(want)
		if !slices.Equal(dead, want) || out.Rows != size-4 {
			t.Errorf("batch %d: %d rows, dead %v, want %v", n, out.Rows, dead, want)
		}
		db.expect("SELECT count(*), sum(n) FROM visits", fmt.Sprintf("%d|%[1]d", (n+1)*(size-4)))
		db.expect("SELECT count(*), sum(n) FROM seen", fmt.Sprintf("%d|%[1]d", 2*(n+1)*(size-4)))
	}
}
