package sql_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/sql"
)

// copied is a number of rows that is large enough for a COPY.
const copied = 2500

func TestRowsRefusedAfterOrWhileCopyingAreFound(t *testing.T) {
	db := onPostgres(t)
	db.people()
	s, p := db.flushing("people", []string{"id"})
	for n, bad := range []string{"much too long a name", "nul\x00", "\xff"} { // COPY itself refuses the last two values
		var rows []row.Row
		for id := range copied {
			rows = append(rows, rowOf(id, fmt.Sprint("round ", n), id))
		}
		rows[7] = rowOf(7, bad, 7)
		rows[2000] = rowOf(2000, bad, 2000)
		rows[2001] = rowOf(2001, "Ann", -1)
		rows[2002] = gone(3, 2002)
		out := apply(t, s, fence(1), p, batch("a", n, rows...))
		if len(out.Dead) != 3 || out.Rows != copied-3 {
			t.Errorf("%q: %d rows, %d dead", bad, out.Rows, len(out.Dead))
		}
		db.expect(fmt.Sprintf("SELECT count(*) FROM people WHERE name = 'round %d'", n), textOf(copied-4))
	}
}

func TestEveryTypeArrivesAsItWasWhenCopied(t *testing.T) {
	db := onPostgres(t)
	db.Exec(t, "CREATE TYPE mood AS ENUM ('good', 'bad')")
	s := db.leading()
	for n, c := range roundTrips["postgres"] {
		name := fmt.Sprintf("one_%d", n)
		db.Exec(t, "CREATE TABLE "+name+" (id int PRIMARY KEY, c "+c.column+")")
		var rows []row.Row
		for i := range copied {
			rows = append(rows, rowOf(i, c.values[i%len(c.values)]))
		}
		rows[copied-1] = rowOf(copied-1, nil)
		for range 2 {
			if out := apply(t, s, fence(1), plan(t, s, name, []string{"id"}), batch(name, -1, rows...)); len(out.Dead) > 0 {
				t.Errorf("%s: dead letters %+v", c.column, out.Dead)
			}
		}
		show := c.show
		if show == "" {
			show = "c"
		}
		db.expect(fmt.Sprintf("SELECT %s FROM %s WHERE id < %d ORDER BY id", show, name, len(c.want)), c.want...)
		db.expect(fmt.Sprintf("SELECT count(DISTINCT c::text), count(*) FROM %s", name), textOf(len(c.want), copied))
	}
}

func TestCopyNeedsNoMoreThanTheRightsOfAWriter(t *testing.T) {
	db := onPostgres(t)
	db.articles()
	takeOver(t, db.open(), fence(1))
	db.Exec(t, `CREATE ROLE plain LOGIN;
		DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END $$;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO plain`)
	defer db.Exec(t, "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM plain; DROP ROLE plain")
	s := db.open(asRole("plain"))
	takeOver(t, s, fence(2))
	p := plan(t, s, "articles", []string{"id"}, "views")
	var rows []row.Row
	for id := range copied {
		rows = append(rows, rowOf(id, 1))
	}
	for n := range 2 {
		apply(t, s, fence(2), p, batch("a", n, rows...))
	}
	db.expect("SELECT count(*), sum(views) FROM articles", textOf(copied, 2*copied))
}

// A pooler may give every transaction another session of the server, which does not have our temporary tables.
func TestTemporaryTableThatIsGoneIsNotMissed(t *testing.T) {
	db := onPostgres(t)
	db.articles()
	s, p := db.flushing("articles", []string{"id"}, "views")
	var rows []row.Row
	for id := range copied {
		rows = append(rows, rowOf(id, 1))
	}
	apply(t, s, fence(1), p, batch("a", 0, rows...))
	db.Exec(t, `CREATE FUNCTION discard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DISCARD TEMP; RETURN new; END';
		CREATE TRIGGER discard BEFORE INSERT ON baton_ledger FOR EACH ROW EXECUTE FUNCTION discard()`)
	_, err := s.Apply(t.Context(), fence(1), p, batch("a", 1, rows...))
	wantTransient(t, err)
	persist(t, s, fence(1), p, batch("a", 1, rows...))
	db.expect("SELECT count(*), sum(views) FROM articles", textOf(copied, 2*copied))
}

// The connection breaks within the rows: the proxy drops the piece that contains the first Bob.
func TestBatchWhoseCopyBreaksIsNotApplied(t *testing.T) {
	db := onPostgres(t)
	db.people()
	proxy := db.Proxy()
	s := db.leading(through(db, proxy))
	p := plan(t, s, "people", []string{"id"})
	rows := make([]row.Row, 20_000)
	for id := range rows {
		name := "Ann"
		if id >= len(rows)/2 {
			name = "Bob"
		}
		rows[id] = rowOf(id, name, id)
	}
	cut := proxy.LoseRequest("Bob")
	_, err := s.Apply(t.Context(), fence(1), p, batch("a", 0, rows...))
	wantTransient(t, err)
	select {
	case <-cut:
	default:
		t.Errorf("the connection was not cut within the rows, and the batch ended with %v", err)
	}
	db.expect("SELECT count(*) FROM people", "0")
	persist(t, s, fence(1), p, batch("a", 0, rows...))
	db.expect("SELECT count(*), count(*) FILTER (WHERE name = 'Bob') FROM people", textOf(len(rows), len(rows)/2))
}

func asRole(name string) func(*sql.Options) {
	return func(o *sql.Options) { o.DSN = strings.Replace(o.DSN, "//app@", "//"+name+"@", 1) }
}

// A leader that freezes within a COPY is not idle, so no timeout of the server ends its transaction. Therefore the transaction must not yet
// hold a lock that the successor waits for.
func TestALeaderFrozenWithinACopyHoldsNobodyUp(t *testing.T) {
	db := onPostgres(t)
	db.articles()
	proxy := db.Proxy()
	frozen := db.open(through(db, proxy))
	takeOver(t, frozen, fence(1))
	p := plan(t, frozen, "articles", []string{"id"}, "views")
	rows := make([]row.Row, 200_000)
	for i := range rows {
		rows[i] = rowOf(i, 1)
	}
	hung, ended := proxy.HangAfterRequest("COPY pg_temp"), make(chan error, 1)
	go func() {
		out, err := frozen.Apply(t.Context(), fence(1), p, batch("b", 0, rows...))
		if out.Applied {
			t.Error("the frozen leader's batch was applied")
		}
		ended <- err
	}()
	const copying = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'BEGIN%COPY pg_temp%'"
	select {
	case <-hung:
	case err := <-ended:
		t.Fatalf("no COPY was seen, and the batch ended with %v", err)
	}
	for db.Rows(t, copying)[0][0] == "0" {
		select {
		case err := <-ended:
			t.Fatalf("the COPY was not begun, and the batch ended with %v", err)
		default:
		}
	}

	successor := db.open()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := successor.TakeOver(ctx, fence(2)); err != nil {
		t.Fatal(err)
	}
	if out, err := successor.Apply(ctx, fence(2), p, batch("b", 0, rows[:2000]...)); err != nil || !out.Applied {
		t.Fatalf("the successor could not write the batch: %+v, %v", out, err)
	}
	proxy.Unhang()
	t.Logf("the frozen leader: %v", <-ended) // the leader is fenced off, or the batch is already in the ledger
	db.expect("SELECT count(*) FROM articles", "2000")
}
