package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/source/place"
	"baton/internal/redisconn/redistest"
)

// The transaction must return the same state of a stream as the script, after every event in the stream. The transaction must read no
// entry.
func TestLooksByTransactionAndByScriptAreAlike(t *testing.T) {
	for _, c := range gapCases() {
		t.Run(c.what, func(t *testing.T) {
			g := newRig(t)
			src := g.stream(StreamOptions{})
			g.fillStream(1, 5, nil)
			for _, noted := range []string{"", "5-0 5"} {
				if noted != "" {
					g.Do("HSET", eventsPositions, "events", noted)
					c.befall(g)
				}
				for _, at := range []string{"", "0-0", "3-0", "5-0", "6-0", "100-0"} {
					conn, err := g.store.Conn(t.Context(), "events")
					if err != nil {
						t.Fatal(err)
					}
					got, ok, err := src.briefly(t.Context(), conn, at)
					if _ = conn.Close(); err != nil || !ok {
						t.Fatalf("at %q: %v, %v", at, ok, err)
					}
					want, err := src.lookByScript(t.Context(), at, "")
					if err != nil {
						t.Fatal(err)
					}
					got.FirstSize, got.AnchorSize = 0, 0
					if diff := cmp.Diff(want, got, cmp.AllowUnexported(place.ID{})); diff != "" {
						t.Errorf("at %q: %s", at, diff)
					}
				}
			}
		})
	}
}

// Large entries are read only once each, and their sizes are known without reading them again.
func TestLargeEntriesAreNotReadAgainAsAnchors(t *testing.T) {
	g := newRig(t)
	large := strings.Repeat("x", largeAnchor+1)
	for i := 1; i <= 6; i++ {
		g.Do("XADD", "events", fmt.Sprintf("%d-0", i), "n", large)
	}
	src, db := g.stream(StreamOptions{BatchBytes: 2 * largeAnchor}), newDatabase()
	db.drain(t, src)
	if n := len(db.rows()); n != 6 || db.place() != "6-0 6" {
		t.Errorf("%d rows, position %q", n, db.place())
	}
	l, err := src.look(t.Context(), "6-0", "")
	if want := len("n") + len(large); err != nil || l.FirstSize != want || l.AnchorSize != want {
		t.Errorf("%+v, %v; want sizes of %d", l, err, want)
	}
	g.Do("XADD", "events", "7-0", "n", "1")
	db.drain(t, src)
	if n := len(db.rows()); n != 7 || db.place() != "7-0 7" {
		t.Errorf("%d rows, position %q", n, db.place())
	}
}

// A large anchor proves, like any other, that no later entry was trimmed before it was read.
func TestStreamOfLargeEntriesTrimmedWhileItIsReadIsNoticed(t *testing.T) {
	for cut, gap := range map[string]bool{"4-0": false, "7-0": true} {
		g := newRig(t)
		large := strings.Repeat("x", largeAnchor+1)
		for i := 1; i <= 10; i++ {
			g.Do("XADD", "events", fmt.Sprintf("%d-0", i), "n", large)
		}
		src, db := g.stream(StreamOptions{BatchBytes: 4 * largeAnchor}), newDatabase()
		reads := 0
		src.Store = watched(g.store, func(step string) error {
			if step == redistest.After("XRANGE") {
				if reads++; reads == 4 { // four of them are read, one by one
					g.Do("XTRIM", "events", "MINID", cut)
				}
			}
			return nil
		})
		_, err := db.flush(t.Context(), src, nil)
		if gap != errors.Is(err, flush.ErrGap) || !gap && (err != nil || len(db.rows()) != 10) {
			t.Errorf("trimmed before %s: %v, %d rows, %d reads", cut, err, len(db.rows()), reads)
		}
		if gap && err != nil && !strings.Contains(err.Error(), "2 entries") {
			t.Error(err)
		}
	}
}

// The recorded place and the entries after it must belong to the same moment, even while a run records another place.
func TestBacklogOfAStreamIsOfOneMoment(t *testing.T) {
	g := newRig(t)
	src := g.stream(StreamOptions{})
	g.fillStream(1, 10, nil)
	g.Do("HSET", eventsPositions, "events", "2-0 2")
	noted := false
	src.Store = watched(g.store, func(step string) error {
		if step == redistest.After("HGET") && !noted {
			noted = true
			g.Do("HSET", eventsPositions, "events", "10-0 10")
		}
		return nil
	})
	if n, err := src.Backlog(t.Context()); err != nil || n != 0 || !noted {
		t.Errorf("%d entries are pending, %v; noted meanwhile: %v", n, err, noted)
	}
}
