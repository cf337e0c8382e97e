package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
)

// A stage of any type of source is found by its key alone, on any node.
func TestStagesThatAreLeftAreFoundInACluster(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	lock := openStore(t, testsupport.StartRedis(t).URL())
	stores := map[string]*redisconn.Store{"": lock, "shop": g.store}
	l := staging.NewStages(func() map[string]*redisconn.Store { return stores },
		redisledger.NewLedger(lock, redisledger.LedgerOptions{LockKey: "baton"}))
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
	noted := map[staging.Location]string{{Key: "views"}: "plain", {Key: "\x00odd"}: "odd", {Store: "closed", Key: "k"}: "old"}
	for _, key := range append(keys, "never") {
		noted[staging.Location{Store: "shop", Key: key}] = "somebody"
	}
	if err := l.Note(t.Context(), noted); err != nil {
		t.Fatal(err)
	}
	left, err := l.Left(t.Context(), map[staging.Location]string{{Store: "shop", Key: "orders"}: "orders"})
	var got []string
	for _, s := range left {
		got = append(got, fmt.Sprint(s.Location, " ", s.Job, " ", s.ID, " ", s.Records, " ", s.Unknown))
	}
	want := []string{
		`"\x00odd" odd  0 false`, `"views" plain  0 false`, `"k" in store "closed" old  0 true`,
		`"changed:user" in store "shop" users batch1 3 false`, `"never" in store "shop" somebody  0 false`,
		`"views" in store "shop" views batch0 2 false`, `"{hits}:changed" in store "shop" hits batch3 4 false`,
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("left are %q, %v; want %q", got, err, want)
	}
	if err := l.Drop(t.Context(), left[2]); err == nil {
		t.Error("what is in a store that is not known was dropped")
	}
	for _, s := range slices.Delete(left, 2, 3) {
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
	if left, err := l.Left(t.Context(), nil); err != nil || len(left) != 2 || left[1].Key != "orders" {
		t.Errorf("after that: %v, %v", left, err)
	}
}
