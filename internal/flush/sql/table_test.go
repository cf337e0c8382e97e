package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// The tests' server has MariaDB's old default.
const folds = "the collation utf8mb4_general_ci"

func exactly(column, definition string) string {
	return fmt.Sprintf("ALTER TABLE `kinds` MODIFY `%s` %s CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", column, definition)
}

// The same table of every type, in the words of each database, and what a flush
// is told of it.
var catalogues = map[string]struct {
	ddl    []string
	want   []row.Column
	unique [][]string
}{
	"postgres": {
		ddl: []string{
			"CREATE TYPE mood AS ENUM ('good', 'bad')",
			"CREATE DOMAIN short AS varchar(5) DEFAULT 'x'",
			"CREATE DOMAIN shorter AS short NOT NULL CHECK (VALUE <> 'no')",
			`CREATE TABLE kinds (
				i2 smallint NOT NULL, i4 integer DEFAULT 7, i8 bigint, always bigint GENERATED ALWAYS AS IDENTITY,
				twice integer GENERATED ALWAYS AS (i4 * 2) STORED, f4 real, f8 double precision, n numeric,
				n2 numeric(10,2), tens numeric(3,-2),
				t text, v varchar(12), c char(3), b bytea, ok boolean, ts timestamp, tsz timestamptz(3), d date, j json, jb jsonb, u uuid,
				m mood, a integer[], bits bit(3), ip inet, dom shorter,
				PRIMARY KEY (i8, i2), UNIQUE (v) DEFERRABLE)`,
			"CREATE UNIQUE INDEX ON kinds (c) INCLUDE (t)",
			"CREATE UNIQUE INDEX ON kinds (lower(t))",
			"CREATE UNIQUE INDEX ON kinds (d) WHERE ok",
			"ALTER TABLE kinds DROP COLUMN f4",
		},
		want: []row.Column{
			{Name: "i2", Kind: row.KindInteger, DBType: "smallint", Bits: 16},
			{Name: "i4", Kind: row.KindInteger, DBType: "integer", Bits: 32, Nullable: true, Default: true,
				Constant: row.Raw{Text: "7", OK: true}},
			{Name: "i8", Kind: row.KindInteger, DBType: "bigint", Bits: 64},
			{Name: "always", Kind: row.KindInteger, DBType: "bigint", Bits: 64, Default: true, Generated: true},
			{Name: "twice", Kind: row.KindInteger, DBType: "integer", Bits: 32, Nullable: true, Default: true, Generated: true},
			{Name: "f8", Kind: row.KindFloat, DBType: "double precision", Bits: 64, Nullable: true},
			{Name: "n", Kind: row.KindNumeric, DBType: "numeric", Nullable: true},
			{Name: "n2", Kind: row.KindNumeric, DBType: "numeric", Precision: 10, Scale: 2, Nullable: true},
			{Name: "tens", Kind: row.KindNumeric, DBType: "numeric", Precision: 3, Scale: -2, Nullable: true},
			{Name: "t", Kind: row.KindText, DBType: "text", Nullable: true},
			{Name: "v", Kind: row.KindText, DBType: "character varying", MaxChars: 12, Nullable: true},
			{Name: "c", Kind: row.KindText, DBType: "bpchar", MaxChars: 3, Padded: true, Nullable: true},
			{Name: "b", Kind: row.KindBytes, DBType: "bytea", Nullable: true},
			{Name: "ok", Kind: row.KindBoolean, DBType: "boolean", Nullable: true},
			{Name: "ts", Kind: row.KindTimestamp, DBType: "timestamp without time zone", TimeUnit: time.Microsecond, Nullable: true},
			{Name: "tsz", Kind: row.KindTimestamp, DBType: "timestamp with time zone", TimeUnit: time.Millisecond, Nullable: true},
			{Name: "d", Kind: row.KindDate, DBType: "date", Nullable: true},
			{Name: "j", Kind: row.KindJSON, DBType: "json", Nullable: true},
			{Name: "jb", Kind: row.KindJSON, DBType: "jsonb", LastMember: true, Nullable: true},
			{Name: "u", Kind: row.KindUUID, DBType: "uuid", Nullable: true},
			{Name: "m", Kind: row.KindOther, DBType: "mood", Nullable: true, Values: []string{"good", "bad"}},
			{Name: "a", Kind: row.KindOther, DBType: "integer[]", Nullable: true},
			{Name: "bits", Kind: row.KindOther, DBType: "bit varying", Nullable: true},
			{Name: "ip", Kind: row.KindOther, DBType: "inet", Nullable: true},
			{
				Name: "dom", Kind: row.KindText, DBType: "character varying", MaxChars: 5, Default: true,
				Constant: row.Raw{Text: "x", OK: true},
				Checks:   map[string]string{"shorter_check": "CHECK (VALUE::text <> 'no'::text)"},
			},
		},
		unique: [][]string{{"i8", "i2"}, {"c"}},
	},
	"mysql": {
		ddl: []string{
			`CREATE TABLE kinds (
				i1 tinyint NOT NULL, i3 mediumint DEFAULT 7, i8 bigint unsigned AUTO_INCREMENT,
				twice int GENERATED ALWAYS AS (i3 * 2) STORED,
				f4 float, f8 double, n2 decimal(10,2), t text, v varchar(12), c char(3), b varbinary(9), bl blob, ok boolean,
				ts datetime, ts6 timestamp(6) NULL, d date, m enum('good', 'bad'), bits bit(3), u uuid, y year,
				PRIMARY KEY (i8, i1), UNIQUE KEY vc (v, c), UNIQUE KEY part (t(4)))`,
		},
		want: []row.Column{
			{Name: "i1", Kind: row.KindInteger, DBType: "tinyint(4)", Bits: 8},
			{Name: "i3", Kind: row.KindInteger, DBType: "mediumint(9)", Bits: 24, Nullable: true, Default: true,
				Constant: row.Raw{Text: "7", OK: true}},
			{Name: "i8", Kind: row.KindInteger, DBType: "bigint(20) unsigned", Bits: 64, Unsigned: true, Default: true},
			{Name: "twice", Kind: row.KindInteger, DBType: "int(11)", Bits: 32, Nullable: true, Generated: true},
			{Name: "f4", Kind: row.KindFloat, DBType: "float", Bits: 32, Nullable: true},
			{Name: "f8", Kind: row.KindFloat, DBType: "double", Bits: 64, Nullable: true},
			{Name: "n2", Kind: row.KindNumeric, DBType: "decimal(10,2)", Precision: 10, Scale: 2, Nullable: true},
			{Name: "t", Kind: row.KindText, DBType: "text", MaxBytes: 65535, Nullable: true, Folds: folds, Exact: exactly("t", "text")},
			{Name: "v", Kind: row.KindText, DBType: "varchar(12)", MaxChars: 12, Nullable: true, Folds: folds,
				Exact: exactly("v", "varchar(12)")},
			{Name: "c", Kind: row.KindText, DBType: "char(3)", MaxChars: 3, Padded: true, Nullable: true, Folds: folds,
				Exact: exactly("c", "char(3)")},
			{Name: "b", Kind: row.KindBytes, DBType: "varbinary(9)", MaxBytes: 9, Nullable: true},
			{Name: "bl", Kind: row.KindBytes, DBType: "blob", MaxBytes: 65535, Nullable: true},
			{Name: "ok", Kind: row.KindBoolean, DBType: "tinyint(1)", Nullable: true},
			{Name: "ts", Kind: row.KindTimestamp, DBType: "datetime", TimeUnit: time.Second, Nullable: true},
			{Name: "ts6", Kind: row.KindTimestamp, DBType: "timestamp(6)", TimeUnit: time.Microsecond, Nullable: true},
			{Name: "d", Kind: row.KindDate, DBType: "date", Nullable: true},
			{Name: "m", Kind: row.KindOther, DBType: "enum('good','bad')", Form: "(good|bad)", Nullable: true,
				Values: []string{"good", "bad"}},
			{Name: "bits", Kind: row.KindInteger, DBType: "bit(3)", Bits: 64, Unsigned: true, Nullable: true},
			{Name: "u", Kind: row.KindUUID, DBType: "uuid", Nullable: true},
			{Name: "y", Kind: row.KindOther, DBType: "year(4)", Form: `\d{4}`, Nullable: true},
		},
		unique: [][]string{{"i8", "i1"}, {"v", "c"}},
	},
	"sqlite": {
		ddl: []string{
			`CREATE TABLE kinds (
				id INTEGER PRIMARY KEY, i int NOT NULL, f real, n decimal(10,2) DEFAULT 0, t text, v varchar(12), b blob, ok boolean,
				ts datetime, d date, j json, u uuid, any_ , twice int GENERATED ALWAYS AS (i * 2), UNIQUE (v, t))`,
			"CREATE UNIQUE INDEX whole ON kinds (u)",
			"CREATE UNIQUE INDEX part ON kinds (d) WHERE ok",
			"CREATE UNIQUE INDEX lowered ON kinds (lower(t))",
		},
		want: []row.Column{
			{Name: "id", Kind: row.KindInteger, DBType: "INTEGER", Bits: 64, Default: true},
			{Name: "i", Kind: row.KindInteger, DBType: "INT", Bits: 64},
			{Name: "f", Kind: row.KindFloat, DBType: "REAL", Bits: 64, Nullable: true},
			{Name: "n", Kind: row.KindNumeric, DBType: "decimal(10,2)", Nullable: true, Default: true,
				Constant: row.Raw{Text: "0", OK: true}},
			{Name: "t", Kind: row.KindText, DBType: "TEXT", Nullable: true},
			{Name: "v", Kind: row.KindText, DBType: "varchar(12)", Nullable: true},
			{Name: "b", Kind: row.KindBytes, DBType: "BLOB", Nullable: true},
			{Name: "ok", Kind: row.KindBoolean, DBType: "boolean", Nullable: true},
			{Name: "ts", Kind: row.KindTimestamp, DBType: "datetime", Nullable: true},
			{Name: "d", Kind: row.KindDate, DBType: "date", Nullable: true},
			{Name: "j", Kind: row.KindJSON, DBType: "json", Nullable: true},
			{Name: "u", Kind: row.KindUUID, DBType: "uuid", Nullable: true},
			{Name: "any_", Kind: row.KindOther, Nullable: true},
			{Name: "twice", Kind: row.KindInteger, DBType: "INT", Bits: 64, Nullable: true, Generated: true},
		},
		unique: [][]string{{"id"}, {"u"}, {"v", "t"}},
	},
}

func TestTableIsReadFromTheCatalogue(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.speaksMariaDB(t)
		c := catalogues[db.Driver]
		for _, ddl := range c.ddl {
			db.Exec(t, ddl)
		}
		got, err := db.open().Table(t.Context(), "kinds")
		if err != nil {
			t.Fatal(err)
		}
		want := row.Table{Name: "kinds", Columns: c.want, Unique: c.unique}
		if got.Identity == "" {
			t.Error("the table has no identity")
		}
		got.Identity = "" // another one in each database
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// A key whose database takes "ada" and "Ada" for one would let their rows overwrite each
// other.
func TestColumnsThatEquateDifferentTextsAreTold(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.speaksMariaDB(t)
		columns := map[string][]struct{ definition, folds string }{
			"postgres": {
				{"text", ""}, {"varchar(9)", ""}, {`text COLLATE "C"`, ""}, {"bytea", ""},
				{"citext", "the type citext"}, {"folded", "the type citext"}, {`text COLLATE nocase`, "the collation nocase"},
			},
			"mysql": {
				{"varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "the collation utf8mb4_general_ci"},
				{"varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "the collation utf8mb4_bin"},
				{"varchar(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci", "the collation latin1_swedish_ci"},
				{"varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", ""}, {"varbinary(9)", ""},
				{"char(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ""}, // keeps no blank that it would pad
			},
			"sqlite": {
				{"text", ""}, {"text COLLATE BINARY", ""}, {"blob", ""},
				{"text COLLATE NOCASE", "the collation NOCASE"}, {"text COLLATE RTRIM", "the collation RTRIM"},
			},
		}[db.Driver]
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE EXTENSION citext")
			db.Exec(t, "CREATE DOMAIN folded AS citext")
			db.Exec(t, "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		s := db.open()
		for i, c := range columns {
			name := fmt.Sprint("keys_", i)
			db.Exec(t, fmt.Sprintf("CREATE TABLE %s (id %s NOT NULL PRIMARY KEY, n int)", name, c.definition))
			table, err := s.Table(t.Context(), name)
			if err != nil {
				t.Fatalf("%s: %v", c.definition, err)
			}
			if got := table.Columns[0].Folds; got != c.folds {
				t.Errorf("%s equates texts by %q, want %q", c.definition, got, c.folds)
			}
			if c.folds == "" || db.Driver == "sqlite" { // which changes no column
				continue
			}
			db.Exec(t, table.Columns[0].Exact)
			table, err = s.Table(t.Context(), name)
			if err != nil || table.Columns[0].Folds != "" || table.Columns[0].Nullable || len(table.Unique) != 1 {
				t.Errorf("%s, after %s: %+v, %v", c.definition, table.Columns[0].Exact, table, err)
			}
		}
	})
}

// The index decides which row an upsert meets, whatever the column says.
func TestIndexThatEquatesDifferentTextsIsTold(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		switch db.Driver {
		case "mysql": // an index compares as its column does
			return
		case "postgres":
			db.Exec(t, "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		db.Exec(t, "CREATE TABLE keyed (id text NOT NULL)")
		db.Exec(t, "CREATE UNIQUE INDEX folded ON keyed (id COLLATE nocase)")
		table, err := db.open().Table(t.Context(), "keyed")
		if err != nil || !strings.EqualFold(table.Columns[0].Folds, "the collation nocase") {
			t.Errorf("%+v, %v", table, err)
		}
	})
}

// PostgreSQL folds a name that is not quoted, so that T2 is t2; what a job says is the name.
func TestATablesNameIsTakenAsItIsWritten(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		q := map[string]string{"postgres": `"%s"`, "mysql": "`%s`", "sqlite": `"%s"`}[db.Driver]
		names := []string{"t2", "T2"}
		if db.Driver == "sqlite" { // to which these are one name
			names = names[:1]
		}
		s := db.leading()
		for i, name := range names {
			db.Exec(t, fmt.Sprintf("CREATE TABLE "+q+" (id bigint PRIMARY KEY, n bigint)", name))
			apply(t, s, fence(1), plan(t, s, name, []string{"id"}), batch(name, 0, rowOf(i, i)))
		}
		for i, name := range names {
			db.expect(fmt.Sprintf("SELECT id FROM "+q, name), fmt.Sprint(i))
		}
		db.Exec(t, "CREATE TABLE lower_case (id bigint PRIMARY KEY)")
		if _, err := s.Table(t.Context(), "Lower_Case"); db.Driver != "sqlite" && (!errors.Is(err, flush.ErrNoTable) ||
			!strings.Contains(err.Error(), `"Lower_Case"`) || !strings.Contains(err.Error(), "did you mean lower_case?")) {
			t.Errorf("another table: %v", err)
		}
	})
}

func TestTableThatCannotBeFlushedIntoIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		db.articles()
		db.Exec(t, "CREATE VIEW popular AS SELECT * FROM articles")
		s := db.open()
		for name, want := range map[string]string{
			"artcles":   "did you mean articles?",
			"nowhere":   "create it",
			"popular":   "view",
			"x.y":       "x.y",
			"a.b.c.d":   "a.b.c.d",
			"":          "create it",
			`"unclosed`: "unclosed",
		} {
			_, err := s.Table(t.Context(), name)
			if !errors.Is(err, flush.ErrNoTable) || !strings.Contains(err.Error(), want) {
				t.Errorf("table %q: %v", name, err)
			}
		}
	})
}

func TestTableWithoutTransactionsIsRefused(t *testing.T) {
	db := &bench{Database: kinds[1].make(t), t: t}
	db.Exec(t, "CREATE TABLE a (id int PRIMARY KEY) ENGINE=MyISAM")
	if _, err := db.open().Table(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "ENGINE=InnoDB") {
		t.Errorf("table: %v", err)
	}
}

func TestTableMayBeInAnotherSchema(t *testing.T) {
	db := onPostgres(t)
	db.Exec(t, "CREATE SCHEMA shop; CREATE TABLE shop.articles (id bigint PRIMARY KEY, views bigint)")
	s, p := db.flushing("shop.articles", []string{"id"}, "views")
	apply(t, s, fence(1), p, batch("a", 0, rowOf(1, 5)))
	db.expect("SELECT views FROM shop.articles", "5")
}
