package flushtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// SourceHarness is a kind of source under test, with the data that it reads.
type SourceHarness struct {
	// Promises contains the inputs and the guarantee of the source.
	Promises row.Inputs
	// Inputs lists the inputs that the source is opened with.
	Inputs []string
	// Open opens the source as a new process would open it, without knowledge of an earlier process. A page of the source must have fewer
	// than ten records.
	Open func(t testing.TB, inputs []string) flush.Source
	// Add makes the records with the numbers from, from+1, …, to-1 pending. Each number is a separate record.
	Add func(t testing.TB, from, to int)
}

// sourceCases are the rules that sources must keep. The function in the field "of" reports whether a source must keep the rule.
var sourceCases = []struct {
	name string
	of   func(b SourceHarness) bool
	test func(t *testing.T, b SourceHarness)
}{
	{"RecordsHaveTheInputsAskedFor", every, recordsHaveTheInputsAskedFor},
	{"AReadingEndsWithTheErrorOfItsPage", every, aReadingEndsWithTheErrorOfItsPage},
	{"APeekTakesNothing", every, aPeekTakesNothing},
	{"AWaitEndsWithWork", every, aWaitEndsWithWork},
	{"NothingPendingIsNoStage", SourceHarness.stages, nothingPendingIsNoStage},
	{"AStageIsFoundAgain", SourceHarness.stages, aStageIsFoundAgain},
	{"AnotherStageIsLeftAlone", SourceHarness.stages, anotherStageIsLeftAlone},
	{"WhatComesLaterIsAnotherStage", SourceHarness.stages, whatComesLaterIsAnotherStage},
	{"APlaceLeadsToTheNext", SourceHarness.places, aPlaceLeadsToTheNext},
	{"ChangesLeadFromPlaceToPlace", SourceHarness.changes, changesLeadFromPlaceToPlace},
	{"EveryPassDeliversEverything", SourceHarness.passes, everyPassDeliversEverything},
}

func every(SourceHarness) bool { return true }

// places reports whether the source keeps its position in the database.
func (b SourceHarness) places() bool { return b.Promises.Guarantee == row.ByPosition }

// passes reports whether each reading of the source reads all data.
func (b SourceHarness) passes() bool {
	return b.Promises.Guarantee == row.ByPass || b.Promises.Guarantee == row.ByMark
}

// stages reports whether the source freezes pending changes under an id.
func (b SourceHarness) stages() bool { return !b.places() && !b.passes() && !b.changes() }

// changes reports whether the source reads changes, beginning at a position that is recorded in the database.
func (b SourceHarness) changes() bool { return b.Promises.Guarantee == row.ByChanges }

// Source runs the suite. The argument fresh returns a source without pending changes.
func Source(t *testing.T, fresh func(t *testing.T) SourceHarness) {
	for _, c := range sourceCases {
		t.Run(c.name, func(t *testing.T) {
			if b := fresh(t); c.of(b) {
				c.test(t, b)
			}
		})
	}
}

// some is the number of records at the beginning of a case. It is so high that the records need several pages.
const some = 25

func recordsHaveTheInputsAskedFor(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	reversed := slices.Clone(b.Inputs)
	slices.Reverse(reversed)
	src := b.Open(t, b.Inputs)
	first := records(t, read(t, src, stage(t, src, "a", "")))
	again := b.Open(t, reversed)
	second := records(t, read(t, again, stage(t, again, "b", "")))
	if len(first) != some || len(second) != some {
		t.Fatalf("%d and %d records, want %d", len(first), len(second), some)
	}
	for key, texts := range first {
		slices.Reverse(texts)
		for i, name := range reversed {
			if !texts[i].OK || name != row.InputGeneration && texts[i] != second[key][i] {
				t.Errorf("record %q has %+v for %q, then %+v", key, texts[i], name, second[key][i])
			}
		}
	}
}

func aReadingEndsWithTheErrorOfItsPage(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	src := b.Open(t, b.Inputs)
	stop := errors.New("the page was not taken")
	pages := 0
	err := src.Read(t.Context(), stage(t, src, "a", ""), func(flush.Page) error { pages++; return stop })
	if !errors.Is(err, stop) || pages != 1 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

func aPeekTakesNothing(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	peeker, ok := b.Open(t, b.Inputs).(flush.Peeker)
	if !ok {
		return
	}
	seen, err := peeker.Peek(t.Context(), 5)
	if err != nil || len(seen) == 0 || len(seen[0].Inputs) != len(b.Inputs) {
		t.Errorf("peeked at %+v, %v", seen, err)
	}
	src := b.Open(t, b.Inputs)
	st := stage(t, src, "a", "")
	if got := records(t, read(t, src, st)); st.Resumed && !b.changes() || len(got) != some {
		t.Errorf("%d records are left, want %d; stage %+v", len(got), some, st)
	}
}

func aWaitEndsWithWork(t *testing.T, b SourceHarness) {
	waiter, ok := b.Open(t, b.Inputs).(flush.Waiter)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- waiter.Wait(ctx) }()
	b.Add(t, 0, some)
	if err := <-ended; err != nil {
		t.Errorf("with work: %v", err)
	}
}

func nothingPendingIsNoStage(t *testing.T, b SourceHarness) {
	src := b.Open(t, b.Inputs)
	if st, ok, err := src.Stage(t.Context(), "a", ""); ok || err != nil {
		t.Errorf("stage %+v, %v, %v", st, ok, err)
	}
	backlog(t, src, 0)
}

// A stage keeps its id until its end. Every reading of the stage returns the same parts, with the same numbers and content. A stage without
// numbered parts returns the same records at every reading.
func aStageIsFoundAgain(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	src := b.Open(t, b.Inputs)
	backlog(t, src, some)
	st := stage(t, src, "a", "")
	first := read(t, src, st)
	b.Add(t, some, some+5)
	successor := b.Open(t, b.Inputs)
	found := stage(t, successor, "b", "")
	if st.ID != "a" || st.Resumed || found.ID != "a" || !found.Resumed || found.Parts != st.Parts {
		t.Errorf("staged %+v, and found %+v", st, found)
	}
	backlog(t, successor, some+5)
	second := read(t, successor, found)
	if len(records(t, first)) != some || !maps.Equal(byPart(first), byPart(second)) {
		t.Errorf("read %v, then %v", byPart(first), byPart(second))
	}
	if exact := b.Promises.Guarantee == row.ByLedger; slices.ContainsFunc(first, func(p flush.Page) bool { return p.Part >= 0 != exact }) {
		t.Errorf("pages that the ledger knows: want %v of %v", exact, byPart(first))
	}
}

func anotherStageIsLeftAlone(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	src := b.Open(t, b.Inputs)
	st := stage(t, src, "a", "")
	pages := read(t, src, st)
	other := st
	other.ID = "another"
	if s, ok := src.(flush.Releaser); ok {
		if err := s.Done(t.Context(), other, pages[0]); !errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("a page of another stage: %v", err)
		}
	}
	if err := discard(t.Context(), b.Open(t, b.Inputs), other); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("another stage: %v", err)
	}
	successor := b.Open(t, b.Inputs)
	if left := records(t, read(t, successor, stage(t, successor, "b", ""))); len(left) != some {
		t.Errorf("%d records are left, want %d", len(left), some)
	}
}

func whatComesLaterIsAnotherStage(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	src := b.Open(t, b.Inputs)
	commit(t, src, stage(t, src, "a", ""))
	backlog(t, src, 0)
	if st, ok, err := src.Stage(t.Context(), "b", ""); ok || err != nil {
		t.Errorf("nothing is pending, and staged are %+v, %v, %v", st, ok, err)
	}
	b.Add(t, some, some+3)
	st := stage(t, src, "c", "")
	if got := records(t, read(t, src, st)); st.ID != "c" || st.Resumed || len(got) != 3 {
		t.Errorf("%d records in %+v, want 3", len(got), st)
	}
}

func aPlaceLeadsToTheNext(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	src := b.Open(t, b.Inputs)
	pages := read(t, src, stage(t, src, "a", ""))
	place := ""
	for i, p := range pages {
		if p.Move == nil || p.Move.From != place || p.Move.To == place {
			t.Fatalf("page %d of %d goes %+v, and the place is %q", i, len(pages), p.Move, place)
		}
		place = p.Move.To
	}
	// A successor continues at the position that is recorded in the database.
	successor := b.Open(t, b.Inputs)
	rest := records(t, read(t, successor, stage(t, successor, "b", pages[0].Move.To)))
	if want := some - len(pages[0].Records); len(pages) < 2 || len(rest) != want {
		t.Errorf("%d records behind the first of %d pages, want %d", len(rest), len(pages), want)
	}
	last := b.Open(t, b.Inputs)
	if st, ok, err := last.Stage(t.Context(), "c", place); err != nil {
		t.Error(err)
	} else if ok {
		if more := records(t, read(t, last, st)); len(more) > 0 {
			t.Errorf("%d records behind the last page", len(more))
		}
	}
}

// The first stage contains all records. Each later stage contains the changes since the stage before it.
func changesLeadFromPlaceToPlace(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	src := b.Open(t, b.Inputs)
	place := ""
	follow := func(src flush.Source, id string) (found []row.Record) {
		st := stage(t, src, id, place)
		for _, p := range read(t, src, st) {
			if p.Move == nil || p.Move.From != place || p.Move.To == place {
				t.Fatalf("a page goes %+v, and the place is %q", p.Move, place)
			}
			place = p.Move.To
			found = append(found, p.Records...)
		}
		if err := discard(t.Context(), src, st); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if all := follow(src, "a"); len(all) != some {
		t.Errorf("%d records of %d", len(all), some)
	}
	follow(src, "b") // contains the changes since the first stage, but there are none
	successor := b.Open(t, b.Inputs)
	b.Add(t, some, some+3)
	seen := map[string]bool{}
	for i := 0; len(seen) < 3; i++ {
		for _, r := range follow(successor, fmt.Sprint("c", i)) {
			seen[r.Key] = true
		}
		if w, ok := successor.(flush.Waiter); ok && len(seen) < 3 {
			if err := w.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func everyPassDeliversEverything(t *testing.T, b SourceHarness) {
	b.Add(t, 0, some)
	src := b.Open(t, b.Inputs)
	var passes []int64
	for _, id := range []string{"a", "b"} {
		st := stage(t, src, id, "")
		if got := records(t, read(t, src, st)); st.ID != id || st.Resumed || len(got) != some {
			t.Errorf("pass %+v has %d records, want %d", st, len(got), some)
		}
		commit(t, src, st)
		if s, ok := src.(flush.Sweeper); ok {
			number, missed := s.Pass(st)
			if missed != nil {
				t.Errorf("pass %d: %v", number, missed)
			}
			passes = append(passes, number)
		}
	}
	if len(passes) == 2 && passes[0] == passes[1] {
		t.Errorf("two passes have the number %d", passes[0])
	}
}

// stage makes a stage of the pending changes. There must be pending changes.
func stage(t testing.TB, src flush.Source, id, position string) flush.Stage {
	t.Helper()
	st, ok, err := src.Stage(t.Context(), id, position)
	if err != nil || !ok {
		t.Fatalf("stage %s as %q: %v, %v", src.Name(), id, ok, err)
	}
	return st
}

func read(t testing.TB, src flush.Source, st flush.Stage) (pages []flush.Page) {
	t.Helper()
	if err := src.Read(t.Context(), st, func(p flush.Page) error { pages = append(pages, p); return nil }); err != nil {
		t.Fatalf("read %s: %v", src.Name(), err)
	}
	return pages
}

// commit removes a stage in the same way as a flush that has written the whole stage.
func commit(t testing.TB, src flush.Source, st flush.Stage) {
	t.Helper()
	for _, p := range read(t, src, st) {
		if s, ok := src.(flush.Releaser); ok {
			if err := s.Done(t.Context(), st, p); err != nil {
				t.Fatalf("release a page of %s: %v", src.Name(), err)
			}
		}
	}
	if err := discard(t.Context(), src, st); err != nil {
		t.Fatalf("discard the stage of %s: %v", src.Name(), err)
	}
}

func discard(ctx context.Context, src flush.Source, st flush.Stage) error {
	if s, ok := src.(flush.Discarder); ok {
		return s.Discard(ctx, st)
	}
	return nil
}

func backlog(t testing.TB, src flush.Source, want int64) {
	t.Helper()
	s, ok := src.(flush.Counted)
	if !ok {
		t.Fatalf("%s stages, and does not count", src.Name())
	}
	if n, err := s.Backlog(t.Context()); n != want || err != nil {
		t.Errorf("backlog of %s is %d, %v; want %d", src.Name(), n, err, want)
	}
}

// records returns the inputs of all records, by key. If several records have the same key, it returns the inputs of the last one.
func records(t testing.TB, pages []flush.Page) map[string][]row.Raw {
	t.Helper()
	all := map[string][]row.Raw{}
	for _, p := range pages {
		for _, r := range p.Records {
			if r.Err != nil || r.Gone {
				t.Errorf("record %q is unread (%v) or gone (%v)", r.Key, r.Err, r.Gone)
			}
			all[r.Key] = r.Inputs
		}
	}
	return all
}

// byPart returns the records of each part as one text, in which they are sorted. It treats all pages without a part number as one part.
func byPart(pages []flush.Page) map[int]string {
	parts := map[int][]string{}
	for _, p := range pages {
		for _, r := range p.Records {
			parts[p.Part] = append(parts[p.Part], fmt.Sprint(r.Key, r.Inputs))
		}
	}
	shown := map[int]string{}
	for part, texts := range parts {
		slices.Sort(texts)
		shown[part] = fmt.Sprint(texts)
	}
	return shown
}
