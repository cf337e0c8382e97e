package sql_test

import (
	"strings"
	"testing"
	"time"

	"baton/internal/flush/sql"
	"baton/internal/testsupport"
)

// A DBA makes a database read-only before it is moved, because later writes would be missing after the move.
func TestAFrozenDatabaseIsNotWritten(t *testing.T) {
	frozen := "tx_read_only"
	if testsupport.HasDialect(testsupport.DialectMySQL) {
		frozen = "transaction_read_only"
	}
	for _, kind := range []struct {
		name, freeze, thaw string
		make               func(testing.TB) *testsupport.Database
	}{
		{
			"postgres", alterDatabase("SET default_transaction_read_only = on"), alterDatabase("RESET default_transaction_read_only"),
			testsupport.Postgres,
		},
		{"mariadb", "SET GLOBAL " + frozen + " = 1", "SET GLOBAL " + frozen + " = 0", testsupport.StartMariaDB},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			db := prepared(t, kind.make)
			db.articles()
			s, p := db.flushing("articles", []string{"id"}, "views")
			apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
			db.Exec(t, kind.freeze)
			frozen := db.open()
			err := frozen.TakeOver(t.Context(), fence(2))
			if wantTransient(t, err); !strings.Contains(strings.ToLower(err.Error()), "read") {
				t.Errorf("%v, want it to say read-only", err)
			}
			_, err = frozen.Apply(t.Context(), fence(1), p, batch("a", 1, rowOf(1, 5)))
			wantTransient(t, err)
			if strings.Contains(err.Error(), "unknown") || strings.Count(err.Error(), sql.AskDoctor) != 1 {
				t.Errorf("%v, want it to say that nothing was written, and where to look", err)
			}
			db.expect("SELECT id, views FROM articles", "1|5")
			db.expect("SELECT epoch FROM baton_fence", "1")
			expectFinding(t, frozen, "read-only")
			db.Exec(t, kind.thaw)
			persist(t, db.open(), fence(1), p, batch("a", 1, rowOf(1, 5)))
			db.expect("SELECT id, views FROM articles", "1|10")
		})
	}
}

// alterDatabase alters the current database of PostgreSQL.
func alterDatabase(how string) string {
	return "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I " + how + "', current_database()); END $$"
}

func expectFinding(t *testing.T, s *sql.Store, what string) {
	t.Helper()
	findings, _ := s.Preflight(t.Context(), false)
	for _, f := range findings {
		if strings.Contains(f.What, what) {
			return
		}
	}
	t.Errorf("%+v, want a finding of %q", findings, what)
}

// If a role, a database or a server has a shorter time limit than ours, that limit stays. Otherwise our limit applies.
func TestNoLimitIsMadeWider(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		db := onPostgres(t)
		db.Exec(t, `CREATE TABLE seen (id bigint PRIMARY KEY, views bigint, settings text);
			CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
				new.settings = concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'),
					current_setting('idle_in_transaction_session_timeout'), current_setting('synchronous_commit'),
					current_setting('search_path'), current_setting('transaction_isolation'), current_setting('TimeZone'));
				RETURN new; END $f$;
			CREATE TRIGGER see BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION see()`)
		for _, setting := range []string{
			"lock_timeout = 17000", "statement_timeout = 3600000", "search_path = public, pg_temp", "synchronous_commit = off",
			"default_transaction_isolation = serializable",
		} {
			db.Exec(t, alterDatabase("SET "+setting))
		}
		defer db.Exec(t, alterDatabase("RESET ALL"))
		s := db.leading(ttl(time.Minute))
		p := plan(t, s, "seen", []string{"id"})
		p.Columns = p.Columns[:2]
		apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 1)))
		db.expect("SELECT settings FROM seen", "17s 30s 15s on public, pg_temp read committed UTC")
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		settings := []string{"max_statement_time", "11", "idle_transaction_timeout", "@@tx_isolation"}
		want := "7 11.000000 15 READ-COMMITTED"
		if testsupport.HasDialect(testsupport.DialectMySQL) {
			settings, want = []string{"max_execution_time", "11000", "wait_timeout", "@@transaction_isolation"}, "7 11000 15 READ-COMMITTED"
		}
		statement, limit, idle, isolation := settings[0], settings[1], settings[2], settings[3]
		db := prepared(t, testsupport.StartMariaDB)
		db.Exec(t, `CREATE TABLE seen (id bigint PRIMARY KEY, views bigint, settings text) ENGINE=InnoDB;
			CREATE TRIGGER see BEFORE INSERT ON seen FOR EACH ROW SET new.settings = concat_ws(' ',
				@@innodb_lock_wait_timeout, @@`+statement+`, @@`+idle+`, `+isolation+`);
			SET GLOBAL innodb_lock_wait_timeout = 7; SET GLOBAL `+statement+` = `+limit+`; SET GLOBAL `+idle+` = 5000`)
		s := db.leading(ttl(time.Minute))
		p := plan(t, s, "seen", []string{"id"})
		p.Columns = p.Columns[:2]
		apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 1)))
		db.expect("SELECT settings FROM seen", want)
	})
}
