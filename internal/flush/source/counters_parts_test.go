package source

import (
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/source/idlist"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestPartsAreTheSameForEver(t *testing.T) {
	// The stored format is FNV-1a, 64 bit, modulo the number of parts. Another hash would assign fields of a stage from before an upgrade
	// to other parts.
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

// partsOf reads a stage and returns the fields of each part. It fails if a field comes twice, or if parts are not in order.
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
		if step == redistest.Before("HGET") { // after each pass
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

// A stage that is not large is cut by the order of its fields, so that each transaction writes neighbouring rows. Later readings give the
// same parts, with any memory. They do so even if Redis lost the ends of the parts in a failover, or if fields have expired meanwhile.
func TestPartsAreNeighboursIfTheStageIsNotLarge(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 1000)
	src := g.counters(CountersOptions{PartRows: 100})
	st := stageNow(t, src, "a")
	whole := partsOf(t, g.counters(CountersOptions{}), st)
	last := ""
	for part := range 10 {
		if len(whole[part]) != 100 {
			t.Errorf("part %d has %d fields", part, len(whole[part]))
		}
		for _, field := range whole[part] {
			field, _, _ := strings.Cut(field, "=")
			if field <= last {
				t.Errorf("%s comes after %s", field, last)
			}
			last = field
		}
	}
	resumed := stageNow(t, g.counters(CountersOptions{PartRows: 7}), "b")
	if resumed.Parts != 10 || !resumed.Resumed {
		t.Errorf("found %+v", resumed)
	}
	same := func(when string, budget int) {
		t.Helper()
		if diff := difference(whole, partsOf(t, g.counters(CountersOptions{MemoryBudget: budget}), resumed)); diff != "" {
			t.Errorf("%s, %d bytes: %.1000s", when, budget, diff)
		}
	}
	for _, budget := range []int{0, 1, 5000} {
		same("again", budget)
		g.Do("HDEL", src.MetaKey(), "ends")
		same("after a failover", budget)
	}
	g.Do("HDEL", viewsStage, "article:500")
	for part, fields := range whole {
		whole[part] = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, "article:500=") })
	}
	same("without a field", 0)
}

// Stages of an older version, and large stages, are cut by hash.
func TestStageThatIsLargeOrOfAnOlderVersionIsCutByHash(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 1000)
	large := g.counters(CountersOptions{PartRows: 100})
	large.Large = 999
	st := stageNow(t, large, "a")
	if parts, err := redis.String(g.Conn.Do("HGET", large.MetaKey(), "parts")); parts != "10" || err != nil {
		t.Errorf("cut in %q, %v", parts, err)
	}
	for part, fields := range partsOf(t, g.counters(CountersOptions{}), st) {
		for _, f := range fields {
			if name, _, _ := strings.Cut(f, "="); idlist.Part([]byte(name), 10) != part {
				t.Errorf("%s is in part %d", name, part)
			}
		}
	}
}

// Two leaders may compute the ends of the parts at the same time, and one of them may lack some fields already. Both must use the first
// answer.
func TestFirstAnswerWhereThePartsEndCounts(t *testing.T) {
	for _, first := range []string{"h", "b"} {
		g := newRig(t)
		g.fillCounters("views:3", 1000)
		src := g.counters(CountersOptions{PartRows: 500})
		st := stageNow(t, src, "a")
		want := map[string]string{"h": "h", "b": "b\x0barticle:100"}[first]
		src.Store = watched(g.store, func(step string) error {
			if step == redistest.Before("counters_deal") {
				g.Do("HSET", src.MetaKey(), "ends", want)
			}
			return nil
		})
		got := partsOf(t, src, st)
		if ends, err := redis.String(g.Conn.Do("HGET", src.MetaKey(), "ends")); ends != want || err != nil {
			t.Errorf("ends %q, %v", ends, err)
		}
		for part, fields := range got {
			for _, f := range fields {
				name, _, _ := strings.Cut(f, "=")
				by := map[string]int{"h": idlist.Part([]byte(name), 2), "b": strings.Compare(name, "article:100") + 1}[first]
				if min(by, 1) != part {
					t.Errorf("%s: %s is in part %d", first, name, part)
				}
			}
		}
	}
}

// An older version reads "parts" as a number. It must fail, and not cut the stage by hash.
func TestStageThatIsCutByOrderIsRefusedByOlderVersions(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 1000)
	src := g.counters(CountersOptions{PartRows: 100})
	stageNow(t, src, "a")
	old := redis.NewScript(1, "return {'staged', tonumber(redis.call('HGET', KEYS[1], 'parts')), 1000}")
	reply, err := redis.Values(old.Do(g.Conn, src.MetaKey()))
	if err != nil || len(reply) != 1 {
		t.Errorf("an older version gets %v, %v", reply, err)
	}
}

func TestEndsThatBatonHasNotWrittenAreRefused(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 1000)
	src := g.counters(CountersOptions{PartRows: 100})
	st := stageNow(t, src, "a")
	g.Do("HSET", src.MetaKey(), "ends", "n")
	err := src.Read(t.Context(), st, func(flush.Page) error { t.Error("a page was handed over"); return nil })
	if err == nil || !strings.Contains(err.Error(), "the ends of the parts") {
		t.Errorf("read: %v", err)
	}
}

func TestReadFailsWhenTheStageWasDiscardedMeanwhile(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 5000)
	src := g.counters(CountersOptions{PartRows: 100})
	st := stageNow(t, src, "a")
	// The successor finishes the stage and stages the next one while this process scans.
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
