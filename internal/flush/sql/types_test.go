package sql_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

func text(k row.Kind, s string) row.Value { return row.String(k, s) }

var (
	moment  = time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	ancient = time.Date(1600, 1, 2, 3, 4, 5, 6000, time.UTC)
	big     = strings.Repeat("1234567890", 3) + ".0123456789"
)

// roundTrips contains columns, values to write, and the texts that the database must return.
var roundTrips = map[string][]struct {
	column string
	show   string // expression to read the value; if empty, the column itself
	values []row.Value
	want   []string
}{
	"postgres": {
		{"smallint", "", []row.Value{row.Integer(-32768), row.Integer(32767)}, []string{"-32768", "32767"}},
		{"bigint", "", []row.Value{row.Integer(math.MinInt64), row.Integer(math.MaxInt64)},
			[]string{"-9223372036854775808", "9223372036854775807"}},
		{"real", "c::text", []row.Value{row.Float(0.5), row.Float(-1e30)}, []string{"0.5", "-1e+30"}},
		{"double precision", "c::text", []row.Value{row.Float(0.1), row.Float(math.Inf(1)), row.Float(math.NaN())},
			[]string{"0.1", "Infinity", "NaN"}},
		{"numeric(60,10)", "", []row.Value{text(row.KindNumeric, big), text(row.KindNumeric, "-0.5")}, []string{big, "-0.5000000000"}},
		{"numeric", "", []row.Value{text(row.KindNumeric, "1e-30")}, []string{"0.000000000000000000000000000001"}},
		{"text", "", []row.Value{text(row.KindText, "Zoë 😀 'x' \"y\" \\ \n"), text(row.KindText, "")},
			[]string{"Zoë 😀 'x' \"y\" \\ \n", ""}},
		{"varchar(3)", "", []row.Value{text(row.KindText, "äöü")}, []string{"äöü"}},
		{"bytea", "encode(c, 'hex')", []row.Value{text(row.KindBytes, "\x00\xff'"), text(row.KindBytes, "")}, []string{"00ff27", ""}},
		{"boolean", "c::text", []row.Value{row.Boolean(true), row.Boolean(false)}, []string{"true", "false"}},
		{"timestamp", "c::text", []row.Value{row.Timestamp(moment), row.Timestamp(ancient)},
			[]string{"2024-02-29 23:59:59.123456", "1600-01-02 03:04:05.000006"}},
		{"timestamptz", "(c AT TIME ZONE 'UTC')::text", []row.Value{row.Timestamp(moment), row.Timestamp(ancient)},
			[]string{"2024-02-29 23:59:59.123456", "1600-01-02 03:04:05.000006"}},
		{"date", "c::text", []row.Value{row.Date(moment), row.Date(ancient)}, []string{"2024-02-29", "1600-01-02"}},
		{"json", "c::text", []row.Value{text(row.KindJSON, `{"b": 1, "a": [1.50, null]}`)}, []string{`{"b": 1, "a": [1.50, null]}`}},
		{"jsonb", "c::text", []row.Value{text(row.KindJSON, `{"b":1,"a":"é"}`)}, []string{`{"a": "é", "b": 1}`}},
		{"uuid", "c::text", []row.Value{text(row.KindUUID, "6ba7b810-9dad-11d1-80b4-00c04fd430c8")},
			[]string{"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}},
		{"integer[]", "c::text", []row.Value{text(row.KindOther, "{1,NULL,3}")}, []string{"{1,NULL,3}"}},
		{"inet", "c::text", []row.Value{text(row.KindOther, "10.0.0.1/8")}, []string{"10.0.0.1/8"}},
		{"bit(3)", "c::text", []row.Value{text(row.KindOther, "101")}, []string{"101"}},
		{"interval", "c::text", []row.Value{text(row.KindOther, "1 day 02:00")}, []string{"1 day 02:00:00"}},
		{"mood", "c::text", []row.Value{text(row.KindOther, "good")}, []string{"good"}},
		{"money", "c::numeric::text", []row.Value{row.Integer(3), text(row.KindNumeric, "1.25")}, []string{"3.00", "1.25"}},
	},
	"mysql": {
		{"tinyint", "", []row.Value{row.Integer(-128), row.Integer(127)}, []string{"-128", "127"}},
		{"bigint", "", []row.Value{row.Integer(math.MinInt64), row.Integer(math.MaxInt64)},
			[]string{"-9223372036854775808", "9223372036854775807"}},
		{"bigint unsigned", "", []row.Value{text(row.KindNumeric, "18446744073709551615")}, []string{"18446744073709551615"}},
		{"float", "", []row.Value{row.Float(0.5)}, []string{"0.5"}},
		{"double", "", []row.Value{row.Float(0.1), row.Float(-1e300)}, []string{"0.1", "-1e+300"}},
		{"decimal(60,10)", "", []row.Value{text(row.KindNumeric, big), text(row.KindNumeric, "-0.5")}, []string{big, "-0.5000000000"}},
		{"text", "", []row.Value{text(row.KindText, "Zoë 😀 'x' \"y\" \\ \n"), text(row.KindText, "")},
			[]string{"Zoë 😀 'x' \"y\" \\ \n", ""}},
		{"varchar(3)", "", []row.Value{text(row.KindText, "äöü")}, []string{"äöü"}},
		{"varbinary(9)", "hex(c)", []row.Value{text(row.KindBytes, "\x00\xff'"), text(row.KindBytes, "")}, []string{"00FF27", ""}},
		{"blob", "hex(c)", []row.Value{text(row.KindBytes, "\xff\xfe")}, []string{"FFFE"}},
		{"boolean", "", []row.Value{row.Boolean(true), row.Boolean(false)}, []string{"1", "0"}},
		{"datetime(6)", "", []row.Value{row.Timestamp(moment), row.Timestamp(ancient)},
			[]string{"2024-02-29 23:59:59.123456", "1600-01-02 03:04:05.000006"}},
		{"timestamp(6) NULL", "UNIX_TIMESTAMP(c)", []row.Value{row.Timestamp(moment)}, []string{"1709251199.123456"}},
		{"date", "", []row.Value{row.Date(moment), row.Date(ancient)}, []string{"2024-02-29", "1600-01-02"}},
		{"json", "", []row.Value{text(row.KindJSON, `{"b": 1, "a": "é"}`)}, []string{`{"b": 1, "a": "é"}`}},
		{"uuid", "", []row.Value{text(row.KindUUID, "6ba7b810-9dad-11d1-80b4-00c04fd430c8")},
			[]string{"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}},
		{"enum('good', 'bad')", "", []row.Value{text(row.KindOther, "good")}, []string{"good"}},
		{"bit(3)", "c + 0", []row.Value{row.Integer(5)}, []string{"5"}},
	},
	"sqlite": {
		{"INTEGER", "", []row.Value{row.Integer(math.MinInt64), row.Integer(math.MaxInt64)},
			[]string{"-9223372036854775808", "9223372036854775807"}},
		{"REAL", "CAST(c AS TEXT)", []row.Value{row.Float(0.1), row.Float(math.Inf(1))}, []string{"0.1", "Inf"}},
		{"NUMERIC", "typeof(c) || c", []row.Value{text(row.KindNumeric, "1234567890123456789"), text(row.KindNumeric, "-0.5"),
			text(row.KindNumeric, "123456789012345.0")}, []string{"integer1234567890123456789", "real-0.5", "integer123456789012345"}},
		{"TEXT", "typeof(c) || c", []row.Value{text(row.KindText, "Zoë 😀 'x' \n"), text(row.KindText, "007"), text(row.KindText, "")},
			[]string{"textZoë 😀 'x' \n", "text007", "text"}},
		{"TEXT", "", []row.Value{text(row.KindNumeric, big)}, []string{big}},
		{"BLOB", "CASE WHEN c IS NOT NULL THEN typeof(c) || hex(c) END", []row.Value{text(row.KindBytes, "\x00\xff'"),
			text(row.KindBytes, "")}, []string{"blob00FF27", "blob"}},
		{"BOOLEAN", "typeof(c) || c", []row.Value{row.Boolean(true), row.Boolean(false)}, []string{"integer1", "integer0"}},
		{"DATETIME", "typeof(c) || c", []row.Value{row.Timestamp(moment), row.Timestamp(ancient)},
			[]string{"text2024-02-29 23:59:59.123456", "text1600-01-02 03:04:05.000006"}},
		{"DATE", "typeof(c) || c", []row.Value{row.Date(moment), row.Date(ancient)}, []string{"text2024-02-29", "text1600-01-02"}},
		{"JSON", "typeof(c) || c", []row.Value{text(row.KindJSON, `{"b": 1, "a": "é"}`), text(row.KindJSON, "1")},
			[]string{`text{"b": 1, "a": "é"}`, "integer1"}},
		{"UUID", "typeof(c) || c", []row.Value{text(row.KindUUID, "12345678-1234-1234-1234-123456789012")},
			[]string{"text12345678-1234-1234-1234-123456789012"}},
		{"MOOD", "typeof(c) || c", []row.Value{text(row.KindOther, "good")}, []string{"textgood"}},
	},
}

func TestEveryTypeArrivesAsItWas(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE TYPE mood AS ENUM ('good', 'bad')")
		}
		s := db.leading()
		for n, c := range roundTrips[db.Driver] {
			t.Run(c.column, func(t *testing.T) {
				if c.column == "uuid" || c.column == "json" {
					db.speaksMariaDB(t) // MariaDB stores a JSON text unchanged, and has a type for UUIDs
				}
				one := fmt.Sprintf("one_%d", n)
				db.Exec(t, "CREATE TABLE "+one+" (id int PRIMARY KEY, c "+c.column+")")
				p := plan(t, s, one, []string{"id"})
				rows := []row.Row{rowOf(0, nil)}
				want := []string{"NULL"}
				for i, v := range c.values {
					rows = append(rows, rowOf(i+1, v))
					want = append(want, c.want[i])
				}
				for range 2 { // first into an empty table, then over existing rows
					if out := apply(t, s, fence(1), p, batch("a", -1, rows...)); len(out.Dead) > 0 {
						t.Errorf("dead letters %+v", out.Dead)
					}
				}
				show := c.show
				if show == "" {
					show = "c"
				}
				db.expect("SELECT "+show+" FROM "+one+" ORDER BY id", want...)
			})
		}
	})
}

// baton refuses a value that a database would silently change.
func TestValueThatTheDatabaseWouldChangeIsADeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		type refusal struct {
			column string
			value  row.Value
		}
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE DOMAIN short AS varchar(3)")
		}
		s := db.leading()
		for n, c := range map[string][]refusal{
			"postgres": {
				{"varchar(3)", text(row.KindText, "four")},
				{"char(3)", text(row.KindText, "four")},
				{"bit(3)", text(row.KindOther, "1010")},
				{"smallint", row.Integer(40000)},
				{"numeric(3,1)", text(row.KindNumeric, "1000")},
				{"text", text(row.KindText, "a\x00b")},
				{"text", text(row.KindText, "a\xffb")},
				{"jsonb", text(row.KindJSON, `"\u0000"`)},
				{"short", text(row.KindText, "four")},
				{"integer[]", text(row.KindOther, "{x}")},
			},
			"mysql": {
				{"varchar(3)", text(row.KindText, "four")},
				{"varbinary(3)", text(row.KindBytes, "four")},
				{"enum('good')", text(row.KindOther, "bad")},
				{"tinyint", row.Integer(128)},
				{"int unsigned", row.Integer(-1)},
				{"decimal(3,1)", text(row.KindNumeric, "1000")},
				{"varchar(9) CHARACTER SET latin1", text(row.KindText, "日本")},
				{"varchar(9)", text(row.KindText, "a\xffb")},
				{"json", text(row.KindJSON, "{")},
				{"bit(3)", row.Integer(9)},
				{"double", row.Float(math.NaN())},
				{"timestamp NULL", row.Timestamp(ancient)},
				{"uuid", text(row.KindUUID, "x")},
			},
			"sqlite": {
				{"NUMERIC", text(row.KindNumeric, big)},
				{"NUMERIC", text(row.KindNumeric, "0.1234567890123456")},
				{"JSON", text(row.KindJSON, "12345678901234567890")},
				{"MOOD", text(row.KindOther, "007")},
				{"MOOD", text(row.KindOther, "1e999")},
				{"REAL", row.Float(math.NaN())},
			},
		}[db.Driver] {
			t.Run(c.column, func(t *testing.T) {
				if c.column == "uuid" {
					db.speaksMariaDB(t)
				}
				one := fmt.Sprintf("one_%d", n)
				db.Exec(t, "CREATE TABLE "+one+" (id int PRIMARY KEY, c "+c.column+")")
				out := apply(t, s, fence(1), plan(t, s, one, []string{"id"}), batch("a", -1, rowOf(1, c.value), rowOf(2, nil)))
				if len(out.Dead) != 1 || out.Rows != 1 {
					t.Errorf("outcome %+v", out)
				}
				db.expect("SELECT id, c FROM "+one, "2|NULL")
			})
		}
	})
}

// With the information of the catalogue the mapping refuses values that the database would round, cut, pad or misread.
func TestTextsThatADatabaseWouldChangeAreRefusedBeforehand(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind.name, func(t *testing.T) {
			db := &bench{Database: kind.make(t), t: t}
			s := db.leading()
			for i, c := range map[string][]struct{ column, kept, changed string }{
				"postgres": {
					{"char(5)", "ab", "ab  "}, {"time(0)", "12:00:00.000", "12:00:00.789"}, {"time", "12:00:00.789", ""},
					{"timetz(2)", "12:00:00.78+00", "12:00:00.789+00"}, {"interval(0)", "1 day", "1.7 seconds"},
					{`"char"`, "a", "abc"}, {"name", "n", strings.Repeat("n", 64)},
					{"money", "-1,234.5", "1.005"}, {"money", "$1.0500", "1.005"}, {"oid", "4294967295", "-1"}, {"xid", "7", "-1"},
					{"jsonb", `{"a": [{"a": 1}, {"a": 2, "b": ",\"b\":{"}], "b": "a", "c": {}}`, `{"x": [{"b": 1, "a": 2, "\u0062": 3}]}`},
					{"json", `{"a": 1, "a": 2}`, ""}, {"jsonb", `[1, "a", "a", [], {}]`, `{"a":"\\","a":2}`},
				},
				"mysql": {
					{"char(5)", "ab", "ab  "}, {"binary(4)", "abcd", "ab"}, {"varbinary(4)", "ab", ""}, {"float(7,2)", "1.25", "1.239"},
					{"double(7,2)", "1e1", "1.239"},
					{"time", "24:00:00.0", "12:00:00.789"}, {"time(2)", "-12:00:00.78", "100"}, {"year", "2024", "24"},
					{"enum('s','it''s','a,b')", "it's", "1"}, {"enum('s','1')", "1", "2"}, {"enum('s')", "s", "S"},
					{"set('a','b','c')", "a,c", "3"}, {"set('a')", "", "a,d"},
				},
			}[db.Driver] {
				name := fmt.Sprintf("t%d", i)
				db.Exec(t, "CREATE TABLE "+name+" (id bigint PRIMARY KEY, c "+c.column+")")
				table, err := s.Table(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				m, err := mapping.Compile(mapping.Spec{Table: name, Key: []string{"id"}}, table,
					row.Inputs{Names: []string{"id"}, Fields: true})
				if err != nil {
					t.Fatal(err)
				}
				read := func(text string) (row.Row, error) {
					return m.Row(row.Record{Key: "1", Inputs: []row.Raw{{Text: "1", OK: true}, {Text: text, OK: true}}})
				}
				if _, err := read(c.changed); err == nil && c.changed != "" {
					t.Errorf("%s took %q", c.column, c.changed)
				}
				row, err := read(c.kept)
				if err != nil {
					t.Errorf("%s refused %q: %v", c.column, c.kept, err)
					continue
				}
				if out := apply(t, s, fence(1), m.Plan(), batch(name, 0, row)); out.Rows != 1 {
					t.Errorf("%s: %q: %+v", c.column, c.kept, out)
				}
			}
		})
	}
}

// The reason of a dead letter lists the values that an enumerated column accepts, as the catalogue shows them.
func TestReasonsListWhatAnEnumeratedColumnTakes(t *testing.T) {
	servers(t, func(t *testing.T, db *bench) {
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE TYPE mood AS ENUM ('good', 'it''s bad'); CREATE DOMAIN humour AS mood NOT NULL; "+
				"CREATE DOMAIN color AS text CHECK (VALUE IN ('red', 'blue')); CREATE DOMAIN dark AS color CHECK (length(VALUE) > 3)")
		}
		s := db.leading()
		for n, c := range map[string][]struct{ column, kept, refused, why string }{
			"postgres": {
				{"mood", "it's bad", "bad", `; column "c" takes one of "good", "it's bad"`},
				{"humour", "good", "Good", `; column "c" takes one of "good", "it's bad"`},
				{"color", "red", "green", `; column "c" demands CHECK (VALUE = ANY (ARRAY['red'::text, 'blue'::text]))`},
				{"dark", "blue", "red", `; column "c" demands CHECK (length(VALUE::text) > 3)`},
			},
			"mysql": {
				{"enum('good', 'it''s bad')", "it's bad", "bad",
					`"bad" is not one of the column's values: the column accepts one of "good", "it's bad"`},
				{"set('a', 'b')", "b,a", "a,c",
					`"a,c" is not one of the column's values: the column accepts any of "a", "b", with commas between them`},
				{"set('a', 'b')", "", "c", `the column accepts any of "a", "b"`},
			},
		}[db.Driver] {
			name := fmt.Sprintf("listed_%d", n)
			db.Exec(t, "CREATE TABLE "+name+" (id bigint PRIMARY KEY, absent int DEFAULT 7, c "+c.column+")")
			table, err := s.Table(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := mapping.Compile(mapping.Spec{Table: name, Key: []string{"id"}}, table,
				row.Inputs{Names: []string{"id"}, Fields: true})
			if err != nil {
				t.Fatal(err)
			}
			record := func(id, text string) row.Record {
				r := row.Record{Key: id}
				for _, input := range m.Plan().Inputs {
					text, has := map[string]string{"id": id, "c": text}[input]
					r.Inputs = append(r.Inputs, row.Raw{Text: text, OK: has})
				}
				return r
			}
			b := batch(name, 0)
			b.Rows, b.Dead = m.Rows([]row.Record{record("1", c.kept), record("2", c.refused)}, "", new(mapping.Space))
			out := apply(t, s, fence(1), m.Plan(), b)
			if out.Rows != 1 || len(out.Dead) != 1 || !strings.Contains(out.Dead[0].Error, c.why) {
				t.Errorf("%s: %+v; want a reason with %s", c.column, out, c.why)
			}
		}
	})
}
