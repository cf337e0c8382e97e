package mapping

import (
	"slices"
	"strings"
	"testing"

	"baton/internal/flush/row"
)

var (
	counterInputs = row.Inputs{Names: []string{row.InputField, row.InputValue}, Guarantee: row.ByLedger}
	hashInputs    = row.Inputs{Names: []string{"id"}, Fields: true}
)

func articles() row.Table {
	return row.Table{
		Name: "articles",
		Columns: []row.Column{
			{Name: "id", Kind: row.KindInteger, DBType: "bigint", Bits: 64},
			{Name: "views", Kind: row.KindInteger, DBType: "bigint", Bits: 64},
			{Name: "title", Kind: row.KindText, DBType: "text", Nullable: true},
			{Name: "score", Kind: row.KindFloat, DBType: "real", Bits: 32, Nullable: true},
			{Name: "created", Kind: row.KindTimestamp, DBType: "timestamptz", Default: true},
			{Name: "slug", Kind: row.KindText, DBType: "text", Nullable: true, Generated: true},
			{Name: "net", Kind: row.KindOther, DBType: "inet", Nullable: true},
			{Name: "serial", Kind: row.KindInteger, DBType: "bigint", Bits: 64, Default: true, Generated: true,
				Allow: "ALTER TABLE articles"},
		},
		Unique: [][]string{{"id"}, {"title", "id"}},
	}
}

func views() Spec {
	return Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{
		"id": {From: row.InputField}, "views": {From: row.InputValue},
	}}
}

func TestCountersAddTheirValueByDefault(t *testing.T) {
	m, err := Compile(views(), articles(), counterInputs)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Inputs(); !slices.Equal(got, []string{row.InputField, row.InputValue}) {
		t.Errorf("inputs are %q", got)
	}
	p := m.Plan()
	if len(p.Columns) != 2 || p.Columns[0].Op != row.OpSet || p.Columns[1].Op != row.OpAdd || !slices.Equal(p.Key, []int{0}) ||
		p.Table.Name != "articles" {
		t.Errorf("plan is %+v", p)
	}
	row, err := m.Row(row.Record{Key: "7", Inputs: []row.Raw{{Text: "7", OK: true}, {Text: "-3", OK: true}}})
	if err != nil || display(row.Values[0]) != "integer 7" || display(row.Values[1]) != "integer -3" || row.Record.Key != "7" {
		t.Errorf("row is %+v, %v", row, err)
	}
}

func TestColumnsLeftOutMatchByName(t *testing.T) {
	m, err := Compile(Spec{Table: "articles", Key: []string{"id"}}, articles(), hashInputs)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Inputs(), []string{"id", "views", "title", "score", "created", "net"}; !slices.Equal(got, want) {
		t.Errorf("inputs are %q, want %q: every column that can be written", got, want)
	}
	row, err := m.Row(row.Record{Key: "7", Inputs: []row.Raw{{Text: "7", OK: true}, {Text: "1", OK: true}, {}, {Text: "0.5", OK: true},
		{Text: "2024-01-02T03:04:05Z", OK: true}, {Text: "10.0.0.1", OK: true}}})
	if err != nil || !row.Values[2].IsNull() || row.Values[3].Float() != 0.5 || display(row.Values[5]) != "other 10.0.0.1" {
		t.Errorf("row is %+v, %v", row, err)
	}
}

// "ada" and "Ada" are two keys of Redis. If they were one row, each would silently overwrite the other.
func TestKeyThatEquatesDifferentTextsIsRefused(t *testing.T) {
	words := row.Table{Name: "words", Unique: [][]string{{"word"}}, Columns: []row.Column{
		{Name: "word", Kind: row.KindText, Folds: "the type citext", Exact: "ALTER TABLE words ..."},
		{Name: "note", Kind: row.KindText, Nullable: true, Folds: "the type citext"},
	}}
	for name, spec := range map[string]Spec{
		"key":        {Table: "words", Key: []string{"word"}},
		"dedupe_key": {Table: "words", Mode: ModeInsert, DedupeKey: []string{"word"}},
	} {
		_, err := Compile(spec, words, hashInputs)
		for _, want := range []string{`column "word"`, "`" + name + "`", "the type citext", "ALTER TABLE words"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", name, err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "note") {
			t.Errorf("%s: a column that is no key is refused: %v", name, err)
		}
	}
	if _, err := Compile(Spec{Table: "words", Mode: ModeInsert}, words, row.Inputs{Fields: true, Guarantee: row.ByLedger}); err != nil {
		t.Errorf("without a key: %v", err)
	}
}

func TestOneInputMayFeedSeveralColumns(t *testing.T) {
	m, err := Compile(Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{
		"id": {}, "views": {From: "id"}, "title": {From: "name"},
	}}, articles(), hashInputs)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Inputs(); !slices.Equal(got, []string{"id", "name"}) {
		t.Errorf("inputs are %q", got)
	}
}

func TestMissingAndEmpty(t *testing.T) {
	spec := func(title ColumnSpec, views ColumnSpec) Spec {
		return Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{"id": {}, "title": title, "views": views}}
	}
	for _, c := range []struct {
		name         string
		title, views ColumnSpec
		raws         []row.Raw // id, views, title
		want         string
	}{
		{"nullable column: missing is NULL", ColumnSpec{}, ColumnSpec{}, []row.Raw{{Text: "1", OK: true}, {Text: "2", OK: true}, {}},
			"integer 1, integer 2, NULL"},
		{"nullable column: error if so asked", ColumnSpec{Missing: "error"}, ColumnSpec{},
			[]row.Raw{{Text: "1", OK: true}, {Text: "2", OK: true}, {}}, `column "title" (text): the source has no such field`},
		{"NOT NULL column: missing is an error", ColumnSpec{}, ColumnSpec{}, []row.Raw{{Text: "1", OK: true}, {}, {Text: "x", OK: true}},
			`column "views" (integer): the source has no such field`},
		{"empty text stays empty", ColumnSpec{}, ColumnSpec{}, []row.Raw{{Text: "1", OK: true}, {Text: "2", OK: true},
			{Text: "", OK: true}}, "integer 1, integer 2, text "},
		{"empty text is NULL if so asked", ColumnSpec{Empty: "null"}, ColumnSpec{},
			[]row.Raw{{Text: "1", OK: true}, {Text: "2", OK: true}, {Text: "", OK: true}}, "integer 1, integer 2, NULL"},
		{"empty text is no number", ColumnSpec{}, ColumnSpec{}, []row.Raw{{Text: "1", OK: true}, {Text: "", OK: true},
			{Text: "x", OK: true}}, `column "views" (integer): "" is not a whole number in decimal digits; ` +
			"`empty: \"null\"` would make it NULL"},
		{"missing key is an error", ColumnSpec{}, ColumnSpec{}, []row.Raw{{}, {Text: "2", OK: true}, {}},
			`column "id" (integer): the source has no such field`},
		{"input of another name is named", ColumnSpec{From: "name", Type: "uuid"}, ColumnSpec{},
			[]row.Raw{{Text: "1", OK: true}, {Text: "2", OK: true}, {Text: "x", OK: true}},
			`column "title" (uuid) from name: "x" is not a UUID`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Compile(spec(c.title, c.views), articles(), hashInputs)
			if err != nil {
				t.Fatal(err)
			}
			row, err := m.Row(row.Record{Key: "1", Inputs: c.raws})
			var shows []string
			for _, v := range row.Values {
				shows = append(shows, display(v))
			}
			got := strings.Join(shows, ", ")
			if err != nil {
				got = err.Error()
			}
			if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// An item {} of a list, or one whose members have other names, must not become a row of NULLs.
func TestARecordThatGivesNoColumnAValueIsNoRow(t *testing.T) {
	items := row.Inputs{Fields: true, Guarantee: row.ByLedger}
	table := row.Table{Name: "events", Columns: []row.Column{
		{Name: "id", Kind: row.KindInteger, Bits: 64, Nullable: true}, {Name: "name", Kind: row.KindText, Nullable: true},
	}}
	m, err := Compile(Spec{Table: "events"}, table, items)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Row(row.Record{Inputs: []row.Raw{{}, {}}}); err == nil || !strings.Contains(err.Error(), "none of the fields id, name") {
		t.Errorf("an empty record: %v", err)
	}
	if row, err := m.Row(row.Record{Inputs: []row.Raw{{}, {Text: "", OK: true}}}); err != nil || !row.Values[0].IsNull() {
		t.Errorf("a record with a value: %+v, %v", row, err)
	}
}

func TestAddingNothingIsAddingZero(t *testing.T) {
	spec := views()
	spec.Columns["score"] = ColumnSpec{From: "bonus", Op: "add"}
	inputs := counterInputs
	inputs.Names = append(slices.Clone(inputs.Names), "bonus")
	m, err := Compile(spec, articles(), inputs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Row(row.Record{Inputs: []row.Raw{{Text: "1", OK: true}, {Text: "2", OK: true}, {}}})
	if err != nil || got.Values[2].Kind() != row.KindFloat || got.Values[2].Float() != 0 {
		t.Errorf("row is %+v, %v: NULL would make the sum NULL", got, err)
	}
}

func TestCompileNamesEveryProblemAndItsRemedy(t *testing.T) {
	column := func(name string, s ColumnSpec) func(*Spec) {
		return func(m *Spec) { m.Columns[name] = s }
	}
	for _, c := range []struct {
		name   string
		inputs row.Inputs
		change func(*Spec)
		want   []string
	}{
		{"missing column", counterInputs, column("viewz", ColumnSpec{From: row.InputValue}),
			[]string{`table "articles": column "viewz" does not exist: correct`, "(it has id, views, title"}},
		{"generated column", counterInputs, column("slug", ColumnSpec{From: row.InputField}),
			[]string{`column "slug" is generated by the database`, "remove it from"}},
		{"identity", counterInputs, func(m *Spec) { m.Columns["serial"] = ColumnSpec{From: row.InputField} },
			[]string{`column "serial" is GENERATED ALWAYS AS IDENTITY`, "remove it from `columns`, or ALTER TABLE articles"}},
		{"identity of the key", counterInputs,
			func(m *Spec) {
				m.Key, m.Columns = []string{"serial"}, map[string]ColumnSpec{"serial": {From: row.InputField}}
			},
			[]string{"column \"serial\" of `key` is GENERATED ALWAYS AS IDENTITY", "from Redis: ALTER TABLE articles"}},
		{"identity of the key, by name", hashInputs, func(m *Spec) { m.Key, m.Columns = []string{"serial"}, nil },
			[]string{"column \"serial\" of `key` is GENERATED ALWAYS AS IDENTITY", "from Redis: ALTER TABLE articles"}},
		{"computed key", hashInputs, func(m *Spec) { m.Key, m.Columns = []string{"slug"}, nil },
			[]string{"column \"slug\" of `key` is computed by the database", "name another key"}},
		{"unknown input", counterInputs, column("title", ColumnSpec{From: "name"}),
			[]string{`column "title" is made from "name", which this source does not have: it has $field, $value`}},
		{"unknown input of a hash", hashInputs, column("title", ColumnSpec{From: "$name"}),
			[]string{`"$name"`, "id and the fields of the hash"}},
		{"input that there is none of for a reason",
			row.Inputs{Names: []string{"$member"}, Lacks: map[string]string{"$rank": "make a view"}},
			column("title", ColumnSpec{From: "$rank"}),
			[]string{`"title" is made from "$rank", which this source does not have: make a view`}},
		{"no key", counterInputs, func(m *Spec) { m.Key = nil }, []string{"no `key` is given", "[id], [title, id]"}},
		{"key does not exist", counterInputs, func(m *Spec) { m.Key = []string{"nr"} },
			[]string{`column "nr" of ` + "`key` does not exist"}},
		{"key twice", counterInputs, func(m *Spec) { m.Key = []string{"id", "id"} }, []string{"named twice"}},
		{"key not mapped", counterInputs, func(m *Spec) { delete(m.Columns, "id") },
			[]string{`column "id" of ` + "`key` is not mapped: add it to `columns`, made from one of $field, $value"}},
		{"key not unique", counterInputs, func(m *Spec) { m.Key = []string{"views", "id"} },
			[]string{"no unique index has exactly the columns of `key` (views, id)", "[id], [title, id]",
				"create a unique index on (views, id)"}},
		{"NOT NULL column not mapped", counterInputs, func(m *Spec) { delete(m.Columns, "views") },
			[]string{`column "views" is NOT NULL, has no default and is not mapped`}},
		{"counts thrown away", counterInputs, column("views", ColumnSpec{From: row.InputField}),
			[]string{"no column receives $value, so the counts would be lost"}},
		{"unknown op", counterInputs, column("views", ColumnSpec{From: row.InputValue, Op: "sum"}),
			[]string{`column "views" has the unknown op "sum": use set or add`}},
		{"add to a text", counterInputs, column("title", ColumnSpec{From: row.InputValue, Op: "add"}),
			[]string{`column "title" is a text (text) and cannot be added to`}},
		{"add to the key", counterInputs, column("id", ColumnSpec{From: row.InputField, Op: "add"}),
			[]string{`column "id" is part of the key and cannot be added to`}},
		{"add what is a state", hashInputs, column("views", ColumnSpec{From: "n", Op: "add"}),
			[]string{`column "views" has ` + "`op: add`, but this source delivers present values"}},
		{"add as another type", counterInputs, column("views", ColumnSpec{From: row.InputValue, Type: "boolean"}),
			[]string{"an increment must have the type of the column (integer)"}},
		{"unknown type", counterInputs, column("title", ColumnSpec{From: row.InputField, Type: "string"}),
			[]string{`column "title" has the unknown type "string": use one of integer, float`}},
		{"type that cannot be stored", counterInputs, column("title", ColumnSpec{From: row.InputField, Type: "bytes"}),
			[]string{`column "title" is a text (text) and cannot hold a bytes`}},
		{"format of a text", counterInputs, column("title", ColumnSpec{From: row.InputField, Format: "unix"}),
			[]string{`column "title" is a text, which has no format`}},
		{"format that is none", counterInputs, column("created", ColumnSpec{From: row.InputField, Format: "YYYY"}),
			[]string{`column "created" has a wrong format: format "YYYY" is not a layout`}},
		{"keep in the key", hashInputs, column("id", ColumnSpec{From: "id", Missing: "keep"}), []string{`column "id" is part of the key`}},
		{"missing: what", counterInputs, column("title", ColumnSpec{From: row.InputField, Missing: "drop"}),
			[]string{"unknown value `missing: drop`"}},
		{"empty: what", counterInputs, column("title", ColumnSpec{From: row.InputField, Empty: "0"}), []string{"unknown value `empty: 0`"}},
		{"null into NOT NULL", hashInputs, column("views", ColumnSpec{From: "n", Missing: "null"}), []string{`column "views" is NOT NULL`}},
		{"null into the key", hashInputs, column("id", ColumnSpec{From: "id", Empty: "null"}),
			[]string{`column "id" is part of the key, which must not be NULL`}},
		{"several at once", counterInputs, func(m *Spec) {
			m.Columns["viewz"], m.Columns["title"], m.Key = ColumnSpec{}, ColumnSpec{From: "x"}, []string{"views"}
		}, []string{`"viewz"`, `"views" is part of the key`, `"title"`, "no unique index"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := views()
			if c.inputs.Fields {
				spec.Columns = map[string]ColumnSpec{"id": {}, "views": {}}
			}
			c.change(&spec)
			_, err := Compile(spec, articles(), c.inputs)
			if err == nil {
				t.Fatal("it compiled")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error lacks %q:\n%v", part, err)
				}
			}
			if strings.Contains(err.Error(), "%!") {
				t.Errorf("error is misprinted: %v", err)
			}
			if n := len(c.want); c.name == "several at once" && strings.Count(err.Error(), "\n") != n-1 {
				t.Errorf("want %d problems:\n%v", n, err)
			}
		})
	}
}

func TestOnMissingMustSuitTheTable(t *testing.T) {
	byField := Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{"id": {From: "number"}, "views": {}}}
	byName := Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{"id": {}, "views": {}}}
	nullable := Spec{Table: "articles", Key: []string{"id"}, Columns: map[string]ColumnSpec{"id": {}, "title": {}}}
	table := articles()
	table.Columns[1].Default = true
	for _, c := range []struct {
		spec   Spec
		choice OnMissing
		want   string
	}{
		{byName, MissingDelete, ""},
		{byName, MissingIgnore, ""},
		{byField, MissingIgnore, ""},
		{nullable, MissingNull, ""},
		{byField, MissingDelete, `column "id" of ` + "`key` is made from \"number\", so baton cannot find the row"},
		{byName, MissingNull, `column "views" is NOT NULL, but ` + "`on_missing: null`"},
		{byName, "drop", `on_missing: "drop" is unknown`},
	} {
		m, err := Compile(c.spec, table, hashInputs)
		if err != nil {
			t.Fatal(err)
		}
		err = c.choice.Check(m)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("on_missing %q: %v, want %q", c.choice, err, c.want)
		}
	}
}

// display formats a value with its kind and content, for comparisons.
func display(v row.Value) string {
	text, ok := v.Show()
	if !ok {
		return "NULL"
	}
	return v.Kind().String() + " " + text
}
