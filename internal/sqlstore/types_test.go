package sqlstore_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
)

func text(k flush.Kind, s string) flush.Value { return flush.String(k, s) }

var (
	moment  = time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	ancient = time.Date(1600, 1, 2, 3, 4, 5, 6000, time.UTC)
	big     = strings.Repeat("1234567890", 3) + ".0123456789"
)

// roundTrips are columns, values, and what the database says they are.
var roundTrips = map[string][]struct {
	column string
	show   string // how to read it; the column itself if empty
	values []flush.Value
	want   []string
}{
	"postgres": {
		{"smallint", "", []flush.Value{flush.Integer(-32768), flush.Integer(32767)}, []string{"-32768", "32767"}},
		{"bigint", "", []flush.Value{flush.Integer(math.MinInt64), flush.Integer(math.MaxInt64)}, []string{"-9223372036854775808", "9223372036854775807"}},
		{"real", "c::text", []flush.Value{flush.Float(0.5), flush.Float(-1e30)}, []string{"0.5", "-1e+30"}},
		{"double precision", "c::text", []flush.Value{flush.Float(0.1), flush.Float(math.Inf(1)), flush.Float(math.NaN())}, []string{"0.1", "Infinity", "NaN"}},
		{"numeric(60,10)", "", []flush.Value{text(flush.KindNumeric, big), text(flush.KindNumeric, "-0.5")}, []string{big, "-0.5000000000"}},
		{"numeric", "", []flush.Value{text(flush.KindNumeric, "1e-30")}, []string{"0.000000000000000000000000000001"}},
		{"text", "", []flush.Value{text(flush.KindText, "Zoë 😀 'x' \"y\" \\ \n"), text(flush.KindText, "")}, []string{"Zoë 😀 'x' \"y\" \\ \n", ""}},
		{"varchar(3)", "", []flush.Value{text(flush.KindText, "äöü")}, []string{"äöü"}},
		{"bytea", "encode(c, 'hex')", []flush.Value{text(flush.KindBytes, "\x00\xff'"), text(flush.KindBytes, "")}, []string{"00ff27", ""}},
		{"boolean", "c::text", []flush.Value{flush.Boolean(true), flush.Boolean(false)}, []string{"true", "false"}},
		{"timestamp", "c::text", []flush.Value{flush.Timestamp(moment), flush.Timestamp(ancient)}, []string{"2024-02-29 23:59:59.123456", "1600-01-02 03:04:05.000006"}},
		{"timestamptz", "(c AT TIME ZONE 'UTC')::text", []flush.Value{flush.Timestamp(moment), flush.Timestamp(ancient)}, []string{"2024-02-29 23:59:59.123456", "1600-01-02 03:04:05.000006"}},
		{"date", "c::text", []flush.Value{flush.Date(moment), flush.Date(ancient)}, []string{"2024-02-29", "1600-01-02"}},
		{"json", "c::text", []flush.Value{text(flush.KindJSON, `{"b": 1, "a": [1.50, null]}`)}, []string{`{"b": 1, "a": [1.50, null]}`}},
		{"jsonb", "c::text", []flush.Value{text(flush.KindJSON, `{"b":1,"a":"é"}`)}, []string{`{"a": "é", "b": 1}`}},
		{"uuid", "c::text", []flush.Value{text(flush.KindUUID, "6ba7b810-9dad-11d1-80b4-00c04fd430c8")}, []string{"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}},
		{"integer[]", "c::text", []flush.Value{text(flush.KindOther, "{1,NULL,3}")}, []string{"{1,NULL,3}"}},
		{"inet", "c::text", []flush.Value{text(flush.KindOther, "10.0.0.1/8")}, []string{"10.0.0.1/8"}},
		{"bit(3)", "c::text", []flush.Value{text(flush.KindOther, "101")}, []string{"101"}},
		{"interval", "c::text", []flush.Value{text(flush.KindOther, "1 day 02:00")}, []string{"1 day 02:00:00"}},
		{"mood", "c::text", []flush.Value{text(flush.KindOther, "good")}, []string{"good"}},
		{"money", "c::numeric::text", []flush.Value{flush.Integer(3), text(flush.KindNumeric, "1.25")}, []string{"3.00", "1.25"}},
	},
	"mysql": {
		{"tinyint", "", []flush.Value{flush.Integer(-128), flush.Integer(127)}, []string{"-128", "127"}},
		{"bigint", "", []flush.Value{flush.Integer(math.MinInt64), flush.Integer(math.MaxInt64)}, []string{"-9223372036854775808", "9223372036854775807"}},
		{"bigint unsigned", "", []flush.Value{text(flush.KindNumeric, "18446744073709551615")}, []string{"18446744073709551615"}},
		{"float", "", []flush.Value{flush.Float(0.5)}, []string{"0.5"}},
		{"double", "", []flush.Value{flush.Float(0.1), flush.Float(-1e300)}, []string{"0.1", "-1e+300"}},
		{"decimal(60,10)", "", []flush.Value{text(flush.KindNumeric, big), text(flush.KindNumeric, "-0.5")}, []string{big, "-0.5000000000"}},
		{"text", "", []flush.Value{text(flush.KindText, "Zoë 😀 'x' \"y\" \\ \n"), text(flush.KindText, "")}, []string{"Zoë 😀 'x' \"y\" \\ \n", ""}},
		{"varchar(3)", "", []flush.Value{text(flush.KindText, "äöü")}, []string{"äöü"}},
		{"varbinary(9)", "hex(c)", []flush.Value{text(flush.KindBytes, "\x00\xff'"), text(flush.KindBytes, "")}, []string{"00FF27", ""}},
		{"blob", "hex(c)", []flush.Value{text(flush.KindBytes, "\xff\xfe")}, []string{"FFFE"}},
		{"boolean", "", []flush.Value{flush.Boolean(true), flush.Boolean(false)}, []string{"1", "0"}},
		{"datetime(6)", "", []flush.Value{flush.Timestamp(moment), flush.Timestamp(ancient)}, []string{"2024-02-29 23:59:59.123456", "1600-01-02 03:04:05.000006"}},
		{"timestamp(6) NULL", "UNIX_TIMESTAMP(c)", []flush.Value{flush.Timestamp(moment)}, []string{"1709251199.123456"}},
		{"date", "", []flush.Value{flush.Date(moment), flush.Date(ancient)}, []string{"2024-02-29", "1600-01-02"}},
		{"json", "", []flush.Value{text(flush.KindJSON, `{"b": 1, "a": "é"}`)}, []string{`{"b": 1, "a": "é"}`}},
		{"uuid", "", []flush.Value{text(flush.KindUUID, "6ba7b810-9dad-11d1-80b4-00c04fd430c8")}, []string{"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}},
		{"enum('good', 'bad')", "", []flush.Value{text(flush.KindOther, "good")}, []string{"good"}},
		{"bit(3)", "c + 0", []flush.Value{flush.Integer(5)}, []string{"5"}},
	},
	"sqlite": {
		{"INTEGER", "", []flush.Value{flush.Integer(math.MinInt64), flush.Integer(math.MaxInt64)}, []string{"-9223372036854775808", "9223372036854775807"}},
		{"REAL", "CAST(c AS TEXT)", []flush.Value{flush.Float(0.1), flush.Float(math.Inf(1))}, []string{"0.1", "Inf"}},
		{"NUMERIC", "typeof(c) || c", []flush.Value{text(flush.KindNumeric, "1234567890123456789"), text(flush.KindNumeric, "-0.5"), text(flush.KindNumeric, "123456789012345.0")}, []string{"integer1234567890123456789", "real-0.5", "integer123456789012345"}},
		{"TEXT", "typeof(c) || c", []flush.Value{text(flush.KindText, "Zoë 😀 'x' \n"), text(flush.KindText, "007"), text(flush.KindText, "")}, []string{"textZoë 😀 'x' \n", "text007", "text"}},
		{"TEXT", "", []flush.Value{text(flush.KindNumeric, big)}, []string{big}},
		{"BLOB", "CASE WHEN c IS NOT NULL THEN typeof(c) || hex(c) END", []flush.Value{text(flush.KindBytes, "\x00\xff'"), text(flush.KindBytes, "")}, []string{"blob00FF27", "blob"}},
		{"BOOLEAN", "typeof(c) || c", []flush.Value{flush.Boolean(true), flush.Boolean(false)}, []string{"integer1", "integer0"}},
		{"DATETIME", "typeof(c) || c", []flush.Value{flush.Timestamp(moment), flush.Timestamp(ancient)}, []string{"text2024-02-29 23:59:59.123456", "text1600-01-02 03:04:05.000006"}},
		{"DATE", "typeof(c) || c", []flush.Value{flush.Date(moment), flush.Date(ancient)}, []string{"text2024-02-29", "text1600-01-02"}},
		{"JSON", "typeof(c) || c", []flush.Value{text(flush.KindJSON, `{"b": 1, "a": "é"}`), text(flush.KindJSON, "1")}, []string{`text{"b": 1, "a": "é"}`, "integer1"}},
		{"UUID", "typeof(c) || c", []flush.Value{text(flush.KindUUID, "12345678-1234-1234-1234-123456789012")}, []string{"text12345678-1234-1234-1234-123456789012"}},
		{"MOOD", "typeof(c) || c", []flush.Value{text(flush.KindOther, "good")}, []string{"textgood"}},
	},
}

func TestEveryTypeArrivesAsItWas(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE TYPE mood AS ENUM ('good', 'bad')")
		}
		s := db.open()
		takeOver(t, s, fence(1))
		for n, c := range roundTrips[db.Driver] {
			t.Run(c.column, func(t *testing.T) {
				one := fmt.Sprintf("one_%d", n)
				db.Exec(t, "CREATE TABLE "+one+" (id int PRIMARY KEY, c "+c.column+")")
				p := plan(t, s, one, []string{"id"})
				rows := []flush.Row{row(0, nil)}
				want := []string{"NULL"}
				for i, v := range c.values {
					rows = append(rows, row(i+1, v))
					want = append(want, c.want[i])
				}
				for range 2 { // into an empty table, and over rows that are there
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

// What a database would silently change is refused instead.
func TestValueThatTheDatabaseWouldChangeIsADeadLetter(t *testing.T) {
	everywhere(t, func(t *testing.T, db *bench) {
		type refusal struct {
			column string
			value  flush.Value
		}
		if db.Driver == "postgres" {
			db.Exec(t, "CREATE DOMAIN short AS varchar(3)")
		}
		s := db.open()
		takeOver(t, s, fence(1))
		for n, c := range map[string][]refusal{
			"postgres": {
				{"varchar(3)", text(flush.KindText, "four")},
				{"char(3)", text(flush.KindText, "four")},
				{"bit(3)", text(flush.KindOther, "1010")},
				{"smallint", flush.Integer(40000)},
				{"numeric(3,1)", text(flush.KindNumeric, "1000")},
				{"text", text(flush.KindText, "a\x00b")},
				{"text", text(flush.KindText, "a\xffb")},
				{"jsonb", text(flush.KindJSON, `"\u0000"`)},
				{"short", text(flush.KindText, "four")},
				{"integer[]", text(flush.KindOther, "{x}")},
			},
			"mysql": {
				{"varchar(3)", text(flush.KindText, "four")},
				{"varbinary(3)", text(flush.KindBytes, "four")},
				{"enum('good')", text(flush.KindOther, "bad")},
				{"tinyint", flush.Integer(128)},
				{"int unsigned", flush.Integer(-1)},
				{"decimal(3,1)", text(flush.KindNumeric, "1000")},
				{"varchar(9) CHARACTER SET latin1", text(flush.KindText, "日本")},
				{"varchar(9)", text(flush.KindText, "a\xffb")},
				{"json", text(flush.KindJSON, "{")},
				{"bit(3)", flush.Integer(9)},
				{"double", flush.Float(math.NaN())},
				{"timestamp NULL", flush.Timestamp(ancient)},
				{"uuid", text(flush.KindUUID, "x")},
			},
			"sqlite": {
				{"NUMERIC", text(flush.KindNumeric, big)},
				{"NUMERIC", text(flush.KindNumeric, "0.1234567890123456")},
				{"JSON", text(flush.KindJSON, "12345678901234567890")},
				{"MOOD", text(flush.KindOther, "007")},
				{"MOOD", text(flush.KindOther, "1e999")},
				{"REAL", flush.Float(math.NaN())},
			},
		}[db.Driver] {
			t.Run(c.column, func(t *testing.T) {
				one := fmt.Sprintf("one_%d", n)
				db.Exec(t, "CREATE TABLE "+one+" (id int PRIMARY KEY, c "+c.column+")")
				out := apply(t, s, fence(1), plan(t, s, one, []string{"id"}), batch("a", -1, row(1, c.value), row(2, nil)))
				if len(out.Dead) != 1 || out.Rows != 1 {
					t.Errorf("outcome %+v", out)
				}
				db.expect("SELECT id, c FROM "+one, "2|NULL")
			})
		}
	})
}

// What the catalogue tells of a column lets the mapping refuse what the database
// would round, cut, fill up or take for something else.
func TestTextsThatADatabaseWouldChangeAreRefusedBeforehand(t *testing.T) {
	for _, kind := range kinds[:2] {
		t.Run(kind.name, func(t *testing.T) {
			db := &bench{Database: kind.make(t), t: t}
			s := db.open()
			takeOver(t, s, fence(1))
			for i, c := range map[string][]struct{ column, kept, changed string }{
				"postgres": {
					{"char(5)", "ab", "ab  "}, {"time(0)", "12:00:00.000", "12:00:00.789"}, {"time", "12:00:00.789", ""},
					{"timetz(2)", "12:00:00.78+00", "12:00:00.789+00"}, {"interval(0)", "1 day", "1.7 seconds"},
					{`"char"`, "a", "abc"}, {"name", "n", strings.Repeat("n", 64)},
				},
				"mysql": {
					{"char(5)", "ab", "ab  "}, {"binary(4)", "abcd", "ab"}, {"varbinary(4)", "ab", ""}, {"float(7,2)", "1.25", "1.239"}, {"double(7,2)", "1e1", "1.239"},
					{"time", "24:00:00.0", "12:00:00.789"}, {"time(2)", "-12:00:00.78", "100"}, {"year", "2024", "24"},
					{"enum('s','it''s','a,b')", "it's", "1"}, {"enum('s','1')", "1", "2"}, {"enum('s')", "s", "S"}, {"set('a','b','c')", "a,c", "3"}, {"set('a')", "", "a,d"},
				},
			}[db.Driver] {
				name := fmt.Sprintf("t%d", i)
				db.Exec(t, "CREATE TABLE "+name+" (id bigint PRIMARY KEY, c "+c.column+")")
				table, err := s.Table(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				m, err := flush.Compile(flush.MappingSpec{Table: name, Key: []string{"id"}}, table, flush.Inputs{Names: []string{"id"}, Fields: true})
				if err != nil {
					t.Fatal(err)
				}
				read := func(text string) (flush.Row, error) {
					return m.Row(flush.Record{Key: "1", Inputs: []flush.Raw{{Text: "1", OK: true}, {Text: text, OK: true}}})
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
