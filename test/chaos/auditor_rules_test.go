package chaos

import (
	"context"
	"strings"
	"testing"

	"baton/internal/testsupport"
)

// tables answers the auditor's questions.
type tables map[string][][]string

func (t tables) Query(_ context.Context, query string, _ ...any) ([][]string, error) {
	for name, rows := range t {
		if strings.HasSuffix(query, " FROM "+name) {
			return rows, nil
		}
	}
	return nil, nil
}

func TestAuditorFindsWhatIsLostAndWhatIsDoubled(t *testing.T) {
	want := newState()
	want.count("articles", "a", 5)
	want.count("articles", "b", 7)
	want.put("users", "u", row{"U", "3", "u@example.com"})
	want.put("users", "v", row{"V", "4", ""})
	want.put("users", "gone", row{"G", "1", ""})
	want.drop("users", "gone")
	articles := [][]string{{"a", "5"}, {"b", "7"}}
	users := [][]string{{"u", "U", "3", "u@example.com"}, {"v", "V", "4", testsupport.NULL}}

	for _, c := range []struct {
		name         string
		tables       tables
		lost, double int64
		keys         string
	}{
		{"all is well", tables{"articles": articles, "users": users}, 0, 0, ""},
		{"an increment is missing", tables{"articles": {{"a", "4"}, {"b", "7"}}, "users": users}, 1, 0, "a"},
		{"an increment came twice", tables{"articles": {{"a", "10"}, {"b", "7"}}, "users": users}, 0, 5, "a"},
		{"a counter is missing", tables{"articles": {{"a", "5"}}, "users": users}, 7, 0, "b"},
		{"a counter of nobody's", tables{"articles": append(articles[:2:2], []string{"z", "2"}), "users": users}, 0, 2, "z"},
		{"a row is missing", tables{"articles": articles, "users": users[:1]}, 1, 0, "v"},
		{"an older version", tables{"articles": articles, "users": {users[0], {"v", "V", "3", testsupport.NULL}}}, 1, 0, "v"},
		{"a field that should be gone", tables{"articles": articles, "users": {users[0], {"v", "V", "4", "old@example.com"}}}, 1, 0, "v"},
		{"a dropped row is there", tables{"articles": articles, "users": append(users[:2:2], []string{"gone", "G", "1", testsupport.NULL})}, 1, 0, "gone"},
		{"a dead letter", tables{"articles": articles, "users": users, "baton_dead_letter": {{"users", "d", "does not fit"}}}, 1, 0, "d"},
	} {
		v, err := audit(t.Context(), c.tables, want)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, f := range v.findings {
			keys = append(keys, f.id)
		}
		if v.lost != c.lost || v.double != c.double || strings.Join(keys, " ") != c.keys {
			t.Errorf("%s: %d lost, %d doubled at %v; want %d, %d at %q", c.name, v.lost, v.double, keys, c.lost, c.double, c.keys)
		}
	}
}
