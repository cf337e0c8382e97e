package source

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
)

func TestStreamIsTrimmedBehindEverybodyAndKeepsItsAnchor(t *testing.T) {
	g := newRig(t)
	zero, hour := time.Duration(0), time.Hour
	trimming := func() *Stream { return g.stream(StreamOptions{Retain: &zero}) }
	left := func(want string) {
		t.Helper()
		if got := g.ids(); got != want {
			t.Errorf("left: %s; want %s", got, want)
		}
	}
	db, other := newDatabase(), newDatabase()
	g.fillStream(1, 5, nil)
	db.drain(t, trimming())
	left("5")
	g.fillStream(6, 8, nil)
	// Another job has begun, and has read nothing yet.
	slow := g.stream(StreamOptions{Job: "slow"})
	stageNow(t, slow, "a")
	db.drain(t, trimming())
	left("5 6 7 8")
	other.drain(t, slow)
	left("5 6 7 8") // it does not trim
	g.fillStream(9, 9, nil)
	db.drain(t, trimming())
	left("8 9")
	other.drain(t, slow)
	g.fillStream(10, 11, nil)
	db.drain(t, g.stream(StreamOptions{Retain: &hour})) // the ids are from long ago, so no entry is young
	left("9 10 11")
	other.drain(t, slow)
	if len(db.rows()) != 11 || len(other.rows()) != 7 {
		t.Errorf("%d and %d rows, want 11 and the 7 since the other began", len(db.rows()), len(other.rows()))
	}
	// Entries of today stay for an hour. Without retain, all entries stay.
	for range 2 {
		g.Do("XADD", "events", "*", "n", 1)
	}
	other.drain(t, slow)
	db.drain(t, g.stream(StreamOptions{Retain: &hour}))
	if n := g.Num("XLEN", "events"); n != 2 {
		t.Errorf("left: %s; want the two of today", g.ids())
	}
}

// Whole nodes of a stream are trimmed by the thousand, and the rest of a node by a few entries. If Redis keeps all entries in one node, all
// are trimmed by a few.
func TestLongStreamIsTrimmedInSteps(t *testing.T) {
	for name, c := range map[string]struct {
		nodeBytes int // 0: as usual
		steps     int64
	}{
		"usual nodes":     {0, 3 + 1},
		"one single node": {16 << 20, 26},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			if c.nodeBytes > 0 {
				g.Do("CONFIG", "SET", "stream-node-max-entries", 0, "stream-node-max-bytes", c.nodeBytes)
			}
			g.trimsInSteps(c.steps)
		})
	}
}

// trimsInSteps flushes a long stream. Afterwards only the anchor is left.
func (g *rig) trimsInSteps(want int64) {
	g.T.Helper()
	zero := time.Duration(0)
	for lo := 1; lo <= 25_050; lo += 1000 {
		g.fillStream(lo, min(lo+999, 25_050), nil)
	}
	var steps atomic.Int64 // an aborted request may still be on its way when the flush has ended
	src := g.stream(StreamOptions{Retain: &zero, Inputs: []string{"n"}})
	db := newDatabase()
	src.Store = watched(g.store, func(step string) error {
		if step == redistest.Before("stream_trim") {
			steps.Add(1)
		}
		return nil
	})
	if _, err := db.flush(g.T.Context(), src, nil); err != nil {
		g.T.Fatal(err)
	}
	const begun = 1 // the job's place is recorded before anything is read
	if got := g.ids(); got != "25050" || steps.Load() != begun+want || len(db.rows()) != 25_050 {
		g.T.Errorf("after %d steps left: %.40s, of %d rows", steps.Load(), got, len(db.rows()))
	}
}

// A large anchor may stand behind a small first entry. No script may copy it, so it is looked for outside of the script.
func TestLargeAnchorBehindASmallEntryIsNotCopied(t *testing.T) {
	g := newRig(t)
	g.fillStream(1, 1, nil)
	g.Do("XADD", "events", "2-0", "n", strings.Repeat("x", largeAnchor+1))
	src, db := g.stream(StreamOptions{}), newDatabase()
	db.drain(t, src)
	g.Do("CONFIG", "RESETSTAT")
	if err := src.Discard(t.Context(), flush.Stage{}); err != nil {
		t.Fatal(err)
	}
	if stats := g.Str("INFO", "commandstats"); strings.Count(stats, "cmdstat_xrange:calls=1,") != 1 {
		t.Errorf("the anchor was not looked for exactly once:\n%s", stats)
	}
	if got := g.Str("HGET", eventsPositions, "events"); got != "2-0 2" {
		t.Errorf("recorded %q", got)
	}
}
