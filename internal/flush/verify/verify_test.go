package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/source"
	"baton/internal/flush/verify"
	"baton/internal/testsupport"
)

// matrix has the column types of each database, each with a first and a later text of a producer.
var matrix = map[string][]struct{ dbType, was, is string }{
	"postgres": {
		{"smallint", "7", "-8"}, {"bigint", "+9007199254740993", "9007199254740992"}, {"real", "0.1", "0.2"},
		{"double precision", "0.1", "0.10000000000000002"}, {"double precision", "1e-300", "2e-300"},
		{"numeric", "1.50", "1.51"}, {"numeric(60,10)", "123456789012345678901234567890.5", "123456789012345678901234567890.6"},
		{"text", "Zoë 'x' \\ \n", "zoë 'x' \\ \n"}, {"text", "a", "a "}, {"varchar(9)", "ä", "ö"}, {"char(9)", "ab", "aB"},
		{"bytea", "\x00\xff\\x41", "\x00\xfe"}, {"boolean", "yes", "no"},
		{"timestamp", "2024-02-29T23:59:59.123456Z", "2024-02-29T23:59:59.123457Z"},
		{"timestamp(0)", "2024-02-29T23:59:59Z", "2024-02-29T23:59:58Z"},
		{"timestamptz", "2024-02-29T23:59:59.1+05:30", "2024-02-29T23:59:59.1Z"},
		{"timestamptz", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"},
		{"date", "1600-01-02", "1600-01-03"}, {"json", `{"b":1.0, "a":[null]}`, `{"b":2}`},
		{"jsonb", `{"b":1.50,"a":"\u00e9"}`, `{"b":1.5,"a":"e"}`},
		{"uuid", "{6BA7B810-9DAD-11D1-80B4-00C04FD430C8}", "6ba7b810-9dad-11d1-80b4-00c04fd430c9"},
		{"inet", "::ffff:10.0.0.1", "10.0.0.2"}, {"interval", "26 hours", "1 day 02:00"}, {"integer[]", "{1, 2}", "{1,3}"},
		{"point", "(1,2)", "(1,3)"},
		{"bit(3)", "101", "100"}, {"time", "1:02", "1:03"}, {"money", "1.5", "1.6"}, {"xml", "<a/>", "<b/>"},
	},
	"mysql": {
		{"tinyint", "7", "-8"}, {"bigint", "9007199254740993", "9007199254740992"},
		{"bigint unsigned", "18446744073709551615", "18446744073709551614"},
		{"float", "0.1", "0.2"}, {"double", "0.1", "0.10000000000000002"}, {"float(7,2)", "1.25", "1.26"},
		{"double(12,3)", "0.125", "0.126"},
		{"decimal(60,10)", "123456789012345678901234567890.5", "123456789012345678901234567890.6"}, {"decimal(10,2)", "1", "1.01"},
		{"text", "Zoë 'x' \\ \n", "zoë 'x' \\ \n"}, {"varchar(9)", "a", "a "}, {"varchar(9)", "a", "A"}, {"char(9)", "ab", "aB"},
		{"varbinary(9)", "\x00\xff", "\x00\xfe"}, {"binary(2)", "\x00\x00", "\x00 "}, {"blob", "1", "2"}, {"boolean", "on", "off"},
		{"datetime(6)", "2024-02-29T23:59:59.123456Z", "2024-02-29T23:59:59.123457Z"},
		{"datetime", "2024-02-29T23:59:59Z", "2024-02-29T23:59:58Z"},
		{"timestamp(6) NULL", "2024-02-29T23:59:59.1+05:30", "2024-02-29T23:59:59.1Z"}, {"date", "1600-01-02", "1600-01-03"},
		{"json", `{"b": 1.0, "a": "é"}`, `{"b": 1.1}`},
		{"uuid", "6BA7B8109DAD11D180B400C04FD430C8", "6ba7b810-9dad-11d1-80b4-00c04fd430c9"},
		{"enum('good', 'bad')", "good", "bad"}, {"set('a','b','c')", "b,a", "a"}, {"bit(12)", "2730", "0"},
		{"time(3)", "1:02:03.5", "1:02:03.6"}, {"year", "2024", "2025"},
		{"inet6", "::0:1", "::2"},
	},
	"sqlite": {
		{"INTEGER", "7", "8"}, {"BIGINT", "9007199254740993", "9007199254740992"}, {"REAL", "0.1", "0.10000000000000002"},
		{"NUMERIC", "1.50", "1.51"},
		{"NUMERIC", "12", "13"}, {"TEXT", "007", "7"}, {"TEXT", "a", "a "}, {"BLOB", "\x00\xff", "\x00\xfe"}, {"BOOLEAN", "yes", "no"},
		{"DATETIME", "2024-02-29T23:59:59.123456Z", "2024-02-29T23:59:59.123457Z"},
		{"TIMESTAMP", "2024-02-29T23:59:59+05:30", "2024-02-29T23:59:59Z"},
		{"DATE", "1600-01-02", "1600-01-03"}, {"JSON", `{"b":1,"a":2}`, `{"b":1,"a":3}`}, {"JSON", "1", "2"},
		{"UUID", "6BA7B8109DAD11D180B400C04FD430C8", "6ba7b810-9dad-11d1-80b4-00c04fd430c9"},
		{"MOOD", "good", "bad"},
	},
}

// A stored value equals the record's, however the column shows it. The smallest possible difference must be found.
func TestEveryTypeIsComparedByItsValue(t *testing.T) {
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		columns := ""
		var fields []any
		later := []any{"row:2"}
		for i, c := range matrix[db.Driver] {
			columns += fmt.Sprintf(", c%d %s", i, c.dbType)
			fields = append(fields, fmt.Sprintf("c%d", i), c.was)
			later = append(later, fmt.Sprintf("c%d", i), c.is)
		}
		db.Exec(t, "CREATE TABLE t (id int PRIMARY KEY"+columns+")")
		l := newLab(t, db, source.Options{Type: "hashes", Key: "row:<id>", Changed: "changed"},
			mapping.Spec{Table: "t", Key: []string{"id"}})
		l.do("HSET", append([]any{"row:1"}, fields...)...)
		l.do("HSET", append([]any{"row:2"}, fields...)...)
		l.do("HSET", "row:3", "c0", "1")
		l.do("SADD", "changed", 1, 2, 3)
		l.run()
		if dead := db.Rows(t, "SELECT error FROM baton_dead_letter"); len(dead) > 0 {
			t.Fatalf("dead letters: %v", dead)
		}
		l.wants("flushed", l.verify(verify.Options{}), 3, 0, 0, 0, 0)
		l.do("HSET", later...) // and no key is marked
		r := l.verify(verify.Options{Examples: 100})
		l.wants("changed", r, 3, 0, 1, 0, 0)
		if len(r.Examples) != 1 || len(r.Examples[0].Columns) != len(matrix[db.Driver]) {
			t.Errorf("these columns differ, and all %d should: %+v", len(matrix[db.Driver]), r.Examples)
		}
		l.do("DEL", "row:2")
		l.do("HSET", append([]any{"row:2"}, fields[:2]...)...)
		if r = l.verify(verify.Options{}); len(r.Examples) != 1 || len(r.Examples[0].Columns) != len(matrix[db.Driver])-1 {
			t.Errorf("NULL instead of a value: %+v", r)
		}
	})
}

// people returns a job whose table and Redis agree on n people.
func people(t *testing.T, db *testsupport.Database, o source.Options, n int) *lab {
	t.Helper()
	key := "id"
	db.Exec(t, "CREATE TABLE people (id bigint PRIMARY KEY, name varchar(60), pass bigint)")
	to := mapping.Spec{Table: "people", Key: []string{key}, Columns: map[string]mapping.ColumnSpec{"id": {}, "name": {}}}
	if o.Type == "scan" {
		to.Columns["pass"], to.Generation = mapping.ColumnSpec{From: "$generation"}, "pass"
	}
	l := newLab(t, db, o, to)
	for id := range n {
		l.do("HSET", fmt.Sprintf("user:%d", id), "name", fmt.Sprintf("name %d", id))
		if o.Changed != "" {
			l.do("SADD", o.Changed, id)
		}
	}
	l.do("SET", "user:text", "is no row")
	l.run()
	return l
}

var kinds = map[string]source.Options{
	"hashes":  {Type: "hashes", Key: "user:<id>", Changed: "changed"},
	"scan":    {Type: "scan", Key: "user:<id>", Value: "hash", Vanished: "delete", MaxPct: 100},
	"capture": {Type: "capture", Key: "user:<id>", Value: "hash", MaxPct: 100},
}

func TestPlantedDifferencesAreFoundAndRepaired(t *testing.T) {
	everywhere(t, func(t *testing.T, db *testsupport.Database) {
		for name, o := range kinds {
			t.Run(name, func(t *testing.T) {
				db.Exec(t, "DROP TABLE IF EXISTS people")
				l := people(t, db, o, 2500)
				l.wants("at first", l.verify(verify.Options{}), 2500, 0, 0, 0, 0)
				db.Exec(t, "DELETE FROM people WHERE id IN (3, 1400)")
				db.Exec(t, "UPDATE people SET name = 'Name 7' WHERE id = 7")
				db.Exec(t, "UPDATE people SET name = NULL WHERE id = 2000")
				db.Exec(t, "INSERT INTO people (id, name, pass) VALUES (9000, 'x', 1), (-1, 'y', 1)")
				idle := func(context.Context, time.Time) (bool, error) { return true, nil }
				r := l.verify(verify.Options{Flushed: idle})
				l.wants("planted", r, 2500, 2, 2, 2, 0)
				if len(r.Examples) != 6 || r.Rows != 2500 {
					t.Errorf("found %+v", r)
				}
				r = l.verify(verify.Options{Flushed: idle, Repair: true})
				l.wants("marked", r, 2500, 2, 2, 2, 0)
				l.run()
				l.wants("repaired", l.verify(verify.Options{Flushed: idle}), 2500, 0, 0, 0, 0)
			})
		}
	})
}

func TestWhatIsOnItsWayIsNoDifference(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 500)
	for id := range 50 {
		l.do("HSET", fmt.Sprintf("user:%d", id), "name", "new")
		l.do("HSET", fmt.Sprintf("user:1%03d", id), "name", "new")
		l.do("DEL", fmt.Sprintf("user:4%02d", id))
		l.do("SADD", "changed", id, fmt.Sprintf("1%03d", id), fmt.Sprintf("4%02d", id))
	}
	l.wants("on its way", l.verify(verify.Options{}), 500, 0, 0, 0, 0)

	moves := 0
	r := l.verify(verify.Options{Flushed: func(ctx context.Context, at time.Time) (bool, error) {
		_, err := l.flushed(ctx, at)
		moves++
		l.do("HSET", "user:7", "name", fmt.Sprint("moved ", moves))
		l.do("SADD", "changed", 7)
		return true, err
	}})
	l.wants("nothing differs, so nothing is waited for", r, 500, 0, 0, 0, 0)
	l.do("HSET", "user:7", "name", "moves")
	r = l.verify(verify.Options{Flushed: func(ctx context.Context, at time.Time) (bool, error) {
		_, err := l.flushed(ctx, at)
		moves++
		l.do("HSET", "user:7", "name", fmt.Sprint("moved ", moves))
		return true, err
	}})
	if r.Moving != 1 || r.Differences() != 0 {
		t.Errorf("a record that never rests: %+v", r)
	}
}

func TestRecordsThatDoNotFitAreCounted(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 10)
	l.do("HSET", "user:Ann", "name", "Ann")
	r := l.verify(verify.Options{})
	l.wants("unfit", r, 11, 0, 0, 0, 1)
	if len(r.Examples) != 1 || r.Examples[0].Key != "user:Ann" || !strings.Contains(r.Examples[0].Why, `column "id"`) {
		t.Errorf("shown as %+v", r.Examples)
	}
}

// Both sides choose the same keys, so a sample finds no false differences.
func TestASampleIsTheSameOnBothSides(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 5000)
	r := l.verify(verify.Options{Sample: 0.1})
	if r.Differences() != 0 || r.Records != r.Rows || math.Abs(float64(r.Records)-500) > 120 {
		t.Errorf("a tenth of 5000: %+v", r)
	}
}

// A row has 7 and its key has 007, so the key cannot be found by the row. That is no reason to delete the row.
func TestARowThatSpellsItsKeyInAnotherWayStays(t *testing.T) {
	t.Parallel()
	const id = "6BA7B810-9DAD-11D1-80B4-00C04FD430C8"
	for name, o := range kinds {
		db := testsupport.SQLite(t)
		db.Exec(t, "CREATE TABLE people (id UUID PRIMARY KEY, name varchar(60), pass bigint)")
		to := mapping.Spec{Table: "people", Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{"id": {}, "name": {}}}
		if name == "scan" {
			to.Columns["pass"], to.Generation = mapping.ColumnSpec{From: "$generation"}, "pass"
		}
		l := newLab(t, db, o, to)
		l.do("HSET", "user:"+strings.ToLower(id), "name", "small")
		other := strings.Replace(id, "6", "7", 1)
		l.do("HSET", "user:"+other, "name", "capital")
		if o.Changed != "" {
			l.do("SADD", o.Changed, strings.ToLower(id), other)
		}
		l.run()
		r := l.verify(verify.Options{Repair: true, Sample: 0.999})
		if name == "capture" { // it would delete the row after its next pass
			l.wants(name, r, 2, 0, 0, 0, 1)
			continue
		}
		l.wants(name, r, 2, 0, 0, 0, 0)
		if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], other) {
			t.Errorf("%s: noted %q", name, r.Notes)
		}
		l.run()
		l.wants(name+", repaired", l.verify(verify.Options{}), 2, 0, 0, 0, 0)
	}
}

// The next leader continues after exactly that row, for keys with any bytes.
func TestAPlaceInATableKeepsEveryByte(t *testing.T) {
	t.Parallel()
	was := verify.State{Table: true, Behind: verify.Texts{"\x00\xff\xfe", "", "ä"}}
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	var is verify.State
	if err := json.Unmarshal(text, &is); err != nil || !slices.Equal(is.Behind, was.Behind) {
		t.Errorf("%q becomes %q, %v", was.Behind, is.Behind, err)
	}
}

func TestAComparisonGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 6000)
	l.db.Exec(t, "DELETE FROM people WHERE id IN (1, 2, 5000)")
	l.db.Exec(t, "INSERT INTO people (id) VALUES (9001), (9002)")
	stop := errors.New("the term has ended")
	var states []verify.State
	o := verify.Options{Flushed: func(context.Context, time.Time) (bool, error) { return true, nil }, Progress: func(s verify.State) error {
		states = append(states, s)
		return stop
	}}
	state, parts := verify.State{}, 0
	for {
		c, err := verify.New(t.Context(), l.config, l.keys, o)
		if err != nil {
			t.Fatal(err)
		}
		state, err = c.Run(t.Context(), state)
		if err == nil {
			break
		}
		last := states[len(states)-1]
		stuck := false
		if len(states) > 1 {
			before := states[len(states)-2]
			stuck = last.Place == before.Place && fmt.Sprint(last.Behind) == fmt.Sprint(before.Behind)
		}
		if !errors.Is(err, stop) || stuck {
			// The unsettled part is repeated, so the test lets it be settled.
			if len(states) > 100 {
				t.Fatalf("it comes no further than %+v: %v", last, err)
			}
			o.Progress = func(s verify.State) error {
				states = append(states, s)
				if s.Place != last.Place || s.Table != last.Table || fmt.Sprint(s.Behind) != fmt.Sprint(last.Behind) {
					return stop
				}
				return nil
			}
		}
		parts++
	}
	if parts < 4 || state.Result.Missing != 3 || state.Result.Extra != 2 || state.Part != 1 {
		t.Errorf("after %d parts: %+v", parts, state)
	}
}
