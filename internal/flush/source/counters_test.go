package source

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

const viewsStage, viewsMeta = "{views:3}:baton:stage", "{views:3}:baton:meta"

// fillCounters sets n fields of a hash in one pipeline.
func (g *rig) fillCounters(key string, n int) map[string]int64 {
	g.T.Helper()
	want := make(map[string]int64, n)
	for lo := 0; lo < n; lo += 1000 {
		args := []any{key}
		for i := lo; i < min(lo+1000, n); i++ {
			field := fmt.Sprintf("article:%d", i)
			want[field] = int64(i%97 + 1)
			args = append(args, field, want[field])
		}
		g.Do("HSET", args...)
	}
	return want
}

func TestCountersAreFlushedOnceAndLeaveNothingBehind(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{PartRows: 100})
	db := newDatabase()
	want := g.fillCounters("views:3", 1234)
	db.drain(t, src)
	same(t, "counts", want, db.counts())
	g.Do("HINCRBY", "views:3", "article:7", 5)
	g.Do("HINCRBY", "views:3", "новый", -3)
	want["article:7"] += 5
	want["новый"] = -3
	db.drain(t, src)
	same(t, "counts after more increments", want, db.counts())
	g.nothingLeft()
}

func TestStagingCountersAgainFindsTheSameStage(t *testing.T) {
	g := newRig(t)
	g.fillCounters("views:3", 950)
	first := stageNow(t, g.counters(CountersOptions{PartRows: 100}), "a")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Job: "views"}); first != want {
		t.Fatalf("staged %+v, want %+v", first, want)
	}
	g.Do("HINCRBY", "views:3", "x", 1) // a producer continues
	// Another process has another size of parts. The stage stays as it was cut.
	again := stageNow(t, g.counters(CountersOptions{PartRows: 7}), "b")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Resumed: true, Job: "views"}); again != want {
		t.Fatalf("found %+v, want %+v", again, want)
	}
	if n := g.Num("HLEN", "views:3"); n != 1 {
		t.Errorf("live key has %d fields, want the 1 that came later", n)
	}
}

// A renamed job must know the name under which the ledger has the parts.
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
	same(t, "counts", want, db.counts())
	g.Do("HINCRBY", "views:3", "x", 1)
	if st := stageNow(t, renamed, "c"); st.Job != "page-views" {
		t.Errorf("the next stage is of job %q", st.Job)
	}

	g.Do("HSET", "user:1", "name", "Ann")
	g.Do("SADD", "changed:user", "1")
	stageNow(t, g.hashes(IndexedOptions{}), "d")
	if found := stageNow(t, g.hashes(IndexedOptions{Job: "people"}), "e"); found.ID != "d" || found.Job != "users" {
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
	same(t, "counts", want, db.counts())
}

func TestNothingPendingStagesNothing(t *testing.T) {
	g := newRig(t)
	for _, src := range []flush.Source{g.counters(CountersOptions{}), g.hashes(IndexedOptions{})} {
		if st, ok, err := src.Stage(t.Context(), "a", ""); ok || err != nil {
			t.Errorf("%s: staged %+v, %v, %v", src.Name(), st, ok, err)
		}
		if n, err := flush.Backlog(t.Context(), []flush.Source{src}); n != 0 || err != nil {
			t.Errorf("%s: backlog %d, %v", src.Name(), n, err)
		}
	}
	g.nothingLeft()
}

func TestStageHasNoTTLEvenIfTheLiveKeyHad(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", "views:3", "a", 1)
	g.Do("EXPIRE", "views:3", 100)
	stageNow(t, g.counters(CountersOptions{}), "a")
	g.Do("ZADD", "changed:user", 1, "a")
	g.Do("EXPIRE", "changed:user", 100)
	stageNow(t, g.hashes(IndexedOptions{}), "a")
	for _, key := range []string{viewsStage, viewsMeta, usersStage, usersMeta} {
		if ttl := g.Num("PTTL", key); ttl != -1 {
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
		g.Do("HSET", c.live, "f", 1)
		stageNow(t, g.counters(CountersOptions{Key: c.live}), "a")
		if n := g.Num("EXISTS", c.stage); n != 1 {
			t.Errorf("%s: no stage at %s", c.live, c.stage)
		}
	}
}

func TestDiscardByAnotherIDRemovesNothing(t *testing.T) {
	g := newRig(t)
	src := g.counters(CountersOptions{})
	stale := flush.Stage{ID: "another"}
	if err := src.Discard(t.Context(), stale); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("without a stage: %v", err)
	}
	g.Do("HSET", "views:3", "a", 1)
	st := stageNow(t, src, "a")
	if err := src.Discard(t.Context(), stale); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("with a stage of another id: %v", err)
	}
	if n := g.Num("EXISTS", viewsStage, viewsMeta); n != 2 {
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
	g.Do("HSET", "views:3", "a", 1)
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

func TestBacklogCountsLiveAndStaged(t *testing.T) {
	g := newRig(t)
	counters := g.counters(CountersOptions{})
	g.fillCounters("views:3", 20)
	stageNow(t, counters, "a")
	g.fillCounters("views:3", 3)
	hashes := g.hashes(IndexedOptions{})
	g.Do("SADD", "changed:user", 1, 2, 3, 4)
	stageNow(t, hashes, "a")
	g.Do("ZADD", "changed:user", 1, 5, 1, 6)
	for _, c := range []struct {
		src  flush.Counted
		want int64
	}{{counters, 23}, {hashes, 6}} {
		if n, err := c.src.Backlog(t.Context()); n != c.want || err != nil {
			t.Errorf("%s: backlog %d, %v; want %d", c.src.Name(), n, err, c.want)
		}
	}
}

func TestCounterInputsComeInTheOrderAskedFor(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", "views:3", "f", "not a number")
	src := g.counters(CountersOptions{Inputs: []string{"$value", "$field", "$value"}})
	pages := readAll(t, src, stageNow(t, src, "a"))
	want := []flush.Page{{Records: []row.Record{{Key: "f", Inputs: []row.Raw{
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
