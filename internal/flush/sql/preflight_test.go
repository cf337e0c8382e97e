package sql_test

import (
	"context"
	dbsql "database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/finding"
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/testsupport"
)

// wantFinding fails the test unless there is a finding of that severity whose text contains what. The finding must also say what can be
// lost and what to do.
func wantFinding(t *testing.T, all []finding.Finding, severity finding.Severity, what string) {
	t.Helper()
	for _, f := range all {
		if f.Severity == severity && strings.Contains(f.What, what) {
			if f.Subject == "" || severity != finding.SeverityOK && (f.Consequence == "" || f.Remedy == "") {
				t.Errorf("it lacks something: %+v", f)
			}
			return
		}
	}
	t.Errorf("no %s with %q in:\n%s", severity, what, shown(all))
}

// wantCalm fails the test if a finding is a warning or an error.
func wantCalm(t *testing.T, all []finding.Finding) {
	t.Helper()
	for _, f := range all {
		if f.Severity.Rank() < finding.SeverityInfo.Rank() {
			t.Errorf("want nothing grave, got:\n%s", shown(all))
			return
		}
	}
}

func shown(all []finding.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s: %s: %s | %s | %s\n", f.Severity, f.Subject, f.What, f.Consequence, f.Remedy)
	}
	return b.String()
}

// target returns a table for which the job j has every operation.
func target(t *testing.T, s *sql.Store, table string, key ...string) sql.PreflightTable {
	t.Helper()
	return sql.PreflightTable{Job: "j", Plan: plan(t, s, table, key), Insert: true, Update: true, Delete: true}
}

func TestASoundDatabaseHasNoGraveFinding(t *testing.T) {
	emptyEverywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		for _, when := range []string{"without baton's tables", "with them"} {
			found, usable := s.Preflight(t.Context(), false)
			if !usable {
				t.Fatalf("%s: not usable:\n%s", when, shown(found))
			}
			// The directory of a test may be in memory, so findings about the place of the file are ignored.
			found = without(found, " lies ")
			wantCalm(t, found)
			wantFinding(t, found, finding.SeverityOK, "it answers")
			if got := s.PreflightTable(t.Context(), target(t, s, "articles", "id")); len(got) != 0 {
				t.Errorf("%s: its table:\n%s", when, shown(got))
			}
			takeOver(t, s, fence(1))
		}
	})
}

func without(all []finding.Finding, what string) []finding.Finding {
	var out []finding.Finding
	for _, f := range all {
		if !strings.Contains(f.What, what) {
			out = append(out, f)
		}
	}
	for _, f := range out {
		if f.Severity == finding.SeverityOK {
			return out
		}
	}
	return append(out, finding.Finding{Severity: finding.SeverityOK, Subject: "test", What: "it answers, but for where it lies"})
}

func TestPreflightWritesNothing(t *testing.T) {
	emptyEverywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		s := db.open()
		s.Preflight(t.Context(), false)
		s.PreflightTable(t.Context(), target(t, s, "articles", "id"))
		db.expect(map[string]string{
			"postgres": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
			"mysql":    "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
			"sqlite":   "SELECT name FROM sqlite_schema WHERE type = 'table'",
		}[db.Driver], "articles")
		db.expect("SELECT count(*) FROM articles", "0")
	})
}

func TestAnotherUniqueIndexIsTold(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.Exec(t, "CREATE UNIQUE INDEX people_name ON people (name)")
		s := db.open()
		severity := finding.SeverityInfo
		if db.Driver == "mysql" {
			severity = finding.SeverityWarning // because of ON DUPLICATE KEY UPDATE
		}
		found := s.PreflightTable(t.Context(), target(t, s, "people", "id"))
		wantFinding(t, found, severity, "people_name (name)")
		if strings.Contains(shown(found), "PRIMARY") || strings.Contains(shown(found), "pkey") {
			t.Errorf("the key's own index is told:\n%s", shown(found))
		}
		// If the job's key is the other index, the primary key is an index that is not the job's key.
		if db.Driver != "sqlite" { // in SQLite an INTEGER PRIMARY KEY has no index
			wantFinding(t, s.PreflightTable(t.Context(), target(t, s, "people", "name")), severity, "(id)")
		}
		wantFinding(t, s.PreflightTable(t.Context(), target(t, s, "people")), finding.SeverityInfo, "without a dedupe_key")
	})
}

func TestUniqueIndexesOfPartsAndExpressionsAreTold(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.people()
		db.create("CREATE UNIQUE INDEX half ON people (lower(name)) WHERE age > 3", "CREATE UNIQUE INDEX half ON people (name(3))",
			"CREATE UNIQUE INDEX half ON people (name) WHERE age > 3")
		s := db.open()
		for _, key := range []string{"id", "name"} {
			found := s.PreflightTable(t.Context(), target(t, s, "people", key))
			if !strings.Contains(shown(found), "half (") {
				t.Errorf("by %s, the index of a part is not told:\n%s", key, shown(found))
			}
		}
	})
}

// A column of the old utf8, or of latin1, cannot hold an emoji.
func TestATextThatCannotHoldAnEmojiIsAWarning(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		if db.Driver != "mysql" {
			return // a text in SQLite holds every character, and PostgreSQL has one encoding for the database
		}
		db.Exec(t, "CREATE TABLE words (id int PRIMARY KEY, old varchar(20) CHARACTER SET utf8mb3, latin text CHARACTER SET latin1, "+
			"new varchar(20) CHARACTER SET utf8mb4, raw varbinary(20), n int, beside varchar(20) CHARACTER SET latin1)")
		s := db.open()
		table := target(t, s, "words", "id")
		table.Plan.Columns = slices.DeleteFunc(table.Plan.Columns, func(c row.PlanColumn) bool { return c.Name == "beside" })
		found := s.PreflightTable(t.Context(), table)
		wantFinding(t, found, finding.SeverityWarning, "old (utf8mb3), latin (latin1)")
		if text := shown(found); strings.Contains(text, "new (") || strings.Contains(text, "raw") || strings.Contains(text, "beside") {
			t.Errorf("more than the job's narrow texts is told:\n%s", text)
		}
		db.Exec(t, "ALTER TABLE words CONVERT TO CHARACTER SET utf8mb4") // the remedy of the finding
		if found := s.PreflightTable(t.Context(), table); strings.Contains(shown(found), "emoji") {
			t.Errorf("after the remedy:\n%s", shown(found))
		}
	})
}

func TestTriggersAreTold(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		db.create("CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER noted BEFORE "+
			"INSERT ON articles FOR EACH ROW EXECUTE FUNCTION nothing()",
			"CREATE TRIGGER noted BEFORE INSERT ON articles FOR EACH ROW SET NEW.views = 1",
			"CREATE TRIGGER noted AFTER INSERT ON articles BEGIN SELECT 1; END")
		s := db.open()
		wantFinding(t, s.PreflightTable(t.Context(), target(t, s, "articles", "id")), finding.SeverityInfo, "has triggers: noted")
	})
}

// poor returns the database as a user who may only read the table articles.
func (b *bench) poor() *sql.Store {
	b.t.Helper()
	user, dsn := "", ""
	switch b.Driver {
	case "postgres":
		user = fmt.Sprintf("poor_%d", time.Now().UnixNano())
		b.Exec(b.t, "CREATE ROLE "+user+" LOGIN")
		b.Exec(b.t, "GRANT SELECT, INSERT ON articles TO "+user)
		b.t.Cleanup(func() { _, _ = b.Query(context.Background(), "DROP OWNED BY "+user+"; DROP ROLE "+user) })
		dsn = strings.Replace(b.DSN, "app@", user+"@", 1)
	case "mysql":
		user = fmt.Sprintf("poor_%d", time.Now().UnixNano())
		b.Exec(b.t, "CREATE USER "+user+" IDENTIFIED BY 'pw'")
		b.Exec(b.t, "GRANT SELECT, INSERT ON articles TO "+user)
		b.t.Cleanup(func() { _, _ = b.Query(context.Background(), "DROP USER "+user) })
		dsn = strings.Replace(b.DSN, "app:", user+":", 1)
	}
	s, err := open.Database(b.Driver, sql.Options{Name: "main", DSN: dsn})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = s.Close() })
	return s
}

// poorUser is the user of poor in this database; tests share the server.
func (b *bench) poorUser() string {
	b.t.Helper()
	return b.Rows(b.t, map[string]string{
		"postgres": "SELECT grantee FROM information_schema.role_table_grants WHERE table_name = 'articles' AND grantee LIKE 'poor%'",
		"mysql":    "SELECT grantee FROM information_schema.table_privileges WHERE table_schema = database() AND table_name = 'articles'",
	}[b.Driver])[0][0]
}

func TestMissingRightsAreNamed(t *testing.T) {
	emptyServers(t, func(t *testing.T, db *bench) {
		db.articles()
		poor := db.poor()
		found, _ := poor.Preflight(t.Context(), false)
		wantFinding(t, found, finding.SeverityError, "may not create baton's tables")
		found = poor.PreflightTable(t.Context(), target(t, poor, "articles", "id"))
		wantFinding(t, found, finding.SeverityError, "UPDATE")
		wantFinding(t, found, finding.SeverityError, "DELETE")
		readOnly := target(t, poor, "articles", "id")
		readOnly.Update, readOnly.Delete = false, false
		if found := poor.PreflightTable(t.Context(), readOnly); len(found) != 0 {
			t.Errorf("a job that only inserts has all it needs:\n%s", shown(found))
		}
		// baton's tables exist and belong to another user.
		takeOver(t, db.open(), fence(1))
		if found, _ = poor.Preflight(t.Context(), false); db.Driver == "postgres" {
			wantFinding(t, found, finding.SeverityError, "no right to SELECT, INSERT, UPDATE on table baton_fence")
		} else {
			// MySQL does not show a table to a user without rights to it.
			wantFinding(t, found, finding.SeverityError, "CREATE command denied")
			user := db.poorUser()
			for table := range strings.FieldsSeq("fence ledger position mark dead_letter dead_letter_part deleted schema_version") {
				db.Exec(t, "GRANT SELECT ON baton_"+table+" TO "+user)
			}
			found, _ = poor.Preflight(t.Context(), false)
			wantFinding(t, found, finding.SeverityError, "INSERT command denied")
		}
	})
}

func TestADatabaseThatIsAwayIsNotUsable(t *testing.T) {
	for name, dsn := range map[string]string{
		"postgres": "postgres://app:secret@127.0.0.1:1/x?sslmode=disable", "mysql": "app:secret@tcp(127.0.0.1:1)/x",
		"sqlite": "/nonexistent/x.db",
	} {
		s, err := open.Database(name, sql.Options{Name: "main", DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		found, usable := s.Preflight(t.Context(), false)
		if usable || len(found) != 1 || found[0].Severity != finding.SeverityError || strings.Contains(shown(found), "secret") {
			t.Errorf("%s: usable %v:\n%s", name, usable, shown(found))
		}
		_ = s.Close() // it was never connected
	}
}

func TestPostgresThatForgetsIsTold(t *testing.T) {
	t.Parallel()
	d, err := testsupport.RunPostgresWith("", "fsync=off", "full_page_writes=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop() })
	database, err := d.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := &bench{Database: database, t: t}
	s := db.open()
	found, _ := s.Preflight(t.Context(), false)
	wantFinding(t, found, finding.SeverityError, "fsync is off")
	wantFinding(t, found, finding.SeverityWarning, "full_page_writes is off")
	if db.Rows(t, "SHOW data_checksums")[0][0] == "off" { // the default before PostgreSQL 18
		wantFinding(t, found, finding.SeverityInfo, "data checksums are off")
	}
	for _, f := range found {
		if f.Severity == finding.SeverityOK {
			t.Errorf("it is not as it should be: %+v", f)
		}
	}

	db.Exec(t, "CREATE UNLOGGED TABLE articles (id bigint PRIMARY KEY, views bigint)")
	db.Exec(t, "CREATE RULE noted AS ON INSERT TO articles WHERE new.id < 0 DO INSTEAD NOTHING")
	db.Exec(t, "ALTER TABLE articles ENABLE ROW LEVEL SECURITY; ALTER TABLE articles FORCE ROW LEVEL SECURITY")
	found = s.PreflightTable(t.Context(), target(t, s, "articles", "id"))
	wantFinding(t, found, finding.SeverityError, "table articles is UNLOGGED")
	wantFinding(t, found, finding.SeverityError, "table articles has rules")
	wantFinding(t, found, finding.SeverityWarning, "row-level security")
}

func TestMariaDBThatForgetsIsTold(t *testing.T) {
	t.Parallel()
	d, err := testsupport.RunMariaDBWith("", "--innodb-flush-log-at-trx-commit=2", "--log-bin=log", "--sync-binlog=0",
		"--binlog-format=STATEMENT", "--innodb-doublewrite=0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop() })
	database, err := d.CreateDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db := &bench{Database: database, t: t}
	s := db.open()
	found, usable := s.Preflight(t.Context(), false)
	if !usable {
		t.Error("it can be used")
	}
	wantFinding(t, found, finding.SeverityError, "innodb_flush_log_at_trx_commit is 2")
	wantFinding(t, found, finding.SeverityError, "sync_binlog is 0")
	wantFinding(t, found, finding.SeverityError, "binlog_format is STATEMENT")
	wantFinding(t, found, finding.SeverityWarning, "innodb_doublewrite is OFF")
	if err := s.TakeOver(t.Context(), fence(1)); err == nil || !strings.Contains(err.Error(), "BINLOG_FORMAT") {
		t.Errorf("what the finding says of STATEMENT is not so: %v", err)
	}
	db.Exec(t, "SET GLOBAL read_only = 1")
	found, _ = s.Preflight(t.Context(), false)
	wantFinding(t, found, finding.SeverityError, "read_only is on")
}

func TestASQLiteFileThatIsNotThereIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.db")
	s, err := open.Database("sqlite", sql.Options{Name: "main", DSN: path})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	found, usable := s.Preflight(t.Context(), false)
	if usable {
		t.Error("it cannot be used")
	}
	wantFinding(t, found, finding.SeverityWarning, "is not there")
	if _, err := s.Table(t.Context(), "users"); !errors.Is(err, flush.ErrNoTable) || !strings.Contains(err.Error(), path) {
		t.Errorf("a table of it: %v", err)
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != 0 {
		t.Errorf("it made %v", files)
	}
}

func TestASQLiteFileThatCannotBeWrittenIsTold(t *testing.T) {
	db := testsupport.SQLite(t)
	s, err := open.Database("sqlite", sql.Options{Name: "main", DSN: "file:" + db.DSN + "?mode=ro"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	found, _ := s.Preflight(t.Context(), false)
	wantFinding(t, found, finding.SeverityError, "cannot be written")
}

func TestASQLiteFileThatIsBusyIsTold(t *testing.T) {
	db := &bench{Database: testsupport.SQLite(t), t: t}
	other, err := dbsql.Open("sqlite", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	found, _ := db.open(ttl(500*time.Millisecond)).Preflight(t.Context(), false)
	wantFinding(t, found, finding.SeverityWarning, "holds the write lock")
	_ = conn.Close() // closing rolls back
}

// If a preflight is cancelled at any moment, no connection in a pool may have an open transaction, because every flush would wait for that
// transaction.
func TestAPreflightCutShortLeavesAFileFree(t *testing.T) {
	db := &bench{Database: testsupport.SQLite(t), t: t}
	other, err := dbsql.Open("sqlite", "file:"+db.DSN+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	s := db.open()
	began := time.Now()
	s.Preflight(t.Context(), false)
	whole := time.Since(began)
	const cuts = 200
	for i := range cuts {
		ctx, cancel := context.WithTimeout(t.Context(), whole*time.Duration(i)/cuts)
		s.Preflight(ctx, false)
		cancel()
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatalf("after %d of %d parts of %v: %v", i, cuts, whole, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADatabaseThatHangsDoesNotHangThePreflight(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		proxy := db.Proxy()
		s, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: db.DSNThrough(proxy), TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		proxy.Hang()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			if found, usable := s.Preflight(ctx, false); usable {
				t.Errorf("a database that hangs is usable:\n%s", shown(found))
			}
		}()
		testsupport.Receive(t, "the preflight ends with its context", looked)
	})
}

// A test cannot set the clock of a database server, so it gives the session another time.
func TestAServerWithAnotherClockIsTold(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		found, _ := db.open().Preflight(t.Context(), false)
		if strings.Contains(shown(found), "its clock") {
			t.Errorf("the clock is right:\n%s", shown(found))
		}
		dsn := ""
		switch db.Driver {
		case "postgres":
			db.Exec(t, "CREATE SCHEMA elsewhen; CREATE FUNCTION elsewhen.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ "+
				"SELECT pg_catalog.clock_timestamp() - interval '1 hour' $$")
			dsn = db.DSN + map[bool]string{true: "&", false: "?"}[strings.Contains(db.DSN, "?")] + "search_path=elsewhen,pg_catalog,public"
		case "mysql":
			dsn = db.DSN + map[bool]string{true: "&", false: "?"}[strings.Contains(db.DSN, "?")] +
				fmt.Sprintf("timestamp=%d", time.Now().Add(-time.Hour).Unix())
		}
		s, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		found, _ = s.Preflight(t.Context(), false)
		wantFinding(t, found, finding.SeverityWarning, "behind this host's")
		wantFinding(t, found, finding.SeverityWarning, "its clock is 1h0m") // and some seconds, because the server counts whole seconds
	})
}
