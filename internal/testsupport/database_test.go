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

func TestDatabaseIsDroppedUnderAnOpenTransaction(t *testing.T) {
	for _, driver := range []string{"postgres", "mysql"} {
		var name string
		t.Run(driver, func(t *testing.T) {
			db := shared[driver](t)
			db.Exec(t, "CREATE TABLE t (id INTEGER)")
			name = db.DSN[strings.LastIndex(db.DSN, "/")+1:]
			name, _, _ = strings.Cut(name, "?")
			open, err := sql.Open(map[string]string{"postgres": "pgx", "mysql": "mysql"}[driver], db.DSN)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = open.Close() }) // runs before the drop, but does not end the transaction
			tx, err := open.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("INSERT INTO t VALUES (1)"); err != nil {
				t.Fatal(err)
			}
		})
		names := map[string]string{"postgres": "SELECT datname FROM pg_database", "mysql": "SHOW DATABASES"}[driver]
		for _, row := range shared[driver](t).Rows(t, names) {
			if row[0] == name {
				t.Errorf("%s: database %s is still there", driver, name)
			}
		}
	}
}

func TestPrivateServersSurviveAKill(t *testing.T) {
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
		})
	}
}

// A backend of PostgreSQL is a process of its own: it must stop too.
func TestFrozenServersAnswerOnceThawed(t *testing.T) {
	for driver, start := range map[string]func(testing.TB) *testsupport.Database{
		"postgres": testsupport.StartPostgres,
		"mysql":    testsupport.StartMariaDB,
	} {
		t.Run(driver, func(t *testing.T) {
			db := start(t)
			db.Exec(t, "CREATE TABLE t (id INTEGER)")
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
