package demo

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// flushed returns a database into which all writes were flushed correctly, and the expected content.
func flushed(t *testing.T) (*database, *expected) {
	t.Helper()
	d, err := openDatabase(t.Context(), "", t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.DB.Close() })
	e := newExpected()
	e.add(batch{
		counts: []string{"1", "1", "1", "2", "20"},
		changes: []change{
			{1, user{name: "Ada", note: "first", version: 1}},
			{2, user{name: names()[7], note: "", version: 2}},
			{3, user{name: "gone", note: "soon", version: 3}},
		},
	}, time.Now())
	e.add(batch{changes: []change{{3, user{version: 4, deleted: true}}}}, time.Now())
	for _, text := range []string{
		"INSERT INTO articles VALUES ('1', 3), ('2', 1), ('20', 1)",
		fmt.Sprintf("INSERT INTO users VALUES (1, 'Ada', 'first', 1), (2, '%s', '', 2)", names()[7]),
	} {
		mustExec(t, d, text)
	}
	return d, e
}

func mustExec(t *testing.T, d *database, text string) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

func TestAuditFindsEveryKindOfDamage(t *testing.T) {
	for _, c := range []struct {
		name, damage     string
		lost, duplicated int64
		flushed          amount
		example          string
	}{
		{"none", "UPDATE users SET id = id", 0, 0, amount{5, 4}, ""},
		{"lost increments", "UPDATE articles SET views = 1 WHERE id = '1'", 2, 0, amount{3, 4}, "article 1: 3 increments written, 1 in the table"},
		{"lost counter", "DELETE FROM articles WHERE id = '2'", 1, 0, amount{4, 4}, "article 2: 1 increments written, 0 in the table"},
		{"doubled increments", "UPDATE articles SET views = 6 WHERE id = '1'", 0, 3, amount{8, 4}, "article 1: 3 increments written, 6 in the table"},
		{"loss and excess do not cancel out", "UPDATE articles SET views = 2", 1, 2, amount{6, 4}, "article 1"},
		{"counter nobody wrote", "INSERT INTO articles VALUES ('x', 2)", 0, 2, amount{7, 4}, "article x"},
		{"lost row", "DELETE FROM users WHERE id = 1", 1, 0, amount{5, 3}, "user 1: was written by change 1, but is not in the table"},
		{"stale row", "UPDATE users SET version = 0, name = 'Ad' WHERE id = 1", 1, 0, amount{5, 3}, "user 1: the table has change 0"},
		{"one wrong value", "UPDATE users SET note = 'First' WHERE id = 1", 1, 0, amount{5, 3}, `("Ada", "First")`},
		{"NULL for an empty text", "UPDATE users SET note = NULL WHERE id = 2", 1, 0, amount{5, 3}, "user 2"},
		{"row not deleted", "INSERT INTO users VALUES (3, 'gone', 'soon', 3)", 1, 0, amount{5, 3}, "user 3: was deleted by change 4, but is still in the table, from change 3"},
		{"row nobody wrote", "INSERT INTO users VALUES (9, 'who', '', 1)", 0, 1, amount{5, 4}, "user 9: was never written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, e := flushed(t)
			mustExec(t, d, c.damage)
			f, err := audit(t.Context(), d.DB, e)
			if err != nil {
				t.Fatal(err)
			}
			if f.lost != c.lost || f.duplicated != c.duplicated || f.flushed != c.flushed {
				t.Errorf("%+v", f)
			}
			if text := strings.Join(f.examples, "\n"); !strings.Contains(text, c.example) || (c.example == "") != (text == "") {
				t.Errorf("findings %q, want %q", text, c.example)
			}
		})
	}
}

func TestAuditOfAMissingTableIsAnErrorNotALoss(t *testing.T) {
	d, e := flushed(t)
	mustExec(t, d, "DROP TABLE users")
	if f, err := audit(t.Context(), d.DB, e); err == nil || !strings.Contains(err.Error(), "users") {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestGaugeTellsWhatWaits(t *testing.T) {
	d, e := flushed(t)
	g := newGauge(d, nil, e)
	e.history[0].at = time.Now().Add(-time.Minute)
	r, err := g.read(t.Context())
	if err != nil || r.waiting != (amount{}) || r.flushed != (amount{5, 4}) || r.lag != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	mustExec(t, d, "UPDATE articles SET views = 1 WHERE id = '1'")
	mustExec(t, d, "UPDATE users SET version = 0 WHERE id = 1")
	mustExec(t, d, "INSERT INTO users VALUES (3, 'gone', 'soon', 3)")
	e.add(batch{counts: []string{"2"}}, time.Now())
	r, err = g.read(t.Context())
	if err != nil || r.waiting != (amount{3, 2}) || r.flushed != (amount{3, 2}) {
		t.Errorf("%+v, %v", r, err)
	}
}
