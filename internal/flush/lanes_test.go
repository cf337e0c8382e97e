package flush_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// laned returns pages that go to the lanes by turns.
func laned(pages, lanes int) []flush.Page {
	var out []flush.Page
	for i := range pages {
		p := user(fmt.Sprint(i), "Ann")
		p.Lane = i % lanes
		out = append(out, p)
	}
	return out
}

func TestLanesWriteAtTheSameTimeAndEachInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flushtest.NewScript("s", laned(9, 3)...)
		cfg, _ := users(s)
		sink := cfg.Sink.(*fakeSink)
		var mu sync.Mutex
		order := map[int64][]int64{}
		cfg.Sink = &sinkFunc{fakeSink: sink, apply: func(
			ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch,
		) (flush.Outcome, error) {
			time.Sleep(time.Second)
			id := b.Rows[0].Values[0].Int()
			mu.Lock()
			defer mu.Unlock()
			order[id%3] = append(order[id%3], id)
			return sink.Apply(ctx, f, p, b)
		}}
		cfg.Lanes = 3
		began := time.Now()
		got, err := mustNew(t, cfg).Run(t.Context(), leader(1))
		if err != nil || got.Rows != 9 {
			t.Errorf("result is %+v, %v", got, err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %v: three lanes write three pages each in three seconds", took)
		}
		if fmt.Sprint(order) != "map[0:[0 3 6] 1:[1 4 7] 2:[2 5 8]]" {
			t.Errorf("order within lanes: %v", order)
		}
	})
}

// If a lane fails, the run fails. The other lane finishes its page, and no lane begins another.
func TestALaneThatFailsStopsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flushtest.NewScript("s", laned(100, 2)...)
		cfg, db := users(s)
		sink := cfg.Sink.(*fakeSink)
		broken := errors.New("disk full")
		cfg.Sink = &sinkFunc{fakeSink: sink, apply: func(
			ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch,
		) (flush.Outcome, error) {
			if b.Rows[0].Values[0].Int() == 6 {
				return flush.Outcome{}, broken
			}
			time.Sleep(time.Second)
			return sink.Apply(ctx, f, p, b)
		}}
		cfg.Lanes = 2
		_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
		if !errors.Is(err, broken) || strings.Count(err.Error(), broken.Error()) != 1 {
			t.Errorf("run ended with %v", err)
		}
		if db.Count("users") < 6 || db.Count("users") > 8 {
			t.Errorf("%d rows were written", db.Count("users"))
		}
		for _, call := range s.Calls() {
			if call == "discard" {
				t.Error("the stage was discarded")
			}
		}
	})
}

// If the database is slow, the reader must not fill the memory: each lane may hold two pages. Two more small pages may wait.
func TestLanesHoldFewPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		s := hooked(on("page", func() error {
			read.Add(1)
			return nil
		}), flushtest.NewScript("s", laned(100, 8)...))
		cfg, _ := users(s)
		sink := cfg.Sink.(*fakeSink)
		cfg.Sink = &sinkFunc{fakeSink: sink, apply: func(
			ctx context.Context, f flush.Fence, p *row.Plan, b flush.Batch,
		) (flush.Outcome, error) {
			time.Sleep(time.Hour)
			return sink.Apply(ctx, f, p, b)
		}}
		cfg.Lanes = 8
		go func() {
			time.Sleep(time.Minute)
			if n := read.Load(); n != 2*8+2+1 {
				t.Errorf("%d pages were read while none was written", n)
			}
		}()
		if got, err := mustNew(t, cfg).Run(t.Context(), leader(1)); err != nil || got.Rows != 100 {
			t.Errorf("result is %+v, %v", got, err)
		}
	})
}

func TestALaneThatPanicsFailsTheRun(t *testing.T) {
	s := flushtest.NewScript("s", laned(9, 3)...)
	cfg, _ := users(s)
	cfg.Sink = &sinkFunc{fakeSink: cfg.Sink.(*fakeSink), apply: func(
		context.Context, flush.Fence, *row.Plan, flush.Batch,
	) (flush.Outcome, error) {
		panic("boom")
	}}
	cfg.Lanes = 3
	_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if err == nil || !strings.Contains(err.Error(), "writing the records from s panicked: boom") {
		t.Errorf("run ended with %v", err)
	}
}

func TestAPageOfNoLaneIsRefused(t *testing.T) {
	s := flushtest.NewScript("s", laned(4, 2)...)
	cfg, db := users(s)
	_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if err == nil || !strings.Contains(err.Error(), "lane 1 of 1") || db.Count("users") > 1 {
		t.Errorf("run ended with %v and %d rows", err, db.Count("users"))
	}
}

// A page that only moves the position must also be written.
func TestAPositionMovesWithoutRows(t *testing.T) {
	s := flushtest.NewScript("s", flush.Page{Part: -1, Move: &flush.Move{To: "5"}})
	cfg, db := users(s)
	cfg.Inputs.Guarantee = row.ByPosition
	if _, err := mustNew(t, cfg).Run(t.Context(), leader(1)); err != nil || db.Place("job", "s") != "5" {
		t.Errorf("position is %q, %v", db.Place("job", "s"), err)
	}
}

// If another process has moved the position, the run reads it again, once.
func TestAPositionThatWasMovedIsReadAnew(t *testing.T) {
	s := flushtest.NewScript("s", flush.Page{Part: -1, Move: &flush.Move{From: "4", To: "5"}})
	cfg, db := users(s)
	cfg.Inputs.Guarantee = row.ByPosition
	_, err := mustNew(t, cfg).Run(t.Context(), leader(1))
	if !errors.Is(err, flush.ErrMoved) || strings.Count(strings.Join(s.Calls(), " "), "stage") != 2 {
		t.Errorf("run ended with %v after %q", err, s.Calls())
	}
	db.SetPlace("job", "s", "4")
	if _, err := mustNew(t, cfg).Run(t.Context(), leader(2)); err != nil || db.Place("job", "s") != "5" {
		t.Errorf("position is %q, %v", db.Place("job", "s"), err)
	}
}

func TestANoteOfAStageIsPassedOn(t *testing.T) {
	noted := flushtest.NewScript("s", laned(1, 1)...)
	noted.Note = "went on behind a gap"
	cfg, _ := users(noted)
	var notes []string
	cfg.OnNote = func(text string) { notes = append(notes, text) }
	if _, err := mustNew(t, cfg).Run(t.Context(), leader(1)); err != nil || fmt.Sprint(notes) != "[s: went on behind a gap]" {
		t.Errorf("notes are %q, %v", notes, err)
	}
}

// Rows that a trigger drops are neither in the table nor dead letters, so only the log can report them. A job that runs every second must
// not report them every second.
func TestRowsThatTheDatabaseLeavesOutAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, _ := users(flushtest.NewScript("s", user("1", "Ann"), user("2", "Bob")))
		sink := cfg.Sink.(*fakeSink)
		cfg.Sink = &sinkFunc{fakeSink: sink, apply: func(
			_ context.Context, _ flush.Fence, _ *row.Plan, b flush.Batch,
		) (flush.Outcome, error) {
			return flush.Outcome{Applied: true, Ignored: int64(len(b.Rows))}, nil
		}}
		var notes []string
		cfg.OnNote = func(text string) { notes = append(notes, text) }
		p := mustNew(t, cfg)
		for range 3 {
			if got, err := p.Run(t.Context(), leader(1)); err != nil || got.Rows != 0 {
				t.Errorf("result is %+v, %v", got, err)
			}
		}
		if len(notes) != 1 || !strings.Contains(notes[0], `table "users"`) || !strings.Contains(notes[0], "trigger") ||
			!strings.Contains(notes[0], "1 rows") {
			t.Errorf("notes are %q", notes)
		}
		time.Sleep(time.Hour)
		if _, err := p.Run(t.Context(), leader(1)); err != nil || len(notes) != 2 || !strings.Contains(notes[1], "6 rows") {
			t.Errorf("an hour later: %q, %v", notes, err)
		}
	})
}
