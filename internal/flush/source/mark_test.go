package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/flush/source/staging"
)

func mark(t *testing.T, src *Hashes, newID string, ids ...string) {
	t.Helper()
	if err := src.Mark(t.Context(), newID, ids); err != nil {
		t.Fatal(err)
	}
}

// everything drains the source with as many runs as needed, and returns the ids in order.
func everything(t *testing.T, src *Hashes) (ids []string) {
	t.Helper()
	for n := range 10 {
		st, ok, err := src.Stage(t.Context(), fmt.Sprint("run", n), "")
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return ids
		}
		for _, p := range readAll(t, src, st) {
			for _, r := range p.Records {
				ids = append(ids, r.Key)
			}
			if err := src.Done(t.Context(), st, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := src.Discard(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it never comes to an end")
	return nil
}

func TestMarkedRowsAreFlushedAgain(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		src := g.hashes(IndexedOptions{})
		want := []string{"1", "2", "\x00\xff"}
		kind := map[bool]string{false: "set", true: "zset"}[zset]
		for name, before := range map[string]func(){
			"nothing":       func() {},
			"live index":    func() { g.index(zset, "2") },
			"stage":         func() { g.index(zset, "2"); stageNow(t, src, "a") },
			"stage, live":   func() { g.index(zset, "2"); stageNow(t, src, "a"); g.index(zset, "2") },
			"marked before": func() { mark(t, src, "m0", "2") },
			"drained stage": func() { g.Do("HSET", usersMeta, "id", "a", "parts", 0, "job", "users") },
		} {
			before()
			for _, id := range []string{"m1", "m2"} { // twice, which is harmless
				mark(t, src, id, want...)
			}
			g.index(zset, "1") // the producer may do the same
			if got := g.Str("TYPE", "changed:user"); got != kind {
				t.Errorf("%s: the live index is a %s, want %s", name, got, kind)
			}
			got := everything(t, src)
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, []string{"\x00\xff", "1", "2"}) {
				t.Errorf("%s: flushed %q", name, got)
			}
			g.nothingLeft()
		}
	})
}

func TestMarksAreTheNewestOfASortedSetAndMoveNoneThatWaits(t *testing.T) {
	g := newRig(t)
	src := g.hashes(IndexedOptions{})
	g.Do("ZADD", "changed:user", 1700000000.5, "1", 1700000009.25, "2")
	mark(t, src, "m", "1", "3")
	got, err := redis.Strings(g.Do("ZRANGE", "changed:user", 0, -1, "WITHSCORES"), nil)
	if want := []string{"1", "1700000000.5", "2", "1700000009.25", "3", "1700000009.25"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestManyMarksAreEnteredByAndBy(t *testing.T) {
	g := newRig(t)
	src := g.hashes(IndexedOptions{})
	var ids []string
	for i := range 2500 {
		ids = append(ids, fmt.Sprint(i))
	}
	mark(t, src, "m", ids...)
	if got := everything(t, src); len(got) != len(ids) {
		t.Errorf("%d ids were flushed, want %d", len(got), len(ids))
	}
}

// A run has read a row and is about to remove its id from the stage. Then the row is corrected and its id is marked. The mark must not be
// removed with the older id.
func TestMarkIsNotTakenOutByARunThatHasReadTheRowBefore(t *testing.T) {
	g := newRig(t)
	src := g.hashes(IndexedOptions{})
	mark(t, src, "m1", "1")
	st := stageNow(t, src, "run")
	pages := readAll(t, src, st)
	mark(t, src, "m2", "1")
	if err := src.Done(t.Context(), st, pages[0]); err != nil && !errors.Is(err, flush.ErrStaleStage) {
		t.Fatal(err)
	}
	if err := src.Discard(t.Context(), st); err != nil && !errors.Is(err, flush.ErrStaleStage) {
		t.Fatal(err)
	}
	if got := everything(t, src); !slices.Equal(got, []string{"1"}) {
		t.Errorf("flushed after the mark: %q", got)
	}
}

func TestMarkIntoAnIndexOfTheWrongTypeIsRefused(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "changed:user", "x")
	if err := g.hashes(IndexedOptions{}).Mark(t.Context(), "m", []string{"1"}); !errors.Is(err, staging.ErrWrongType) ||
		!strings.Contains(err.Error(), "changed:user") {
		t.Error(err)
	}
}
