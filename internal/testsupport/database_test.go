package testsupport_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// shared lists the three kinds of database that most tests run on.
var shared = map[string]func(testing.TB) *testsupport.Database{
	"postgres": testsupport.Postgres,
	"mysql":    testsupport.MariaDB,
	"sqlite":   testsupport.SQLite,
}

func TestEveryCallIsAnEmptyDatabase(t *testing.T) {
	for driver, start := range shared {
		t.Run(driver, func(t *testing.T) {
			for range 2 {
				db := start(t)
				if db.Driver != driver {
					t.Fatalf("driver %q, want %q", db.Driver, driver)
				}
				db.Exec(t, "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT); INSERT INTO t VALUES (1, 'ü'), (2, NULL)")
				got := db.Rows(t, "SELECT id, s FROM t ORDER BY id")
				want := [][]string{{"1", "ü"}, {"2", testsupport.NULL}}
				if !slices.EqualFunc(got, want, slices.Equal) {
					t.Fatalf("got %v, want %v", got, want)
				}
			}
		})
	}
}

func TestDSNIsInTheDriversOwnForm(t *testing.T) {
	for driver, start := range shared {
		t.Run(driver, func(t *testing.T) {
			name := driver
			if driver == "postgres" {
				name = "pgx"
			}
			db, err := sql.Open(name, start(t).DSN)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (id INTEGER)"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestDatabasesAreDurable(t *testing.T) {
	for _, c := range []struct{ driver, query, want string }{
		{"postgres", "SELECT current_setting('fsync') || current_setting('synchronous_commit') || current_setting('full_page_writes')", "ononon"},
		{"mysql", "SELECT @@innodb_flush_log_at_trx_commit", "1"},
		{"sqlite", "PRAGMA journal_mode", "wal"},
	} {
		t.Run(c.driver, func(t *testing.T) {
			if got := shared[c.driver](t).Rows(t, c.query); got[0][0] != c.want {
				t.Fatalf("%s: got %v, want %s", c.query, got, c.want)
			}
		})
	}
}

func TestNothingOfATestIsLeftForTheNext(t *testing.T) {
	for driver, litter := range map[string][]string{
		"postgres": {
			"CREATE TABLE t (id INTEGER)", "CREATE SCHEMA shop; CREATE TABLE shop.t (id INTEGER)", "CREATE VIEW v AS SELECT * FROM t",
			"CREATE TYPE mood AS ENUM ('good')", "CREATE DOMAIN short AS text", "CREATE SEQUENCE s", "CREATE EXTENSION ltree",
			"CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE TEMP TABLE temporary (id INTEGER)",
			"SET search_path = shop", "SET datestyle = 'German'", "SELECT pg_advisory_lock(1)", "PREPARE p AS SELECT 1",
		},
		"mysql": {"CREATE TABLE t (id INTEGER)", "CREATE VIEW v AS SELECT * FROM t", "CREATE FUNCTION one() RETURNS int RETURN 1"},
	} {
		t.Run(driver, func(t *testing.T) {
			t.Run("first", func(t *testing.T) {
				db := shared[driver](t)
				for _, query := range litter {
					db.Exec(t, query)
				}
			})
			db := shared[driver](t)
			for _, query := range litter {
				db.Exec(t, query) // no object exists yet
			}
			if driver == "postgres" {
				db.Exec(t, "RESET ALL; SELECT pg_advisory_unlock(1)")
				want := [][]string{{"0", `"$user", public`}}
				query := "SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), current_setting('search_path')"
				if got := db.Rows(t, query); !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("locks and search path: %v, want %v", got, want)
				}
			}
		})
	}
}

// A setting of a database remains when its objects are dropped, so no other test gets a database with such a setting.
func TestDatabaseThatCannotBeMadeAsNewIsDropped(t *testing.T) {
	var dsn string
	t.Run("first", func(t *testing.T) {
		db := shared["postgres"](t)
		dsn = db.DSN
		db.Exec(t, "ALTER DATABASE "+nameOf(dsn)+" SET datestyle = 'German'")
	})
	db := shared["postgres"](t)
	if got := db.Rows(t, "SELECT current_setting('datestyle'), (SELECT count(*) FROM pg_database WHERE datname = '"+nameOf(dsn)+"')"); !strings.HasPrefix(got[0][0], "ISO") || got[0][1] != "0" {
		t.Errorf("date style and databases of the name: %v", got)
	}
}

func nameOf(dsn string) string {
	name, _, _ := strings.Cut(dsn[strings.LastIndex(dsn, "/")+1:], "?")
	return name
}

func TestOpenTransactionEndsWithItsTest(t *testing.T) {
	for _, driver := range []string{"postgres", "mysql"} {
		var tx *sql.Tx
		t.Run(driver, func(t *testing.T) {
			db := shared[driver](t)
			db.Exec(t, "CREATE TABLE t (id INTEGER)")
			open, err := sql.Open(map[string]string{"postgres": "pgx", "mysql": "mysql"}[driver], db.DSN)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = open.Close() }) // runs before the database is given back, but does not end the transaction
			if tx, err = open.Begin(); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
				t.Fatal(err)
			}
		})
		if err := tx.Commit(); err == nil {
			t.Errorf("%s: a transaction outlived its test", driver)
		}
	}
}

func TestPrivateServersSurviveAKillAndAnswerOnceThawed(t *testing.T) {
	t.Parallel()
	for driver, start := range map[string]func(testing.TB) *testsupport.Database{
		"postgres": testsupport.StartPostgres,
		"mysql":    testsupport.StartMariaDB,
	} {
		t.Run(driver, func(t *testing.T) {
			db := start(t)
			db.Exec(t, "CREATE TABLE t (id INTEGER)")
			db.Exec(t, "INSERT INTO t VALUES (1)")
			db.Server().Kill()
			if _, err := db.Query(t.Context(), "SELECT id FROM t"); err == nil {
				t.Fatal("a killed server answered")
			}
			db.Server().Restart()
			if got := db.Rows(t, "SELECT count(*) FROM t"); got[0][0] != "1" {
				t.Fatalf("rows after a crash: %v, want 1", got)
			}

			// Each backend of PostgreSQL is a separate process, so Freeze must stop it as well.
			db.Server().Freeze()
			answered := make(chan error, 1)
			go func() {
				_, err := db.Query(t.Context(), "SELECT id FROM t")
				answered <- err
			}()
			select {
			case err := <-answered:
				t.Fatalf("a frozen server answered: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			db.Server().Thaw()
			if err := <-answered; err != nil {
				t.Fatal(err)
			}
		})
	}
}
