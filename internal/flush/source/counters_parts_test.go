package source

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/source/idlist"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestPartsAreTheSameForEver(t *testing.T) {
	// The format: FNV-1a, 64 bit, modulo the parts. Another hash would assign
	// fields of a stage from before an upgrade to other parts.
	for _, field := range []string{"", "a", "article:1", "статья", strings.Repeat("x", 9999)} {
		h := fnv.New64a()
		h.Write([]byte(field))
		for _, parts := range []int{1, 2, 7, 1000} {
			if got, want := idlist.Part([]byte(field), parts), int(h.Sum64()%uint64(parts)); got != want {
				t.Errorf("part of %q in %d: %d, want %d", field, parts, got, want)
			}
		}
	}
	if got := idlist.Part([]byte("article:1"), 1000); got != 48 {
		t.Errorf("part of article:1 in 1000: %d", got)
	}
}

// partsOf reads a stage and shows which fields are in which part, failing on a
// field that comes twice, and on parts out of order.
func partsOf(t testing.TB, src flush.Source, st flush.Stage) map[int][]string {
	t.Helper()
	parts := map[int][]string{}
	seen := map[string]bool{}
	last := -1
	for _, p := range readAll(t, src, st) {
		if p.Part <= last || len(p.Records) == 0 {
			t.Errorf("part %d of %d records after part %d", p.Part, len(p.Records), last)
		}
		last = p.Part
		for _, r := range p.Records {
			if seen[r.Key] {
				t.Errorf("field %q came twice", r.Key)
			}
			seen[r.Key] = true
			parts[p.Part] = append(parts[p.Part], r.Inputs[0].Text+"="+r.Inputs[1].Text)
		}
	}
	return parts
}

func TestPartsDoNotDependOnMemoryOrOnRedis(t *testing.T) {
	t.Parallel()
	g := newRig(t, testsupport.RedisAOF())
	want := g.fillCounters("views:3", 8000)
	st := stageNow(t, g.counters(CountersOptions{PartRows: 400}), "a")
	whole := partsOf(t, g.counters(CountersOptions{}), st)

	var fields int
	for _, part := range whole {
		fields += len(part)
	}
	if len(whole) != 20 || fields != len(want) {
		t.Errorf("%d parts with %d fields, want 20 with %d", len(whole), fields, len(want))
	}

	scans := 0
	tight := countersOn(t, watched(g.store, func(step string) error {
		if step == redistest.Before("HGET") { // behind each pass
			scans++
		}
		return nil
	}), CountersOptions{MemoryBudget: 24 << 10})
	if diff := difference(whole, partsOf(t, tight, st)); diff != "" {
		t.Errorf("a small budget gives other parts: %.1000s", diff)
	}
	if scans < 5 || scans > 20 {
		t.Errorf("%d passes over 0.2 MB with a budget of 24 KiB", scans)
	}
	one := g.counters(CountersOptions{MemoryBudget: 1})
	if diff := difference(whole, partsOf(t, one, st)); diff != "" {
		t.Errorf("a budget below one part gives other parts: %.1000s", diff)
	}

	g.redis.Restart() // Redis hashes with another seed now, so a scan has another order
	resumed := stageNow(t, countersOn(t, openStore(t, g.redis.URL()), CountersOptions{}), "b")
	if resumed.ID != "a" || !resumed.Resumed || resumed.Parts != st.Parts {
		t.Errorf("after the restart found %+v, want %+v", resumed, st)
	}
	if diff := difference(whole, partsOf(t, countersOn(t, openStore(t, g.redis.URL()), CountersOptions{}), resumed)); diff != "" {
		t.Errorf("a restart of Redis gives other parts: %.1000s", diff)
	}
}

func TestWindowKeepsWithinItsBudgetAndHandsOverDistinctFields(t *testing.T) {
	w := newWindow(2, 10, 2000)
	want := map[int][]string{}
	fields := make([]string, 300)
	for i := range fields {
		fields[i] = fmt.Sprintf("f%d", i)
	}
	for range 2 { // HSCAN may return a field again
		rand.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		for _, f := range fields {
			w.add([]byte(f), []byte("1"))
			if w.bytes > 2000 && w.hi-w.lo > 1 {
				t.Fatalf("%d bytes held in %d parts", w.bytes, w.hi-w.lo)
			}
		}
	}
	for _, f := range fields {
		part := idlist.Part([]byte(f), 10)
		want[part] = append(want[part], f)
	}
	if w.hi <= w.lo {
		t.Fatal("no part was kept")
	}
	held := 8 * partCost
	for i, text := range w.parts {
		if w.lo+i >= w.hi && text != nil {
			t.Errorf("part %d is held outside of the window", w.lo+i)
		}
		held += cap(text)
	}
	if held != w.bytes {
		t.Errorf("%d bytes are held, %d accounted for", held, w.bytes)
	}
	for part := w.lo; part < w.hi; part++ {
		var got []string
		for _, p := range w.take(part) {
			got = append(got, p.field)
		}
		slices.Sort(want[part])
		if diff := cmp.Diff(want[part], got); diff != "" {
			t.Errorf("part %d: %s", part, diff)
		}
	}
}

func TestReadFailsWhenTheStageWasDiscardedMeanwhile(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 5000)
	src := g.counters(CountersOptions{PartRows: 100})
	st := stageNow(t, src, "a")
	// The successor finishes the stage and stages the next one while we scan.
	src.Store = watched(g.store, func(step string) error {
		if step == redistest.Before("HGET") {
			if err := g.counters(CountersOptions{}).Discard(t.Context(), st); err != nil {
				return err
			}
			g.Do("HSET", "views:3", "x", 1)
			stageNow(t, g.counters(CountersOptions{}), "b")
		}
		return nil
	})
	err := src.Read(t.Context(), st, func(p flush.Page) error {
		t.Errorf("part %d was handed over", p.Part)
		return nil
	})
	if !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("read: %v, want ErrStaleStage", err)
	}
}

func TestScanThatMissesFieldsIsNotTakenForTheWhole(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 100)
	src := g.counters(CountersOptions{})
	st := stageNow(t, src, "a")
	src.Store = watched(g.store, func(step string) error {
		if step == redistest.Before("HGET") { // a field that the scan did not return
			g.Do("HSET", viewsStage, "unseen", 1)
		}
		return nil
	})
	err := src.Read(t.Context(), st, func(flush.Page) error { t.Error("a page was handed over"); return nil })
	if err == nil || !strings.Contains(err.Error(), "100 of 101 fields") {
		t.Errorf("read: %v", err)
	}
}

func TestReadStopsWhenYieldFails(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 1000)
	g.Do("SADD", "changed:user", 1, 2, 3)
	stop := errors.New("stop")
	for _, src := range []flush.Source{g.counters(CountersOptions{PartRows: 10}), g.hashes(IndexedOptions{PageRows: 1})} {
		pages := 0
		err := src.Read(t.Context(), stageNow(t, src, "a"), func(flush.Page) error {
			pages++
			return stop
		})
		if !errors.Is(err, stop) || pages != 1 {
			t.Errorf("%s: %d pages, %v", src.Name(), pages, err)
		}
	}
}
