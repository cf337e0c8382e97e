package source

import (
	"fmt"
	"testing"
	"time"

	"baton/internal/flush"
)

// The last quarter of a large stage is not removed id by id, since Redis would block all clients while it shrinks the table. It is removed
// with the stage. No id may be removed before it was flushed, no matter which process died in between.
func TestTheLastOfALargeStageGoesWithIt(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		for i := range 100 {
			g.index(zset, fmt.Sprint(i))
		}
		src := g.hashes(IndexedOptions{PageRows: 10})
		src.Large = 100
		st := stageNow(t, src, "a")
		pages := readAll(t, src, st)
		done := func(pages []flush.Page) {
			t.Helper()
			for _, p := range pages {
				if err := src.Done(t.Context(), st, p); err != nil {
					t.Fatal(err)
				}
			}
		}
		left := func(want int64) {
			t.Helper()
			if got := stageNow(t, src, "b"); got.ID != "a" || got.Size != want {
				t.Fatalf("found %+v, want %d ids of the first stage", got, want)
			}
		}
		done(pages[:9]) // the last two of them have only passed
		if err := src.Discard(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		left(30)                         // the unfinished page kept the stage, and the next process starts again
		done(pages[7:9])                 // the leader that was thought dead continues
		left(30)                         // and its successor starts again
		done(readAll(t, src, st)[:2])    // one page is missing again
		_ = src.Discard(t.Context(), st) // keeps the stage
		left(30)                         //
		done(readAll(t, src, st))        // now all pages
		if err := src.Discard(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		g.nothingLeft()
		g.index(zset, "7")
		if st := stageNow(t, src, "c"); st.ID != "c" || st.Size != 1 {
			t.Errorf("the next stage is %+v", st)
		}
		done2 := readAll(t, src, flush.Stage{ID: "c", Size: 1})
		if err := src.Done(t.Context(), flush.Stage{ID: "c"}, done2[0]); err != nil {
			t.Fatal(err)
		}
		if n := g.Do("EXISTS", src.StageKey()); n != int64(0) {
			t.Error("a small stage is not emptied")
		}
	})
}

// Flushed ids wait for a while before they are removed from their stage. So most ids are never removed one by one, because the stage is
// removed as a whole. A stage that is unfinished by then is cleared page by page.
func TestIdsOfAStageThatIsSoonDoneGoWithIt(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		for i := range 100 {
			g.index(zset, fmt.Sprint(i))
		}
		src := g.hashes(IndexedOptions{PageRows: 10, RemoveEvery: time.Hour})
		kept := func(want int64) {
			t.Helper()
			card := map[bool]string{false: "SCARD", true: "ZCARD"}[zset]
			if got := g.Do(card, src.StageKey()); got != want {
				t.Fatalf("%v ids are left in the stage, want %d", got, want)
			}
		}
		finish := func(st flush.Stage, pages []flush.Page) {
			t.Helper()
			for _, p := range pages {
				if err := src.Done(t.Context(), st, p); err != nil {
					t.Fatal(err)
				}
			}
			if err := src.Discard(t.Context(), st); err != nil {
				t.Fatal(err)
			}
		}
		st := stageNow(t, src, "a")
		finish(st, readAll(t, src, st)[1:])
		kept(100) // one page was not flushed
		st = stageNow(t, src, "b")
		if st.ID != "a" || !st.Resumed {
			t.Fatalf("found %+v", st)
		}
		finish(st, readAll(t, src, st)[1:])
		kept(10) // each page was removed when it was done
		st = stageNow(t, src, "c")
		finish(st, readAll(t, src, st))
		g.nothingLeft()

		for i := range 100 {
			g.index(zset, fmt.Sprint(i))
		}
		src.budget = 4 * 25 * (passedCost + 2) // ids that wait may use a quarter of the budget
		st = stageNow(t, src, "d")
		for _, p := range readAll(t, src, st)[:5] {
			if err := src.Done(t.Context(), st, p); err != nil {
				t.Fatal(err)
			}
		}
		kept(70)
	})
}
