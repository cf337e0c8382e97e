package redisstore

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

const viewsStage, viewsMeta = "{views:3}:baton:stage", "{views:3}:baton:meta"

// fillCounters sets n fields of a hash, pipelined.
func (g *rig) fillCounters(key string, n int) map[string]int64 {
	g.t.Helper()
	want := make(map[string]int64, n)
	for lo := 0; lo < n; lo += 1000 {
		args := []any{key}
		for i := lo; i < min(lo+1000, n); i++ {
			field := fmt.Sprintf("article:%d", i)
			want[field] = int64(i%97 + 1)
			args = append(args, field, want[field])
		}
		g.do("HSET", args...)
	}
	return want
}

func TestCountersAreFlushedOnceAndLeaveNothingBehind(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{PartRows: 100})
	db := newDatabase()
	want := g.fillCounters("views:3", 1234)
	db.drain(t, src)
	same(t, "counts", want, db.counts)
	g.do("HINCRBY", "views:3", "article:7", 5)
	g.do("HINCRBY", "views:3", "новый", -3)
	want["article:7"] += 5
	want["новый"] = -3
	db.drain(t, src)
	same(t, "counts after more increments", want, db.counts)
	g.nothingLeft()
}

func TestStagingCountersAgainFindsTheSameStage(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 950)
	first := stageNow(t, g.counters(CountersOptions{PartRows: 100}), "a")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Job: "views"}); first != want {
		t.Fatalf("staged %+v, want %+v", first, want)
	}
	g.do("HINCRBY", "views:3", "x", 1) // a producer goes on
	// Another process, with another size of parts: the stage stays as it was cut.
	again := stageNow(t, g.counters(CountersOptions{PartRows: 7}), "b")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Resumed: true, Job: "views"}); again != want {
		t.Fatalf("found %+v, want %+v", again, want)
	}
	if n := g.num("HLEN", "views:3"); n != 1 {
		t.Errorf("live key has %d fields, want the 1 that came later", n)
	}
}

// The new name's job must know under which name the ledger has the parts.
func TestRenamedJobFindsTheStageItLeft(t *testing.T) {
	g := newRig(t)
	want := g.fillCounters("views:3", 950)
	stageNow(t, g.counters(CountersOptions{PartRows: 100}), "a")
	renamed := g.counters(CountersOptions{Job: "page-views", PartRows: 100})
	if found, want := stageNow(t, renamed, "b"), (flush.Stage{ID: "a", Parts: 10, Size: 950, Resumed: true, Job: "views"}); found != want {
		t.Fatalf("found %+v, want %+v", found, want)
	}
	db := newDatabase()
	db.drain(t, renamed)
	same(t, "counts", want, db.counts)
	g.do("HINCRBY", "views:3", "x", 1)
	if st := stageNow(t, renamed, "c"); st.Job != "page-views" {
		t.Errorf("the next stage is of job %q", st.Job)
	}

	g.do("HSET", "user:1", "name", "Ann")
	g.do("SADD", "changed:user", "1")
	stageNow(t, g.hashes(HashesOptions{}), "d")
	if found := stageNow(t, g.hashes(HashesOptions{Job: "people"}), "e"); found.ID != "d" || found.Job != "users" {
		t.Errorf("found %+v", found)
	}
}

func TestLostReplyOfStagingIsResumed(t *testing.T) {
	g := newRig(t)
	g.loadScripts()
	want := g.fillCounters("views:3", 10)
	p := g.redis.Proxy()
	src := countersOn(t, openStore(t, g.redis.URLThrough(p)), CountersOptions{})
	lost := p.LoseReply("the-first-id")
	if _, _, err := src.Stage(t.Context(), "the-first-id", ""); err == nil {
		t.Fatal("staging succeeded without a reply")
	}
	<-lost
	if st := stageNow(t, src, "the-second-id"); st.ID != "the-first-id" || !st.Resumed {
		t.Errorf("found %+v, want the first id, resumed", st)
	}
	db := newDatabase()
	db.drain(t, src)
	same(t, "counts", want, db.counts)
}

func TestNothingPendingStagesNothing(t *testing.T) {
	g := newRig(t)
	for _, src := range []flush.Source{g.counters(CountersOptions{}), g.hashes(HashesOptions{})} {
		if st, ok, err := src.Stage(t.Context(), "a", ""); ok || err != nil {
			t.Errorf("%s: staged %+v, %v, %v", src.Name(), st, ok, err)
		}
		if n, err := src.Backlog(t.Context()); n != 0 || err != nil {
			t.Errorf("%s: backlog %d, %v", src.Name(), n, err)
		}
	}
	g.nothingLeft()
}

func TestStageHasNoTTLEvenIfTheLiveKeyHad(t *testing.T) {
	g := newRig(t)
	g.do("HSET", "views:3", "a", 1)
	g.do("EXPIRE", "views:3", 100)
	stageNow(t, g.counters(CountersOptions{}), "a")
	g.do("ZADD", "changed:user", 1, "a")
	g.do("EXPIRE", "changed:user", 100)
	stageNow(t, g.hashes(HashesOptions{}), "a")
	for _, key := range []string{viewsStage, viewsMeta, usersStage, usersMeta} {
		if ttl := g.num("PTTL", key); ttl != -1 {
			t.Errorf("%s: PTTL %d, want none on an existing key", key, ttl)
		}
	}
}

func TestStageSharesTheSlotOfItsLiveKey(t *testing.T) {
	g := newRig(t)
	for _, c := range []struct{ live, stage string }{
		{"views:3", "{views:3}:baton:stage"},
		{"{views}:3", "{views}:3:baton:stage"},
		{"a{x}b", "a{x}b:baton:stage"},
	} {
		g.do("HSET", c.live, "f", 1)
		stageNow(t, g.counters(CountersOptions{Key: c.live}), "a")
		if n := g.num("EXISTS", c.stage); n != 1 {
			t.Errorf("%s: no stage at %s", c.live, c.stage)
		}
	}
}

func TestPartsAreTheSameForEver(t *testing.T) {
	// The format: FNV-1a, 64 bit, modulo the parts. Another hash would assign
	// fields of a stage from before an upgrade to other parts.
	for _, field := range []string{"", "a", "article:1", "статья", strings.Repeat("x", 9999)} {
		h := fnv.New64a()
		h.Write([]byte(field))
		for _, parts := range []int{1, 2, 7, 1000} {
			if got, want := partOf([]byte(field), parts), int(h.Sum64()%uint64(parts)); got != want {
				t.Errorf("part of %q in %d: %d, want %d", field, parts, got, want)
			}
		}
	}
	if got := partOf([]byte("article:1"), 1000); got != 48 {
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
	tight := g.counters(CountersOptions{MemoryBudget: 24 << 10, Observe: func(step string) error {
		if step == stepScan {
			scans++
		}
		return nil
	}})
	if diff := cmp.Diff(whole, partsOf(t, tight, st)); diff != "" {
		t.Errorf("a small budget gives other parts: %.1000s", diff)
	}
	if scans < 5 || scans > 20 {
		t.Errorf("%d passes over 0.2 MB with a budget of 24 KiB", scans)
	}
	one := g.counters(CountersOptions{MemoryBudget: 1})
	if diff := cmp.Diff(whole, partsOf(t, one, st)); diff != "" {
		t.Errorf("a budget below one part gives other parts: %.1000s", diff)
	}

	g.redis.Restart() // Redis hashes with another seed now, so a scan has another order
	resumed := stageNow(t, countersOn(t, openStore(t, g.redis.URL()), CountersOptions{}), "b")
	if resumed.ID != "a" || !resumed.Resumed || resumed.Parts != st.Parts {
		t.Errorf("after the restart found %+v, want %+v", resumed, st)
	}
	if diff := cmp.Diff(whole, partsOf(t, countersOn(t, openStore(t, g.redis.URL()), CountersOptions{}), resumed)); diff != "" {
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
		part := partOf([]byte(f), 10)
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
	src.observe = func(step string) error {
		if step == stepScanned {
			if err := g.counters(CountersOptions{}).Discard(t.Context(), st); err != nil {
				return err
			}
			g.do("HSET", "views:3", "x", 1)
			stageNow(t, g.counters(CountersOptions{}), "b")
		}
		return nil
	}
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
	src.observe = func(step string) error {
		if step == stepScanned { // a field that the scan did not return
			g.do("HSET", viewsStage, "unseen", 1)
		}
		return nil
	}
	err := src.Read(t.Context(), st, func(flush.Page) error { t.Error("a page was handed over"); return nil })
	if err == nil || !strings.Contains(err.Error(), "100 of 101 fields") {
		t.Errorf("read: %v", err)
	}
}

func TestDiscardByAnotherIDRemovesNothing(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{})
	stale := flush.Stage{ID: "another"}
	if err := src.Discard(t.Context(), stale); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("without a stage: %v", err)
	}
	g.do("HSET", "views:3", "a", 1)
	st := stageNow(t, src, "a")
	if err := src.Discard(t.Context(), stale); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("with a stage of another id: %v", err)
	}
	if n := g.num("EXISTS", viewsStage, viewsMeta); n != 2 {
		t.Errorf("%d of the stage's 2 keys are left", n)
	}
	if err := src.Discard(t.Context(), st); err != nil {
		t.Error(err)
	}
	g.nothingLeft()
}

func TestLostReplyOfDiscardIsReportedAsGone(t *testing.T) {
	g := newRig(t)
	g.loadScripts()
	g.do("HSET", "views:3", "a", 1)
	p := g.redis.Proxy()
	src := countersOn(t, openStore(t, g.redis.URLThrough(p)), CountersOptions{})
	st := stageNow(t, src, "some-id")
	lost := p.LoseReply("some-id")
	if err := src.Discard(t.Context(), st); err == nil || errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("discard without a reply: %v", err)
	}
	<-lost
	if err := src.Discard(t.Context(), st); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("discard again: %v", err)
	}
	g.nothingLeft()
}

// A script is not undone when Redis refuses its next command.
func TestPermissionThatIsMissingLeavesNothingHalfDone(t *testing.T) {
	for _, missing := range []string{"type", "hlen", "persist", "hset", "rename", "hmget", "hget", "unlink", "del"} {
		t.Run(missing, func(t *testing.T) {
			g := newRig(t)
			want := g.fillCounters("views:3", 50)
			g.do("ACL", "SETUSER", "app", "on", ">pw", "~*", "+@all", "-"+missing)
			s, err := Open(Options{URL: g.redis.URL(), Username: "app", Password: func() (string, error) { return "pw", nil }})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			src := countersOn(t, s, CountersOptions{PartRows: 10})
			db := newDatabase()
			_, _ = db.flushOnce(t.Context(), src, nil)
			g.do("ACL", "SETUSER", "app", "+@all")
			db.drain(t, src)
			same(t, "counts", want, db.counts)
			g.nothingLeft()
		})
	}
}

// RENAME and UNLINK are what a full Redis still does.
func TestFullRedisIsFlushed(t *testing.T) {
	g := newRig(t)
	want := g.fillCounters("views:3", 50)
	g.do("SET", "much", strings.Repeat("x", 4<<20))
	g.do("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction")
	if _, err := g.conn.Do("SET", "more", "x"); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("Redis is not full: %v", err)
	}
	db := newDatabase()
	db.drain(t, g.counters(CountersOptions{PartRows: 10}))
	same(t, "counts", want, db.counts)
}

func TestStageWithoutItsIDIsNeverOverwritten(t *testing.T) {
	g := newRig(t)
	g.do("HSET", viewsStage, "a", 41)
	g.do("HSET", "views:3", "a", 1)
	_, _, err := g.counters(CountersOptions{}).Stage(t.Context(), "new", "")
	if !errors.Is(err, ErrBrokenStage) || !strings.Contains(err.Error(), "HSET "+viewsMeta) {
		t.Errorf("stage: %v", err)
	}
	if got := g.str("HGET", viewsStage, "a"); got != "41" {
		t.Errorf("the stage was changed: %s", got)
	}
	// The remedy that the message gives.
	g.do("HSET", viewsMeta, "id", "mended", "parts", 1)
	db := newDatabase()
	db.drain(t, g.counters(CountersOptions{}))
	same(t, "counts", map[string]int64{"a": 42}, db.counts)
}

func TestIDWithoutItsStageIsReported(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{})
	g.do("HSET", "views:3", "a", 1)
	stageNow(t, src, "a")
	g.do("UNLINK", viewsStage) // evicted, say
	g.do("HSET", "views:3", "a", 1)
	_, _, err := src.Stage(t.Context(), "b", "")
	if !errors.Is(err, ErrBrokenStage) || !strings.Contains(err.Error(), "DEL "+viewsMeta) {
		t.Errorf("stage: %v", err)
	}
	g.do("DEL", viewsMeta)
	if st := stageNow(t, src, "b"); st.ID != "b" {
		t.Errorf("after the remedy: %+v", st)
	}
}

func TestCounterKeyOfTheWrongTypeIsNamed(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{})
	g.do("RPUSH", "views:3", "x")
	for what, err := range map[string]error{
		"stage":   errOf(src.Stage(t.Context(), "a", "")),
		"backlog": second(src.Backlog(t.Context())),
	} {
		if !errors.Is(err, ErrWrongType) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, says := range []string{`"views:3" is a list`, "a hash", `job "views"`, "configuration"} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v does not say %q", what, err, says)
			}
		}
	}
	// A stage of the wrong type: the job was of another kind before.
	g.do("DEL", "views:3")
	g.do("SADD", viewsStage, "x")
	g.do("HSET", viewsMeta, "id", "old", "parts", 0)
	if err := errOf(src.Stage(t.Context(), "a", "")); !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), viewsStage) {
		t.Errorf("stage of a set: %v", err)
	}
}

func TestForeignKeyInTheStagesPlaceIsNamed(t *testing.T) {
	g := newRig(t)
	g.do("HSET", "views:3", "a", 1)
	g.do("SET", viewsMeta, "x")
	err := errOf(g.counters(CountersOptions{}).Stage(t.Context(), "a", ""))
	if !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), viewsMeta) {
		t.Errorf("stage: %v", err)
	}
	if n := g.num("HLEN", "views:3"); n != 1 {
		t.Error("the live key was staged without an id")
	}
}

func errOf(_ flush.Stage, _ bool, err error) error { return err }
func second(_ int64, err error) error              { return err }

func TestBacklogCountsLiveAndStaged(t *testing.T) {
	g := newRig(t)
	counters := g.counters(CountersOptions{})
	g.fillCounters("views:3", 20)
	stageNow(t, counters, "a")
	g.fillCounters("views:3", 3)
	hashes := g.hashes(HashesOptions{})
	g.do("SADD", "changed:user", 1, 2, 3, 4)
	stageNow(t, hashes, "a")
	g.do("ZADD", "changed:user", 1, 5, 1, 6)
	for _, c := range []struct {
		src  flush.Source
		want int64
	}{{counters, 23}, {hashes, 6}} {
		if n, err := c.src.Backlog(t.Context()); n != c.want || err != nil {
			t.Errorf("%s: backlog %d, %v; want %d", c.src.Name(), n, err, c.want)
		}
	}
}

func TestCounterInputsComeInTheOrderAskedFor(t *testing.T) {
	g := newRig(t)
	g.do("HSET", "views:3", "f", "not a number")
	src := g.counters(CountersOptions{Inputs: []string{"$value", "$field", "$value"}})
	pages := readAll(t, src, stageNow(t, src, "a"))
	want := []flush.Page{{Records: []flush.Record{{Key: "f", Inputs: []flush.Raw{
		{Text: "not a number", OK: true}, {Text: "f", OK: true}, {Text: "not a number", OK: true},
	}}}}}
	if diff := cmp.Diff(want, pages); diff != "" {
		t.Error(diff)
	}
	if _, err := NewCounters(g.store, CountersOptions{Job: "j", Key: "k", Inputs: []string{"name"}}); err == nil {
		t.Error("an input that counters do not have was accepted")
	}
	if _, err := NewCounters(g.store, CountersOptions{Job: "j", Key: "a}b"}); err == nil {
		t.Error("a key whose slot cannot be shared was accepted")
	}
	if _, err := NewCounters(g.store, CountersOptions{Key: "k"}); err == nil {
		t.Error("a source without a job was accepted")
	}
}

func TestReadStopsWhenYieldFails(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 1000)
	g.do("SADD", "changed:user", 1, 2, 3)
	stop := errors.New("stop")
	for _, src := range []flush.Source{g.counters(CountersOptions{PartRows: 10}), g.hashes(HashesOptions{PageRows: 1})} {
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

func TestRedisThatIsAwayIsAnError(t *testing.T) {
	g := newRig(t)
	g.do("HSET", "views:3", "a", 1)
	src := g.counters(CountersOptions{})
	st := stageNow(t, src, "a")
	g.redis.Kill()
	yield := func(flush.Page) error { return nil }
	for what, err := range map[string]error{
		"stage":   errOf(src.Stage(t.Context(), "b", "")),
		"backlog": second(src.Backlog(t.Context())),
		"read":    src.Read(t.Context(), st, yield),
		"discard": src.Discard(t.Context(), st),
	} {
		var reply redis.Error
		if err == nil || errors.As(err, &reply) || errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
