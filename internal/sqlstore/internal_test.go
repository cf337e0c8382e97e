package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

func TestVerdictOfPostgresErrors(t *testing.T) {
	for code, want := range map[string]verdict{
		"22001": refused, "22P02": refused, "23505": refused, "23514": refused, "21000": refused, "P0001": refused, "54000": refused,
		"42601": refused, "P0002": refused, "45000": refused, "ZX001": refused, "99999": refused, "54001": refused, "XX000": lasting, "54023": lasting,
		"40P01": passing, "40001": passing, "55P03": passing, "57014": passing, "57P01": passing, "57P03": passing,
		"08006": passing, "25006": passing, "25P03": passing, "53300": passing, "53100": passing,
		"28P01": lasting, "3D000": lasting, "42703": lasting, "42501": lasting, "25P02": lasting, "2200H": lasting,
	} {
		if got := (&postgres{}).judge(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("SQLSTATE %s: %d, want %d", code, got, want)
		}
	}
	for routine, want := range map[string]verdict{"ExecWithCheckOptions": refused, "aclcheck_error": lasting} {
		if got := (&postgres{}).judge(&pgconn.PgError{Code: "42501", Routine: routine}); got != want {
			t.Errorf("42501 of %s: %d, want %d", routine, got, want)
		}
	}
	for err, want := range map[error]verdict{
		io.ErrUnexpectedEOF: passing, context.DeadlineExceeded: passing, errNotCommitted: passing, &wrongKind{}: lasting,
	} {
		if got := (&postgres{}).judge(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

// PostgreSQL calls it a success when COMMIT ends an aborted transaction.
func TestCommitOfAnAbortedTransactionIsNoCommit(t *testing.T) {
	s, err := Open(Options{Driver: "postgres", DSN: testsupport.Postgres(t).DSN})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.queries["fail"] = "SELECT 1 / 0"
	tx, err := s.database.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.close(true)
	if err := tx.run(t.Context(), task{query: "begin"}, task{query: "fail"}); err == nil {
		t.Fatal("divided by zero")
	}
	if err := tx.commit(t.Context()); !errors.Is(err, errNotCommitted) {
		t.Errorf("commit: %v", err)
	}
}

func TestVerdictOfMySQLErrors(t *testing.T) {
	for number, want := range map[uint16]verdict{
		1264: refused, 1406: refused, 1366: refused, 1452: refused, 3819: refused, 4025: refused, 1048: refused, 1062: refused, 1690: refused, 1644: refused,
		1213: passing, 1205: passing, 1053: passing, 1290: passing, 1317: passing, 1969: passing, 3024: passing, 1040: passing, 4031: passing,
		1045: lasting, 1049: lasting, 1054: lasting, 1142: lasting, 1146: lasting, 1364: lasting,
		1242: refused, 1526: refused, 1863: refused,
	} {
		if got := (mysqlDB{}).judge(fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number})); got != want {
			t.Errorf("error %d: %d, want %d", number, got, want)
		}
	}
	for state, want := range map[string]verdict{"22012": refused, "23000": refused, "45000": refused, "42000": lasting, "HY000": lasting} {
		e := &mysql.MySQLError{Number: 9999}
		copy(e.SQLState[:], state)
		if got := (mysqlDB{}).judge(e); got != want {
			t.Errorf("SQLSTATE %s: %d, want %d", state, got, want)
		}
	}
	for err, want := range map[error]verdict{
		mysql.ErrInvalidConn: passing, io.EOF: passing, mysql.ErrPktTooLarge: refused, mysql.ErrNoTLS: lasting, &wrongValue{}: refused,
	} {
		if got := (mysqlDB{}).judge(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestEveryKindOfDatabaseHasTheQueriesOfTheProtocol(t *testing.T) {
	for _, driver := range []string{"postgres", "mysql", "sqlite"} {
		q, err := loadQueries(driver, (&Store{prefix: "p_"}).fill())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"begin", "commit", "rollback", "fence_take", "fence_insert", "fence_read", "fence_check", "ledger_insert", "newest_batch", "prune", "dead_insert",
			"version", "version_table", "version_zero", "table", "columns", "unique", "table_names",
		} {
			if q[name] == "" {
				t.Errorf("%s has no query %q", driver, name)
			}
		}
	}
}

func TestNamesAreTakenApartAndQuoted(t *testing.T) {
	for _, c := range []struct{ name, quoted, schema, table string }{
		{"t", `"t"`, "", "t"},
		{"s.t", `"s"."t"`, "s", "t"},
		{`"s.x"."t""y"`, `"s.x"."t""y"`, "s.x", `t"y`},
		{`t"; DROP TABLE x --`, `"t; DROP TABLE x --"`, "", "t; DROP TABLE x --"},
		{"", `""`, "", ""},
	} {
		schema, table := pgQuote.schema(c.name)
		if got := pgQuote.table(c.name); got != c.quoted || schema != c.schema || table != c.table {
			t.Errorf("%s: %s, schema %q, table %q", c.name, got, schema, table)
		}
		if joined := pgQuote.join(schema, table); pgQuote.table(joined) != c.quoted && c.name != "" {
			t.Errorf("%s: joined again it is %s", c.name, joined)
		}
	}
	if got := mysqlQuote.ident("a`b"); got != "`a``b`" {
		t.Errorf("quoted: %s", got)
	}
}

func TestSimilarNames(t *testing.T) {
	names := []string{"articles", "Users", "orders", "a"}
	for want, near := range map[string]string{"artcles": "[articles]", "users": "[Users]", "b": "[]", "order": "[orders]", "nothing": "[]"} {
		if got := fmt.Sprint(similar(want, names)); got != near {
			t.Errorf("%s: %s", want, got)
		}
	}
}

func TestChunksOfAMySQLStatement(t *testing.T) {
	for _, c := range []struct {
		rows, columns int
		remove        bool
		want          int
	}{
		{1, 3, false, 1}, {3, 3, false, 2}, {999, 3, false, 512}, {1000, 3, false, 1000}, {5000, 3, false, 1000},
		{5000, 100, false, 655}, {700, 100, false, 655}, {600, 3, true, 500}, {2, 70000, false, 1},
	} {
		if got := chunk(c.rows, c.columns, c.remove); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestDeadLetterIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{deadID("j", "b", 0, 0, "r"), deadID("j", "b", 0, 1, "r"), deadID("j", "b", 1, 0, "r"),
		deadID("j", "c", 0, 0, "r"), deadID("k", "b", 0, 0, "r"), deadID("j", "b", 0, 0, "s"), deadID(`j" "b`, "", 0, 0, "r")} {
		if seen[id] || len(id) != 32 {
			t.Errorf("id %q", id)
		}
		seen[id] = true
	}
	if again := deadID("j", "b", 0, 0, "r"); !seen[again] {
		t.Error("not the same each time")
	}
}

func TestNumericTextsThatSQLiteWouldChange(t *testing.T) {
	for text, want := range map[string]bool{
		"1": false, "-9223372036854775808": false, "9223372036854775808": true, "123456789012345": false, "0.00000012345": false,
		"1234567890.12345678": true, "1e3": false, "1e400": true, "1e-400": true, "0.000": false, "10000000000000000000": false, "NaN": false, "Infinity": false, "abc": false,
		"1.5000000000000000000": false,
	} {
		if got := losesDigits(text, flush.KindNumeric); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for text, want := range map[string]bool{"007": true, "7": false, "1.0": true, "0x1F": false, "0x1p4": false, "abc": false, "2024-01-01": false, "+1": true} {
		if got := losesDigits(text, flush.KindOther); got != want {
			t.Errorf("other text %q: %v", text, got)
		}
	}
}

func TestPlanCacheForgetsOldPlans(t *testing.T) {
	var c planCache[int]
	for range 3 * maxPlans {
		c.get(&flush.Plan{}, func(*flush.Plan) int { return 1 })
	}
	if len(c.plans) > maxPlans {
		t.Errorf("%d plans kept", len(c.plans))
	}
}

func TestStepsAreListedInOrder(t *testing.T) {
	var seen []Step
	s := &Store{observe: func(step Step) error { seen = append(seen, step); return errors.New("x") }}
	for _, step := range Steps() {
		if err := s.at(step); !errors.Is(err, flush.ErrTransient) {
			t.Errorf("%s: %v", step, err)
		}
	}
	if fmt.Sprint(seen) != fmt.Sprint(Steps()) {
		t.Errorf("steps %v", seen)
	}
}
