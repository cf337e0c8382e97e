package poison_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// bad is one way in which a row is bad.
type bad struct {
	name   string
	field  string
	value  string
	reason map[string]string // by driver; "" stands for all others
}

func says(text string) map[string]string { return map[string]string{"": text} }

var ways = []bad{
	{"too long", "name", "eleven char", map[string]string{"": "10", "sqlite": "CHECK"}},
	{"not a number", "age", "unknown", says("age")},
	{"NaN", "price", "NaN", says("price")},
	{"out of range", "age", "40000", map[string]string{"": "age", "sqlite": "CHECK"}},
	{"beyond 64 bits", "age", "99999999999999999999", says("age")},
	{"invalid UTF-8", "name", "a\xffb", map[string]string{"": "UTF-8"}},
	{"NUL byte", "name", "a\x00b", says("NUL")},
	{"foreign key", "city", "99", map[string]string{"": "foreign key", "sqlite": "FOREIGN KEY"}},
	{"check", "age", "-1", map[string]string{"": "grown", "sqlite": "CHECK"}},
	{"a day that never was", "born", "2023-02-30", says("born")},
	{"broken JSON", "doc", `{"a":`, says("doc")},
	{"too many digits", "price", "123456789012345678.25", says("price")},
	{"nothing where something must be", "name", "", says("name")}, // the field is left out
	{"an empty number", "age", "", says("age")},
}

// entry is what is written to Redis for an id.
type entry struct {
	id     int
	fields map[string]string
	bad    *bad // nil for a good one
}

const (
	batchRows = 2000
	rowsEnv   = "BATON_TEST_POISON_ROWS" // how many rows there are
)

// rows are all rows, of which one in a hundred is bad.
func rows() []entry {
	n, err := strconv.Atoi(os.Getenv(rowsEnv))
	if err != nil {
		n = 2 * batchRows
	}
	out := make([]entry, n)
	for i := range out {
		r := entry{id: i, fields: map[string]string{
			"name": fmt.Sprint("n", i), "age": fmt.Sprint(i % 100), "price": fmt.Sprintf("%d.25", i), "born": "2024-02-29",
			"doc": `{"a":[1,2]}`, "city": fmt.Sprint(i%5 + 1),
		}}
		if i%100 == 37 {
			r.bad = &ways[i/100%len(ways)]
			r.fields[r.bad.field] = r.bad.value
			if r.bad.field == "name" && r.bad.value == "" {
				delete(r.fields, "name")
			}
		}
		out[i] = r
	}
	return out
}

// good is what the table has of the row.
func (r entry) good() string {
	return strings.Join([]string{fmt.Sprint(r.id), r.fields["name"], r.fields["age"], r.fields["city"]}, "|")
}

// item is the row as an item of a list. JSON has no invalid UTF-8: it is put in behind
// the encoder's back.
func (r entry) item() string {
	all := map[string]string{"id": fmt.Sprint(r.id)}
	for name, value := range r.fields {
		all[name] = strings.ReplaceAll(value, "\xff", "<ff>")
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(string(text), `\u003cff\u003e`, "\xff")
}

var tables = map[string]string{
	"postgres": `(id bigint PRIMARY KEY, name varchar(10) NOT NULL, age smallint NOT NULL CONSTRAINT grown CHECK (age >= 0),
		price numeric(10,2), born date, doc jsonb, city int REFERENCES city (id))`,
	"mysql": `(id bigint PRIMARY KEY, name varchar(10) NOT NULL, age smallint NOT NULL, price decimal(10,2), born date, doc json, city int,
		CONSTRAINT %s_grown CHECK (age >= 0), FOREIGN KEY (city) REFERENCES city (id))`,
	"sqlite": `(id INTEGER PRIMARY KEY, name varchar(10) NOT NULL CHECK (length(name) <= 10), age smallint NOT NULL CHECK (age BETWEEN 0 AND 32767),
		price numeric(10,2), born date, doc json, city int REFERENCES city (id))`,
}
