package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/source/staging"
	"baton/internal/redisledger"
)

// What sources of each type have staged is found again by its key alone, wherever that is.
func TestStagesThatAreLeftAreFoundInACluster(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	l := staging.NewStages(g.store, redisledger.NewLedger(g.store, redisledger.LedgerOptions{LockKey: "baton"}))
	var sources []flush.Source
	add := func(s flush.Source, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, s)
	}
	add(NewCounters(g.store, CountersOptions{Job: "views", Key: "views", Inputs: []string{"$field", "$value"}}))
	add(NewHashes(g.store, IndexedOptions{Job: "users", Key: "user:<id>", Changed: "changed:user", Inputs: []string{"id"}}))
	add(NewList(g.store, ListOptions{Job: "orders", Key: "orders", Inputs: []string{"$value"}}))
	add(NewPlainCounters(g.store, PlainCountersOptions{Job: "hits", Key: "{hits}:<id>", Changed: "{hits}:changed",
		Inputs: []string{"id", "$value"}}))
	add(NewTotals(g.store, TotalsOptions{Job: "totals", Key: "totals", Inputs: []string{"$field", "$value"}}))
	keys := staging.StagedKeys(sources)
	if want := []string{"views", "changed:user", "orders", "{hits}:changed"}; !slices.Equal(keys, want) {
		t.Fatalf("they stage beside %q, want %q", keys, want)
	}
	g.do("HSET", "views", "1", "10", "2", "20")
	g.do("SADD", "changed:user", "1", "2", "3")
	g.do("RPUSH", "orders", "{}")
	for i := range 4 {
		g.do("INCRBY", "{hits}:"+strconv.Itoa(i), 1)
		g.do("SADD", "{hits}:changed", i)
	}
	for i, s := range sources[:4] {
		if _, ok, err := s.Stage(t.Context(), fmt.Sprint("batch", i), ""); !ok || err != nil {
			t.Fatalf("stage: %v, %v", ok, err)
		}
	}
	noted := map[string]string{"never": "gone"}
	for _, key := range keys {
		noted[key] = "somebody"
	}
	if err := l.NoteStages(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	left, err := l.Left(t.Context(), map[string]string{"orders": "orders"})
	if want := "[{changed:user users batch1 3} {never gone  0} {views views batch0 2} {{hits}:changed hits batch3 4}]"; err != nil ||
		fmt.Sprint(left) != want {
		t.Fatalf("left are %v, %v; want %s", left, err, want)
	}
	for _, s := range left {
		other := s
		other.ID = "another"
		if err := l.Drop(t.Context(), other); !errors.Is(err, staging.ErrStageChanged) {
			t.Errorf("dropping another batch of %q: %v", s.Key, err)
		}
		if err := l.Drop(t.Context(), s); err != nil {
			t.Error(err)
		}
	}
	for i, s := range sources[:4] {
		n, err := flush.Backlog(t.Context(), []flush.Source{s})
		if want := []int64{0, 0, 1, 0}[i]; n != want || err != nil {
			t.Errorf("%d changes of %q wait, %v; want %d", n, keys[i], err, want)
		}
	}
	if left, err := l.Left(t.Context(), nil); err != nil || len(left) != 1 || left[0].Key != "orders" {
		t.Errorf("after that: %v, %v", left, err)
	}
}
