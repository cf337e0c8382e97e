package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/staging"
)

// peeked returns the texts of records, sorted.
func peeked(records []row.Record) string {
	var all []string
	for _, r := range records {
		var inputs []string
		for _, raw := range r.Inputs {
			inputs = append(inputs, raw.Text)
		}
		text := strings.Join(inputs, "=")
		if r.Gone {
			text += " gone"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// contents returns everything that a Redis has.
func (g *rig) contents() string {
	g.T.Helper()
	var all []string
	keys, err := g.Conn.Do("KEYS", "*")
	if err != nil {
		g.T.Fatal(err)
	}
	for _, key := range keys.([]any) {
		dump, err := g.Conn.Do("DUMP", key)
		if err != nil {
			g.T.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", key, dump))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestPeekShowsWhatIsStagedAndWhatIsPendingAndChangesNothing(t *testing.T) {
	g := newRig(t)
	counters, err := NewCounters(g.store, CountersOptions{Job: "j", Key: "views", Inputs: []string{"$field", "$value"}})
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := NewHashes(g.store, IndexedOptions{Job: "j", Key: "user:<id>", Changed: "changed", Inputs: []string{"id", "name"}})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := NewPlainCounters(g.store, PlainCountersOptions{Job: "j", Key: "hits:<page>", Changed: "marked",
		Inputs: []string{"page", "$value"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		source        flush.Peeker
		before, after func()
		want          string
	}{
		"counters": {counters, func() { g.Do("HSET", "views", "a", 1, "b", 2) }, func() { g.Do("HSET", "views", "a", 7) }, "a=1 a=7 b=2"},
		"hashes": {hashes, func() { g.Do("HSET", "user:1", "name", "Ann"); g.Do("SADD", "changed", "1", "2") },
			func() { g.Do("ZADD", "changed", 5, "1", 6, "3"); g.Do("HSET", "user:3", "name", "Cid") }, "1=Ann 2= gone 3=Cid"},
		"plain counters": {plain, func() { g.Do("SET", "hits:x", 4); g.Do("SADD", "marked", "x") },
			func() { g.Do("SET", "hits:y", 5); g.Do("SADD", "marked", "y", "z") }, "x=4 y=5"},
	} {
		if records, err := c.source.Peek(t.Context(), 10); err != nil || len(records) != 0 {
			t.Errorf("%s, nothing there: %v, %v", name, records, err)
		}
		c.before()
		if _, ok, err := c.source.Stage(t.Context(), "id-1", ""); err != nil || !ok {
			t.Fatal(ok, err)
		}
		c.after()
		before := g.contents()
		records, err := c.source.Peek(t.Context(), 10)
		if got := peeked(records); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
		if records, err = c.source.Peek(t.Context(), 1); err != nil || len(records) != 1 {
			t.Errorf("%s: one is %v, %v", name, records, err)
		}
		if g.contents() != before {
			t.Errorf("%s: looking has changed something", name)
		}
	}
	g.Do("DEL", "views", "changed")
	g.Do("SET", "views", "no hash")
	if _, err := counters.Peek(t.Context(), 10); !errors.Is(err, staging.ErrWrongType) {
		t.Errorf("a key of another type: %v", err)
	}
}

func TestPeekOfTotalsReadsNoMoreThanItIsAskedFor(t *testing.T) {
	g := newRig(t)
	totals, err := NewTotals(g.store, TotalsOptions{Job: "j", Key: "totals", Inputs: []string{"$field", "$value"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		g.Do("HSET", "totals", i, i)
	}
	if records, err := totals.Peek(t.Context(), 7); err != nil || len(records) != 7 {
		t.Errorf("%d records, %v", len(records), err)
	}
}
