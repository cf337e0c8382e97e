package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
)

// gapCase is an event in a stream whose entries 1 to 5 were read.
type gapCase struct {
	what   string
	befall func(g *rig)
	say    string // a part of the error; "" for no gap
	rest   string // the entries that are read then; if there is a gap, with on_gap: continue
}

func gapCases() []gapCase {
	add := func(from, to int) func(*rig) { return func(g *rig) { g.fillStream(from, to, nil) } }
	do := func(name string, args ...any) func(*rig) { return func(g *rig) { g.Do(name, args...) } }
	all := func(steps ...func(*rig)) func(*rig) {
		return func(g *rig) {
			for _, step := range steps {
				step(g)
			}
		}
	}
	return []gapCase{
		{"nothing", all(), "", ""},
		{"more entries", add(6, 8), "", "6 7 8"},
		{"read entries trimmed", all(add(6, 8), do("XTRIM", "events", "MINID", "4")), "", "6 7 8"},
		{"the position trimmed, nothing after it", all(add(6, 8), do("XTRIM", "events", "MINID", "6")), "", "6 7 8"},
		{"all that was read trimmed", do("XTRIM", "events", "MAXLEN", 0), "", ""},
		{"all trimmed, then more", all(do("XTRIM", "events", "MAXLEN", 0), add(6, 7)), "", "6 7"},
		{"unread entries trimmed", all(add(6, 10), do("XTRIM", "events", "MINID", "8")), "2 entries after it were trimmed", "8 9 10"},
		{"all trimmed, unread ones too", all(add(6, 10), do("XTRIM", "events", "MAXLEN", 0)), "5 entries after it were trimmed", ""},
		{"the position deleted", all(add(6, 8), do("XDEL", "events", "5-0")), "", "6 7 8"},
		{"the last one deleted, nothing follows", do("XDEL", "events", "5-0"), "", ""},
		{"an unread one deleted on purpose", all(add(6, 8), do("XDEL", "events", "7-0")), "", "6 8"},
		{"a read one deleted", all(add(6, 8), do("XDEL", "events", "3-0")), "", "6 7 8"},
		{"the position and an unread one deleted", all(add(6, 8), do("XDEL", "events", "5-0", "7-0")), "some may not have been read",
			"6 8"},
		{"the position and all behind it deleted", all(add(6, 7), do("XDEL", "events", "5-0", "6-0", "7-0")),
			"some may not have been read", ""},
		{"the last id set forward", all(do("XSETID", "events", "50-0"), add(60, 61)), "", "60 61"},
		{"the stream deleted", do("DEL", "events"), "the stream is gone", ""},
		{"made anew with low ids", all(do("DEL", "events"), add(1, 3)), "before the position", ""},
		{"made anew with high ids", all(do("DEL", "events"), add(11, 13)), "only 3 entries were ever added to the stream, but 5 were read",
			"11 12 13"},
		{"made anew with ids around it", all(do("DEL", "events"), add(1, 3), add(11, 13)), "never deleted, so Redis has lost data",
			"11 12 13"},
	}
}

func TestGapIsNoticedCountedAndPassedOnlyIfAllowed(t *testing.T) {
	for _, c := range gapCases() {
		t.Run(c.what, func(t *testing.T) {
			g := newRig(t)
			db := newDatabase()
			g.fillStream(1, 5, nil)
			db.drain(t, g.stream(StreamOptions{}))
			before, place := db.rows(), db.place()
			c.befall(g)
			_, err := db.flush(t.Context(), g.stream(StreamOptions{}), nil)
			if c.say == "" && err != nil || c.say != "" && (!errors.Is(err, flush.ErrGap) || !strings.Contains(err.Error(), c.say)) {
				t.Fatalf("flush: %v; want to be told %q", err, c.say)
			}
			if c.say != "" {
				if db.place() != place || len(db.rows()) != len(before) {
					t.Errorf("stopped, and yet the position is %q", db.place())
				}
				src := g.stream(StreamOptions{OnGap: "continue"})
				st, ok, err := src.Stage(t.Context(), "a", place)
				if err != nil || !ok || !strings.Contains(st.Note, c.say) {
					t.Fatalf("continue: staged %v, %v, note %q", ok, err, st.Note)
				}
				db.drain(t, src)
			}
			var got []string
			for i := range 99 {
				if id := fmt.Sprintf("%d-0", i); db.rows()[id] != before[id] {
					got = append(got, fmt.Sprint(i))
				}
			}
			if strings.Join(got, " ") != c.rest {
				t.Errorf("read %v, want %s", got, c.rest)
			}
			// The job has continued after the gap, and reads newer entries.
			after := g.stream(StreamOptions{})
			db.drain(t, after)
			g.fillStream(100, 101, nil)
			db.drain(t, after)
			if db.rows()["101-0"] == "" || db.rows()["100-0"] == "" {
				t.Error("what came then was not read")
			}
			if n, err := after.Backlog(t.Context()); n != 0 || err != nil {
				t.Errorf("backlog %d, %v", n, err)
			}
		})
	}
}

// A producer trims by MAXLEN while the source reads. Entries that were not read must not be skipped silently.
func TestStreamTrimmedWhileItIsReadIsNoticed(t *testing.T) {
	for _, carryOn := range []bool{false, true} {
		g := newRig(t)
		g.fillStream(1, 30, nil)
		o := StreamOptions{PageRows: 10, OnGap: "stop"}
		if carryOn {
			o.OnGap = "continue"
		}
		src, db := g.stream(o), newDatabase()
		reads := 0 // how often the first page was read: it begins with one entry, and then four
		src.Store = watched(g.store, func(step string) error {
			if step == redistest.After("XRANGE") {
				reads++
			}
			if step == redistest.After("XRANGE") && reads == 3 {
				g.Do("XTRIM", "events", "MINID", "16")
			}
			return nil
		})
		_, err := db.flush(t.Context(), src, nil)
		if !carryOn && (!errors.Is(err, flush.ErrGap) || !strings.Contains(err.Error(), "5 entries")) || carryOn && err != nil {
			t.Errorf("on_gap %s: %v", o.OnGap, err)
		}
		if db.place() != "10-0 10" && db.place() != "" {
			t.Errorf("position %q", db.place())
		}
		if carryOn {
			st, ok, err := src.Stage(t.Context(), "a", db.place())
			if !ok || err != nil || !strings.Contains(st.Note, "5 entries") {
				t.Errorf("the next stage: %v, %v, note %q", ok, err, st.Note)
			}
			db.drain(t, src)
			if len(db.rows()) != 25 {
				t.Errorf("%d rows, want 1 to 10 and 16 to 30", len(db.rows()))
			}
		}
	}
}
