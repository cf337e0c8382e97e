package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
)

const hitsIndex, hitsStage, hitsMeta = "{changed:hits}:baton:index", "{changed:hits}:baton:stage", "{changed:hits}:baton:meta"

func (g *rig) plain(o PlainCountersOptions) *PlainCounters {
	g.T.Helper()
	return plainOn(g.T, g.store, o)
}

func plainOn(t testing.TB, store *redisconn.Store, o PlainCountersOptions) *PlainCounters {
	t.Helper()
	preset(&o.Job, "hits")
	preset(&o.Key, "hits:<page>")
	preset(&o.Changed, "changed:hits")
	if o.Inputs == nil {
		o.Inputs = []string{"page", "$value"}
	}
	return made(t, NewPlainCounters, store, o)
}

// hit adds to a counter as producers do.
func (g *rig) hit(zset bool, page string, n int64) {
	g.T.Helper()
	g.sendHit(zset, page, n)
	g.Do("")
}

func (g *rig) sendHit(zset bool, page string, n int64) {
	g.T.Helper()
	g.Send("MULTI")
	g.Send("INCRBY", "hits:"+page, n)
	if zset {
		g.Send("ZADD", "changed:hits", n, page)
	} else {
		g.Send("SADD", "changed:hits", page)
	}
	g.Send("EXEC")
}

// fillPlain adds to n counters in one pipeline.
func (g *rig) fillPlain(zset bool, n int) map[string]int64 {
	g.T.Helper()
	want := make(map[string]int64, n)
	for i := range n {
		page := fmt.Sprintf("p%d", i)
		want[page] = int64(i%97 + 1)
		g.Send("INCRBY", "hits:"+page, want[page])
		if zset {
			g.Send("ZADD", "changed:hits", i, page)
		} else {
			g.Send("SADD", "changed:hits", page)
		}
		if i%1000 == 999 || i == n-1 {
			g.Do("")
		}
	}
	return want
}

// noCounters fails unless every counter has been moved.
func (g *rig) noCounters() {
	g.T.Helper()
	keys, err := redis.Strings(g.Do("KEYS", "*hits*"), nil)
	if err != nil || len(keys) > 0 {
		g.T.Errorf("keys left behind: %q, %v", keys, err)
	}
}

func TestPlainCountersAreFlushedOnceAndLeaveNothingBehind(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		src := g.plain(PlainCountersOptions{PartRows: 100})
		db := newDatabase()
		want := g.fillPlain(zset, 1234)
		db.drain(t, src)
		same(t, "counts", want, db.counts())
		g.hit(zset, "p7", 5)
		g.hit(zset, "новый", -3)
		g.hit(zset, "", 2)
		want["p7"] += 5
		want["новый"], want[""] = -3, 2
		db.drain(t, src)
		same(t, "counts after more increments", want, db.counts())
		g.noCounters()
	})
}

func TestSealedCountersAreTheSameAtEveryReading(t *testing.T) {
	g := newRig(t)
	g.fillPlain(false, 950)
	src := g.plain(PlainCountersOptions{PartRows: 100, Lanes: 2})
	first := stageNow(t, src, "a")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Job: "hits"}); first != want {
		t.Fatalf("staged %+v, want %+v", first, want)
	}
	whole := partsOf(t, src, first)
	g.hit(false, "p1", 1000) // a producer continues
	other := g.plain(PlainCountersOptions{PartRows: 7, Job: "renamed"})
	again := stageNow(t, other, "b")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Resumed: true, Job: "hits"}); again != want {
		t.Fatalf("found %+v, want %+v", again, want)
	}
	if diff := cmp.Diff(whole, partsOf(t, other, again)); diff != "" {
		t.Errorf("another reading gives other parts: %.1000s", diff)
	}
	if n := g.Num("GET", "hits:p1"); n != 1000 {
		t.Errorf("the live counter has %d, want the 1000 that came later", n)
	}
	for _, p := range readAll(t, src, again) {
		if p.Lane != p.Part%2 {
			t.Errorf("part %d is of lane %d", p.Part, p.Lane)
		}
	}
	if ttl := g.Num("PTTL", hitsStage); ttl != -1 {
		t.Errorf("PTTL of the stage: %d", ttl)
	}
}

// A value that is no number must reach the mapping, which makes a dead letter of it.
func TestPlainCountersThatAreNoNumbersAreHandedOver(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "hits:text", "many")
	g.Do("RPUSH", "hits:list", "x")
	g.Do("SET", "hits:decimal", "1.5e-7")
	g.Do("SET", "hits:zero", 0)
	g.Do("SET", "hits:empty", "")
	g.Do("SADD", "changed:hits", "text", "list", "decimal", "zero", "empty", "missing")
	src := g.plain(PlainCountersOptions{Inputs: []string{"$value", "page"}})
	got := map[string]string{}
	st := stageNow(t, src, "a")
	for _, p := range readAll(t, src, st) {
		for _, r := range p.Records {
			got[r.Key] = r.Inputs[0].Text + " of " + r.Inputs[1].Text
		}
	}
	same(t, "records", map[string]string{
		"text": "many of text", "list": "a list and no counter of list", "decimal": "1.5e-7 of decimal", "empty": " of empty",
	}, got)
	if left, _ := redis.Strings(g.Do("KEYS", "hits:*"), nil); len(left) != 1 || left[0] != "hits:list" {
		t.Errorf("left in their keys: %q, want what is no counter alone", left)
	}
	if err := src.Discard(t.Context(), st); err != nil {
		t.Error(err)
	}
	g.nothingLeft()
}

func TestNothingCountedStagesNothing(t *testing.T) {
	g := newRig(t)
	src := g.plain(PlainCountersOptions{})
	nothing := func() {
		t.Helper()
		if st, ok, err := src.Stage(t.Context(), "a", ""); ok || err != nil {
			t.Errorf("staged %+v, %v, %v", st, ok, err)
		}
		g.nothingLeft()
	}
	nothing()
	g.Do("SADD", "changed:hits", 1, 2)
	g.Do("SET", "hits:1", 0)
	nothing()
	g.noCounters()

	// An earlier run has left such a stage. Newer changes are staged at once.
	g.Do("SADD", "changed:hits", 1)
	crash := plainOn(t, watched(g.store, func(step string) error {
		if step == redistest.Before("counters_gather") {
			return errCrash
		}
		return nil
	}), PlainCountersOptions{})
	if _, _, err := crash.Stage(t.Context(), "b", ""); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	g.hit(false, "2", 4)
	if st := stageNow(t, src, "c"); st.ID != "c" || st.Resumed || st.Size != 1 {
		t.Errorf("staged %+v", st)
	}
}

func TestBacklogOfPlainCountersCountsLiveAndStaged(t *testing.T) {
	g := newRig(t)
	g.fillPlain(false, 20)
	crash := plainOn(t, watched(g.store, func(step string) error {
		if step == redistest.Before("counters_gather") {
			return errCrash
		}
		return nil
	}), PlainCountersOptions{})
	if _, _, err := crash.Stage(t.Context(), "a", ""); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	g.hit(false, "p1", 1)
	for range 2 { // staged at first, and gathered afterwards
		if n, err := crash.Backlog(t.Context()); n != 21 || err != nil {
			t.Errorf("backlog %d, %v; want 21", n, err)
		}
		stageNow(t, g.plain(PlainCountersOptions{}), "b")
	}
}

func TestPlainCountersAreCheckedWhenTheyAreMade(t *testing.T) {
	g := newRig(t)
	for want, o := range map[string]PlainCountersOptions{
		"<":             {Job: "j", Key: "hits", Changed: "c"},
		"input":         {Job: "j", Key: "hits:<page>", Changed: "c", Inputs: []string{"$field"}},
		"empty":         {Job: "j", Key: "hits:<page>"},
		"name of its j": {Key: "hits:<page>", Changed: "c"},
	} {
		if _, err := NewPlainCounters(g.store, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v does not say %q", o, err, want)
		}
	}
}

func TestPlainCountersOfAClusterShareTheirIndexsSlot(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	for _, o := range []PlainCountersOptions{
		{Key: "hits:<page>", Changed: "changed:hits"},
		{Key: "{hits}:<page>", Changed: "changed:hits"},
		{Key: "hits:<page>:{changed:hits}", Changed: "changed:hits"}, // a page may contain a brace
		{Key: "{<page>}", Changed: "{x}"},
	} {
		o.Job = "hits"
		if _, err := NewPlainCounters(g.store, o); err == nil || !strings.Contains(err.Error(), "the same {tag}") {
			t.Errorf("%s with %s: %v", o.Key, o.Changed, err)
		}
	}
	db, want := newDatabase(), map[string]int64{}
	src := plainOn(t, g.store, PlainCountersOptions{Key: "{hits}:<page>", Changed: "{hits}:changed", PartRows: 40})
	for round := range 2 {
		for i := range 250 {
			page := fmt.Sprintf("{%d}", i)
			g.do("INCRBY", "{hits}:"+page, i+round+1)
			g.do("SADD", "{hits}:changed", page)
			want[page] += int64(i + round + 1)
		}
		db.drain(t, src)
	}
	same(t, "counts", want, db.counts())
}
