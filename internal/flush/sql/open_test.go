package sql_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

func TestOpenRefusesWhatCannotWorkAndKeepsThePasswordToItself(t *testing.T) {
	for _, c := range []struct{ driver, dsn, prefix, want string }{
		{"oracle", "x", "", "postgres, mysql, mariadb or sqlite"},
		{"postgres", "", "", "cannot be read"},
		{"postgres", "postgres://u:secret@host:port/db", "", "cannot be read"},
		{"postgres", "host=h password='secret", "", "cannot be read"},
		{"mysql", "u:secret@tcp(host:3306)", "", "user:password@tcp(host:3306)/database"},
		{"mariadb", "u:secret@tcp(host:3306)/", "", "names no database"},
		{"mysql", "u:secret@host/db?parseTime=secret", "", "cannot be read"},
		{"mysql", "mysql://u:secret@tcp(host:3306)/db", "", "cannot be read"},
		{"mariadb", "mariadb://u:secret@host/db", "", "cannot be read"},
		{"sqlite", "", "", "path of a file"},
		{"sqlite", ":memory:", "", "path of a file"},
		{"sqlite", "file:x?mode=memory", "", "path of a file"},
		{"sqlite", "x.db", "My-prefix", "lower-case letters"},
		{"sqlite", "x.db", "1_", "not starting with a digit"},
	} {
		_, err := open.Database(c.driver, sql.Options{Name: "main", DSN: c.dsn, Prefix: c.prefix})
		if err == nil || !strings.Contains(err.Error(), `"main"`) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v", c.driver, c.dsn, err)
		}
		if err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
}

func TestWrongPasswordIsNoTransientErrorAndIsNotPrinted(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		if db.Driver == "postgres" {
			// The test's server accepts every password, so this role must not be able to log in.
			db.Exec(t, "CREATE ROLE guest NOLOGIN")
			defer db.Exec(t, "DROP ROLE guest")
		}
		dsn := map[string]string{
			"postgres": "postgres://guest:secret@" + db.Addr() + "/" + "postgres?sslmode=disable",
			"mysql":    "app:secret@tcp(" + db.Addr() + ")/x",
		}[db.Driver]
		s := db.open(func(o *sql.Options) { o.DSN = dsn })
		err := s.Ping(t.Context())
		if err == nil || errors.Is(err, flush.ErrTransient) || strings.Contains(err.Error(), "secret") ||
			!strings.Contains(err.Error(), `"main"`) {
			t.Errorf("ping: %v", err)
		}
	})
}

func TestDatabaseThatIsNotThereYetIsTransient(t *testing.T) {
	for driver, dsn := range map[string]string{
		"postgres": "postgres://u:secret@127.0.0.1:1/db",
		"mysql":    "u:secret@tcp(127.0.0.1:1)/db",
		"sqlite":   filepath.Join(t.TempDir(), "missing", "x.db"),
	} {
		s, err := open.Database(driver, sql.Options{Name: "main", DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		err = s.TakeOver(t.Context(), fence(1))
		wantTransient(t, err)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the password is in the error: %v", err)
		}
		t.Log(err)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPrefixKeepsTwoInstallationsApart(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		p := func(o *sql.Options) { o.Prefix = "other_" }
		one, two := db.open(), db.open(p)
		takeOver(t, one, fence(5))
		takeOver(t, two, fence(2))
		apply(t, two, fence(2), plan(t, two, "articles", []string{"id"}, "views"), batch("a", 0, rowOf(1, 1)))
		db.expect("SELECT count(*) FROM baton_ledger", "0")
		db.expect("SELECT count(*) FROM other_ledger", "1")
		db.expect("SELECT max(version_id) FROM other_schema_version", map[string]string{"postgres": "8", "mysql": "10",
			"sqlite": "8"}[db.Driver])
		if err := two.Migrate(t.Context()); err != nil {
			t.Error(err)
		}
		takeOver(t, db.open(), fence(6)) // a later process finds the existing tables
	})
}

func TestSessionsAreDurableAndStrict(t *testing.T) {
	db := &bench{Database: kinds[0].make(t), t: t}
	db.Exec(t, "ALTER ROLE CURRENT_USER SET synchronous_commit = off")
	defer db.Exec(t, "ALTER ROLE CURRENT_USER RESET synchronous_commit")
	db.Exec(t, "CREATE TABLE setting (id int PRIMARY KEY, v text DEFAULT current_setting('synchronous_commit') || ' ' || "+
		"current_setting('transaction_isolation') || ' ' || current_setting('idle_in_transaction_session_timeout'))")
	s := db.leading(ttl(10 * time.Second))
	p := plan(t, s, "setting", []string{"id"})
	p.Columns = p.Columns[:1]
	apply(t, s, fence(1), p, batch("a", 0, rowOf(1)))
	db.expect("SELECT v FROM setting", "on read committed 2500ms")

	testsupport.NeedsDialect(t, testsupport.DialectMariaDB)
	db = &bench{Database: kinds[1].make(t), t: t}
	db.Exec(t, "CREATE TABLE setting (id int PRIMARY KEY, v varchar(999) DEFAULT (concat_ws(' ', @@session.sql_mode LIKE "+
		"'%STRICT_ALL_TABLES%', @@session.tx_isolation, @@session.time_zone, @@session.idle_transaction_timeout, "+
		"@@session.innodb_lock_wait_timeout, @@session.max_statement_time, @@session.character_set_client)))")
	s = db.open(ttl(10 * time.Second))
	takeOver(t, s, fence(1))
	p = plan(t, s, "setting", []string{"id"})
	p.Columns = p.Columns[:1]
	apply(t, s, fence(1), p, batch("a", 0, rowOf(1)))
	db.expect("SELECT v FROM setting", "1 READ-COMMITTED +00:00 3 5 5.000000 utf8mb4")
}

func TestMySQLServersDefaultsDoNotChangeWhatACommitIs(t *testing.T) {
	db := &bench{Database: testsupport.StartMariaDB(t), t: t}
	db.articles()
	for i, setting := range []string{"autocommit = 0", "completion_type = 'CHAIN'", "completion_type = 'RELEASE'"} {
		db.Exec(t, "SET GLOBAL "+setting)
		s, p := db.flushing("articles", []string{"id"}, "views")
		for j := range 2 {
			apply(t, s, fence(1), p, batch(fmt.Sprint(i, j), 0, rowOf(1, 1)))
		}
		db.Exec(t, "SET GLOBAL autocommit = 1, completion_type = 'NO_CHAIN'")
	}
	db.expect("SELECT views FROM articles", "6")
}

// Tests of other things use tables that were not made by a migration. These tables must be equal to the tables of Migrate.
func TestTablesOfTestsAreThoseThatMigrateMakes(t *testing.T) {
	emptyEverywhere(t, func(t *testing.T, made *bench) {
		if err := made.open().Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		query := map[string]string{
			"postgres": "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns WHERE " +
				"table_schema = 'public' UNION ALL SELECT indexname, indexdef, '', '', '' FROM pg_indexes WHERE schemaname = 'public' " +
				"ORDER BY 1, 2",
			"mysql": "SELECT table_name, column_name, column_type, is_nullable, column_default, column_key, collation_name FROM " +
				"information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1, 2",
			"sqlite": "SELECT name, replace(replace(sql, ' ', ''), char(10), '') FROM sqlite_schema ORDER BY 1",
		}[made.Driver]
		make := map[string]func(testing.TB) *testsupport.Database{
			"postgres": testsupport.Postgres, "mysql": mariaDB, "sqlite": testsupport.SQLite,
		}[made.Driver]
		forTests := prepared(t, make)
		for _, q := range []string{query, "SELECT version_id, is_applied FROM baton_schema_version ORDER BY version_id"} {
			if diff := cmp.Diff(made.Rows(t, q), forTests.Rows(t, q)); diff != "" {
				t.Errorf("-made by Migrate, +made for tests:\n%s", diff)
			}
		}
	})
}

func TestEveryKindOfDatabaseHasTheQueriesOfTheProtocol(t *testing.T) {
	for _, driver := range []string{"postgres", "mysql", "sqlite"} {
		d, err := open.Dialect(driver)
		if err != nil {
			t.Fatal(err)
		}
		q, err := sql.QueriesOf(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"begin", "commit", "rollback", "fence_take", "fence_insert", "fence_read", "fence_check", "ledger_insert", "newest_batch",
			"prune", "dead_insert",
			"version", "version_table", "version_zero", "table", "columns", "unique", "table_names",
		} {
			if q[name] == "" {
				t.Errorf("%s has no query %q", driver, name)
			}
		}
	}
}
