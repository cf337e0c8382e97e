package sqlstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
)

// The same table of every type, in the words of each database, and what a flush
// is told of it.
var catalogues = map[string]struct {
	ddl    []string
	want   []flush.Column
	unique [][]string
}{
	"postgres": {
		ddl: []string{
			"CREATE TYPE mood AS ENUM ('good', 'bad')",
			"CREATE DOMAIN short AS varchar(5) DEFAULT 'x'",
			"CREATE DOMAIN shorter AS short NOT NULL CHECK (VALUE <> 'no')",
			`CREATE TABLE kinds (
				i2 smallint NOT NULL, i4 integer DEFAULT 7, i8 bigint, always bigint GENERATED ALWAYS AS IDENTITY,
				twice integer GENERATED ALWAYS AS (i4 * 2) STORED, f4 real, f8 double precision, n numeric, n2 numeric(10,2), tens numeric(3,-2),
				t text, v varchar(12), c char(3), b bytea, ok boolean, ts timestamp, tsz timestamptz(3), d date, j json, jb jsonb, u uuid,
				m mood, a integer[], bits bit(3), ip inet, dom shorter,
				PRIMARY KEY (i8, i2), UNIQUE (v) DEFERRABLE)`,
			"CREATE UNIQUE INDEX ON kinds (c) INCLUDE (t)",
			"CREATE UNIQUE INDEX ON kinds (lower(t))",
			"CREATE UNIQUE INDEX ON kinds (d) WHERE ok",
			"ALTER TABLE kinds DROP COLUMN f4",
		},
		want: []flush.Column{
			{Name: "i2", Kind: flush.KindInteger, DBType: "smallint", Bits: 16},
			{Name: "i4", Kind: flush.KindInteger, DBType: "integer", Bits: 32, Nullable: true, Default: true},
			{Name: "i8", Kind: flush.KindInteger, DBType: "bigint", Bits: 64},
			{Name: "always", Kind: flush.KindInteger, DBType: "bigint", Bits: 64, Default: true, Generated: true},
			{Name: "twice", Kind: flush.KindInteger, DBType: "integer", Bits: 32, Nullable: true, Default: true, Generated: true},
			{Name: "f8", Kind: flush.KindFloat, DBType: "double precision", Bits: 64, Nullable: true},
			{Name: "n", Kind: flush.KindNumeric, DBType: "numeric", Nullable: true},
			{Name: "n2", Kind: flush.KindNumeric, DBType: "numeric", Precision: 10, Scale: 2, Nullable: true},
			{Name: "tens", Kind: flush.KindNumeric, DBType: "numeric", Precision: 3, Scale: -2, Nullable: true},
			{Name: "t", Kind: flush.KindText, DBType: "text", Nullable: true},
			{Name: "v", Kind: flush.KindText, DBType: "character varying", MaxChars: 12, Nullable: true},
			{Name: "c", Kind: flush.KindText, DBType: "bpchar", MaxChars: 3, Padded: true, Nullable: true},
			{Name: "b", Kind: flush.KindBytes, DBType: "bytea", Nullable: true},
			{Name: "ok", Kind: flush.KindBoolean, DBType: "boolean", Nullable: true},
			{Name: "ts", Kind: flush.KindTimestamp, DBType: "timestamp without time zone", TimeUnit: time.Microsecond, Nullable: true},
			{Name: "tsz", Kind: flush.KindTimestamp, DBType: "timestamp with time zone", TimeUnit: time.Millisecond, Nullable: true},
			{Name: "d", Kind: flush.KindDate, DBType: "date", Nullable: true},
			{Name: "j", Kind: flush.KindJSON, DBType: "json", Nullable: true},
			{Name: "jb", Kind: flush.KindJSON, DBType: "jsonb", Nullable: true},
			{Name: "u", Kind: flush.KindUUID, DBType: "uuid", Nullable: true},
			{Name: "m", Kind: flush.KindOther, DBType: "mood", Nullable: true},
			{Name: "a", Kind: flush.KindOther, DBType: "integer[]", Nullable: true},
			{Name: "bits", Kind: flush.KindOther, DBType: "bit varying", Nullable: true},
			{Name: "ip", Kind: flush.KindOther, DBType: "inet", Nullable: true},
			{Name: "dom", Kind: flush.KindText, DBType: "character varying", MaxChars: 5, Default: true},
		},
		unique: [][]string{{"i8", "i2"}, {"c"}},
	},
	"mysql": {
		ddl: []string{
			`CREATE TABLE kinds (
				i1 tinyint NOT NULL, i3 mediumint DEFAULT 7, i8 bigint unsigned AUTO_INCREMENT, twice int GENERATED ALWAYS AS (i3 * 2) STORED,
				f4 float, f8 double, n2 decimal(10,2), t text, v varchar(12), c char(3), b varbinary(9), bl blob, ok boolean,
				ts datetime, ts6 timestamp(6) NULL, d date, m enum('good', 'bad'), bits bit(3), u uuid, y year,
				PRIMARY KEY (i8, i1), UNIQUE KEY vc (v, c), UNIQUE KEY part (t(4)))`,
		},
		want: []flush.Column{
			{Name: "i1", Kind: flush.KindInteger, DBType: "tinyint(4)", Bits: 8},
			{Name: "i3", Kind: flush.KindInteger, DBType: "mediumint(9)", Bits: 24, Nullable: true, Default: true},
			{Name: "i8", Kind: flush.KindInteger, DBType: "bigint(20) unsigned", Bits: 64, Unsigned: true, Default: true},
			{Name: "twice", Kind: flush.KindInteger, DBType: "int(11)", Bits: 32, Nullable: true, Generated: true},
			{Name: "f4", Kind: flush.KindFloat, DBType: "float", Bits: 32, Nullable: true},
			{Name: "f8", Kind: flush.KindFloat, DBType: "double", Bits: 64, Nullable: true},
			{Name: "n2", Kind: flush.KindNumeric, DBType: "decimal(10,2)", Precision: 10, Scale: 2, Nullable: true},
			{Name: "t", Kind: flush.KindText, DBType: "text", MaxBytes: 65535, Nullable: true},
			{Name: "v", Kind: flush.KindText, DBType: "varchar(12)", MaxChars: 12, Nullable: true},
			{Name: "c", Kind: flush.KindText, DBType: "char(3)", MaxChars: 3, Padded: true, Nullable: true},
			{Name: "b", Kind: flush.KindBytes, DBType: "varbinary(9)", MaxBytes: 9, Nullable: true},
			{Name: "bl", Kind: flush.KindBytes, DBType: "blob", MaxBytes: 65535, Nullable: true},
			{Name: "ok", Kind: flush.KindBoolean, DBType: "tinyint(1)", Nullable: true},
			{Name: "ts", Kind: flush.KindTimestamp, DBType: "datetime", TimeUnit: time.Second, Nullable: true},
			{Name: "ts6", Kind: flush.KindTimestamp, DBType: "timestamp(6)", TimeUnit: time.Microsecond, Nullable: true},
			{Name: "d", Kind: flush.KindDate, DBType: "date", Nullable: true},
			{Name: "m", Kind: flush.KindOther, DBType: "enum('good','bad')", Form: "(good|bad)", Nullable: true},
			{Name: "bits", Kind: flush.KindInteger, DBType: "bit(3)", Bits: 64, Unsigned: true, Nullable: true},
			{Name: "u", Kind: flush.KindUUID, DBType: "uuid", Nullable: true},
			{Name: "y", Kind: flush.KindOther, DBType: "year(4)", Form: `\d{4}`, Nullable: true},
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
		want: []flush.Column{
			{Name: "id", Kind: flush.KindInteger, DBType: "INTEGER", Bits: 64, Default: true},
			{Name: "i", Kind: flush.KindInteger, DBType: "INT", Bits: 64},
			{Name: "f", Kind: flush.KindFloat, DBType: "REAL", Bits: 64, Nullable: true},
			{Name: "n", Kind: flush.KindNumeric, DBType: "decimal(10,2)", Nullable: true, Default: true},
			{Name: "t", Kind: flush.KindText, DBType: "TEXT", Nullable: true},
			{Name: "v", Kind: flush.KindText, DBType: "varchar(12)", Nullable: true},
			{Name: "b", Kind: flush.KindBytes, DBType: "BLOB", Nullable: true},
			{Name: "ok", Kind: flush.KindBoolean, DBType: "boolean", Nullable: true},
			{Name: "ts", Kind: flush.KindTimestamp, DBType: "datetime", Nullable: true},
			{Name: "d", Kind: flush.KindDate, DBType: "date", Nullable: true},
			{Name: "j", Kind: flush.KindJSON, DBType: "json", Nullable: true},
			{Name: "u", Kind: flush.KindUUID, DBType: "uuid", Nullable: true},
			{Name: "any_", Kind: flush.KindOther, Nullable: true},
			{Name: "twice", Kind: flush.KindInteger, DBType: "INT", Bits: 64, Nullable: true, Generated: true},
		},
		unique: [][]string{{"id"}, {"u"}, {"v", "t"}},
	},
}

func TestTableIsReadFromTheCatalogue(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		c := catalogues[db.Driver]
		for _, ddl := range c.ddl {
			db.Exec(t, ddl)
		}
		got, err := db.open().Table(t.Context(), "kinds")
		if err != nil {
			t.Fatal(err)
		}
		want := flush.Table{Name: "kinds", Columns: c.want, Unique: c.unique}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
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
	s := db.open()
	takeOver(t, s, fence(1))
	p := plan(t, s, "shop.articles", []string{"id"}, "views")
	apply(t, s, fence(1), p, batch("a", 0, row(1, 5)))
	db.expect("SELECT views FROM shop.articles", "5")
}
