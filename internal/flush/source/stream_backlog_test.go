package source

import (
	"errors"
	"testing"

	"baton/internal/redisconn/redistest"
)

func TestBacklogOfAStreamIsKnownWithoutReadingIt(t *testing.T) {
	g := newRig(t)
	backlog := func(want int64) {
		t.Helper()
		for _, src := range []*Stream{g.stream(StreamOptions{}), g.stream(StreamOptions{BatchBytes: 1})} {
			if n, err := src.Backlog(t.Context()); n != want || err != nil {
				t.Errorf("backlog %d, %v; want %d", n, err, want)
			}
		}
	}
	backlog(0)
	g.fillStream(1, 20, nil)
	backlog(20)
	db := newDatabase()
	db.drain(t, g.stream(StreamOptions{}))
	backlog(0)
	g.fillStream(21, 27, nil)
	backlog(7)
	g.Do("XTRIM", "events", "MINID", "15")
	backlog(7)
	g.Do("XDEL", "events", "23-0")
	backlog(7) // never too few
	g.Do("XTRIM", "events", "MINID", "22")
	backlog(5)                                // and exact again
	db.SetPlace("events", "events", "22-0 0") // written with a Redis that did not count
	g.Do("HSET", eventsPositions, "events", "22-0 0")
	backlog(4)
	db.drain(t, g.stream(StreamOptions{}))
	if p := db.place(); p != "27-0 27" {
		t.Errorf("position %q", p)
	}
	if n, err := g.stream(StreamOptions{Job: "late", Start: "end"}).Backlog(t.Context()); n != 0 || err != nil {
		t.Errorf("of a job that begins at the end: %d, %v", n, err)
	}
	if n, err := g.stream(StreamOptions{Job: "mid", Start: "24-0"}).Backlog(t.Context()); n != 3 && n != 5 || err != nil {
		t.Errorf("of a job that begins in the middle: %d, %v", n, err)
	}
}

// Entries that were deleted before they were read must not count as pending for ever.
func TestPositionCountsWhatWasDeletedBeforeIt(t *testing.T) {
	g := newRig(t)
	g.fillStream(1, 5, nil)
	db := newDatabase()
	db.drain(t, g.stream(StreamOptions{}))
	g.fillStream(6, 9, nil)
	g.Do("XDEL", "events", "7-0", "8-0")
	db.drain(t, g.stream(StreamOptions{}))
	if p := db.place(); p != "9-0 9" {
		t.Errorf("position %q", p)
	}
}

// The leader knows that a page is committed before this is recorded at the end of the run.
func TestBacklogOfTheLeaderShrinksWithEveryPage(t *testing.T) {
	g := newRig(t)
	g.fillStream(1, 30, nil)
	src, db := g.stream(StreamOptions{PageRows: 10}), newDatabase()
	noted := false // the first position is recorded before anything is read
	src.Store = watched(g.store, func(step string) error {
		if step != redistest.Before("stream_trim") {
			return nil
		}
		if !noted {
			noted = true
			return nil
		}
		return errCrash
	})
	if _, err := db.flush(t.Context(), src, nil); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	for want, s := range map[int64]*Stream{0: src, 30: g.stream(StreamOptions{})} {
		if n, err := s.Backlog(t.Context()); n != want || err != nil {
			t.Errorf("backlog %d, %v; want %d", n, err, want)
		}
	}
}
