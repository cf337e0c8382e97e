package mapping

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"baton/internal/flush/row"
)

// mapped compiles a table with key columns k0, k1 ... of these kinds, a sum n and a text s.
func mapped(t rapid.TB, sum row.Column, inputs row.Inputs, keys ...row.Column) *Mapping {
	spec := Spec{Table: "t", Columns: map[string]ColumnSpec{"s": {From: "s"}, "n": {From: "n"}}}
	if inputs.Guarantee.Once() {
		spec.Columns["n"] = ColumnSpec{From: "n", Op: "add"}
	}
	inputs.Names = []string{"s", "n"}
	table := row.Table{Name: "t"}
	for i, k := range keys {
		k.Name = fmt.Sprint("k", i)
		table.Columns = append(table.Columns, k)
		spec.Key = append(spec.Key, k.Name)
		spec.Columns[k.Name] = ColumnSpec{}
		inputs.Names = append(inputs.Names, k.Name)
	}
	sum.Name = "n"
	table.Columns = append(table.Columns, sum, row.Column{Name: "s", Kind: row.KindText, Nullable: true})
	table.Unique = [][]string{spec.Key}
	m, err := Compile(spec, table, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// written is the result of converting records.
type written struct {
	Rows []row.Row
	Dead []row.DeadLetter
}

// converted converts records into a space that another page has used before.
func converted(m *Mapping, gone OnMissing, records ...row.Record) (w written) {
	var s Space
	for range len(records) + 1 {
		for range m.columns {
			s.values = append(s.values, row.String(row.KindText, "of another page"))
		}
		other := row.Row{Values: s.values, Delete: true, Replace: true, Record: row.Record{Key: "of another page"}}
		s.rows, s.sorted = append(s.rows, other), append(s.sorted, other)
		s.places, s.more = append(s.places, row.Ranked{Rank: 7, At: 9}), append(s.more, row.Ranked{Rank: 8, At: 9})
	}
	w.Rows, w.Dead = m.Rows(records, gone, &s)
	return w
}

// recordOf returns a record with the inputs k0, k1, ..., n, s.
func recordOf(texts ...string) row.Record {
	r := row.Record{Key: texts[0]}
	for _, text := range texts {
		r.Inputs = append(r.Inputs, row.Raw{Text: text, OK: true})
	}
	return r
}

func TestRowsAreUniqueAndInTheOrderOfTheirKeys(t *testing.T) {
	big := row.Column{Kind: row.KindInteger, Bits: 64}
	for _, c := range []struct {
		name string
		keys []row.Column
		in   [][]string
		want string // the keys in order, with the last text of each
	}{
		{"integers in number order", []row.Column{big}, [][]string{{"10"}, {"9"}, {"-1"}, {"100"}}, "-1 9 10 100"},
		{"unsigned integers beyond signed ones", []row.Column{{Kind: row.KindInteger, Bits: 64, Unsigned: true}},
			[][]string{{"18446744073709551615"}, {"9223372036854775807"}, {"9223372036854775808"}, {"0"}},
			"0 9223372036854775807 9223372036854775808 18446744073709551615"},
		{"numerics by worth", []row.Column{{Kind: row.KindNumeric}}, [][]string{{"10"}, {"9.5"}, {"-3"}, {"9.50"}, {"-20"}},
			"-20 -3 9.50 10"},
		{"texts in byte order", []row.Column{{Kind: row.KindText}}, [][]string{{"b"}, {"aaaaaaaab"}, {"aaaaaaaaa"}, {"ä"}, {"B"}},
			"B aaaaaaaaa aaaaaaaab b ä"},
		{"floats", []row.Column{{Kind: row.KindFloat}}, [][]string{{"1.5"}, {"-2"}, {"0"}, {"-0"}}, "-2 -0 1.5"},
		{"dates", []row.Column{{Kind: row.KindDate}}, [][]string{{"2024-01-01"}, {"1969-01-01"}}, "1969-01-01 2024-01-01"},
		{"timestamps of different offsets", []row.Column{{Kind: row.KindTimestamp}},
			[][]string{{"2024-01-01T02:00:00+02:00"}, {"2024-01-01T00:00:00Z"}, {"2023-01-01T00:00:00Z"}},
			"2023-01-01T00:00:00Z 2024-01-01T00:00:00Z"},
		{"two columns", []row.Column{{Kind: row.KindText}, big}, [][]string{{"b", "1"}, {"a", "2"}, {"a", "10"}, {"a", "2"}},
			"a/2 a/10 b/1"},
		{"UUIDs in canonical form", []row.Column{{Kind: row.KindUUID}}, [][]string{{"6BA7B810-9DAD-11D1-80B4-00C04FD430C8"},
			{"6ba7b8109dad11d180b400c04fd430c8"}}, "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mapped(t, big, row.Inputs{}, c.keys...)
			var records []row.Record
			for i, key := range c.in {
				records = append(records, recordOf(append(slices.Clone(key), strconv.Itoa(i), "")...))
			}
			b := converted(m, MissingDelete, records...)
			var got []string
			for _, row := range b.Rows {
				var parts []string
				for _, k := range m.plan.Key {
					_, text, _ := strings.Cut(display(row.Values[k]), " ")
					parts = append(parts, text)
				}
				got = append(got, strings.Join(parts, "/"))
			}
			if s := strings.Join(got, " "); s != c.want || len(b.Dead) != 0 {
				t.Errorf("got %q (dead: %v), want %q", s, b.Dead, c.want)
			}
		})
	}
}

func TestTheLastOfAKeyWins(t *testing.T) {
	m := mapped(t, row.Column{Kind: row.KindInteger}, row.Inputs{}, row.Column{Kind: row.KindInteger})
	gone := recordOf("1", "", "")
	gone.Gone = true
	set := func(s string) row.Record { return recordOf("1", "5", s) }
	for _, c := range []struct {
		name    string
		records []row.Record
		missing OnMissing
		want    string
	}{
		{"set, set", []row.Record{set("a"), set("b")}, MissingDelete, "b"},
		{"set, delete", []row.Record{set("a"), gone}, MissingDelete, "deleted"},
		{"delete, set", []row.Record{gone, set("b")}, MissingDelete, "b"},
		{"set, ignored", []row.Record{set("a"), gone}, MissingIgnore, "a"},
		{"set, made null", []row.Record{set("a"), gone}, MissingNull, ""},
	} {
		b := converted(m, c.missing, c.records...)
		if len(b.Rows) != 1 || len(b.Dead) != 0 {
			t.Errorf("%s: %+v", c.name, b)
			continue
		}
		got := b.Rows[0].Values[2].Text()
		if b.Rows[0].Delete {
			got = "deleted"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestASumThatTheDatabaseRefusesIsOneRecord(t *testing.T) {
	m := mapped(t, row.Column{Kind: row.KindInteger}, row.Inputs{Guarantee: row.ByLedger}, row.Column{Kind: row.KindInteger})
	first, second := recordOf("1", "40", "a"), recordOf("01", "2", "b")
	b := converted(m, MissingDelete, first, second)
	if len(b.Rows) != 1 {
		t.Fatalf("batch is %+v", b)
	}
	if got, want := row.RecordJSON(m.Inputs(), b.Rows[0].Record), `{"key":"01","k0":"01","n":"42","s":"b"}`; got != want {
		t.Errorf("record is %s, want %s: replaying it must add all that was merged", got, want)
	}
	if first.Inputs[1].Text != "40" || second.Inputs[1].Text != "2" {
		t.Error("merging changed the source's own record")
	}
}

func TestWhatOverflowsASumIsADeadLetterAndTheRestIsKept(t *testing.T) {
	m := mapped(t, row.Column{Kind: row.KindInteger}, row.Inputs{Guarantee: row.ByLedger}, row.Column{Kind: row.KindInteger})
	b := converted(m, MissingDelete,
		recordOf("1", strconv.Itoa(math.MaxInt64), "a"), recordOf("1", "1", "b"), recordOf("1", "-7", "c"),
	)
	if len(b.Rows) != 1 || b.Rows[0].Values[1].Int() != math.MaxInt64-7 || len(b.Dead) != 1 ||
		b.Dead[0].Record != `{"key":"1","k0":"1","n":"1","s":"b"}` ||
		!strings.Contains(b.Dead[0].Error, `column "n" (integer): 1 added to`) {
		t.Errorf("batch is %+v", b)
	}
}

func TestASumIsNeverDeleted(t *testing.T) {
	m := mapped(t, row.Column{Kind: row.KindInteger}, row.Inputs{Guarantee: row.ByLedger}, row.Column{Kind: row.KindInteger})
	gone := recordOf("1", "1", "")
	gone.Gone = true
	if b := converted(m, MissingDelete, gone); len(b.Rows) != 0 || len(b.Dead) != 1 {
		t.Errorf("batch is %+v", b)
	}
}

// TestCoalescingEqualsWritingOneByOne compares a batch with the result of writing its records to a table one by one.
func TestCoalescingEqualsWritingOneByOne(t *testing.T) {
	sums := []row.Column{{Kind: row.KindInteger}, {Kind: row.KindNumeric}, {Kind: row.KindFloat}}
	rapid.Check(t, func(t *rapid.T) {
		add := rapid.Bool().Draw(t, "add")
		sum := rapid.SampledFrom(sums).Draw(t, "sum")
		composite := rapid.Bool().Draw(t, "composite")
		keys := []row.Column{{Kind: row.KindInteger}}
		if composite {
			keys = append(keys, row.Column{Kind: row.KindText})
		}
		inputs := row.Inputs{}
		if add {
			inputs.Guarantee = row.ByLedger
		}
		m := mapped(t, sum, inputs, keys...)

		type state struct {
			sum  decimal.Decimal
			text string
		}
		want := map[string]state{} // no entry: deleted or never written
		touched := map[string]bool{}
		var records []row.Record
		for range rapid.IntRange(0, 40).Draw(t, "records") {
			id := rapid.IntRange(-3, 12).Draw(t, "id")
			key := []string{strconv.Itoa(id)}
			if composite {
				key = append(key, rapid.SampledFrom([]string{"", "a", "b", "aaaaaaaaa", "aaaaaaaab"}).Draw(t, "k1"))
			}
			n := rapid.IntRange(-1000, 1000).Draw(t, "n")
			s := rapid.StringMatching("[a-z]{0,3}").Draw(t, "s")
			r := recordOf(append(slices.Clone(key), strconv.Itoa(n), s)...)
			r.Gone = !add && rapid.IntRange(0, 4).Draw(t, "gone") == 0
			records = append(records, r)

			name := strings.Join(key, "/")
			touched[name] = true
			delta := decimal.NewFromInt(int64(n))
			switch old := want[name]; {
			case r.Gone:
				delete(want, name)
			case add:
				want[name] = state{old.sum.Add(delta), s}
			default:
				want[name] = state{delta, s}
			}
		}
		b := converted(m, MissingDelete, records...)
		if len(b.Dead) > 0 {
			t.Fatalf("dead letters: %v", b.Dead)
		}
		if len(b.Rows) != len(touched) {
			t.Fatalf("%d rows for %d keys", len(b.Rows), len(touched))
		}
		for i, got := range b.Rows {
			if i > 0 && m.Plan().CompareKeys(&b.Rows[i-1], &b.Rows[i]) >= 0 {
				t.Fatalf("row %d is out of order", i)
			}
			name := got.Values[0].NumberText()
			if composite {
				name += "/" + got.Values[1].Text()
			}
			n, s := got.Values[len(keys)], got.Values[len(keys)+1]
			expected, there := want[name]
			if got.Delete == there {
				t.Fatalf("%s: delete is %v", name, got.Delete)
			}
			if there && (decimal.RequireFromString(n.NumberText()).Cmp(expected.sum) != 0 || s.Text() != expected.text) {
				t.Fatalf("%s is %s %s, want %v", name, display(n), display(s), expected)
			}
		}
	})
}
