package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
)

const eventsPositions = "{events}:baton:positions"

func (g *rig) stream(o StreamOptions) *Stream {
	g.t.Helper()
	return streamOn(g.t, g.store, o)
}

func streamOn(t testing.TB, store *Store, o StreamOptions) *Stream {
	t.Helper()
	if o.Job == "" {
		o.Job = "events"
	}
	if o.Key == "" {
		o.Key = "events"
	}
	if o.Inputs == nil {
		o.Inputs = []string{"$id", "n"}
	}
	src, err := NewStream(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// fillStream adds entries with the ids from-0 to to-0, and adds them to want.
func (g *rig) fillStream(from, to int, want map[string]string) {
	g.t.Helper()
	for i := from; i <= to; i++ {
		id := fmt.Sprintf("%d-0", i)
		if err := g.conn.Send("XADD", "events", id, "n", i, "other", "x"); err != nil {
			g.t.Fatal(err)
		}
		if want != nil {
			want[id] = fmt.Sprintf("%s|%d", id, i)
		}
	}
	g.do("")
}

// ids are those of the stream's entries, in short: "3 4 5" for 3-0, 4-0 and 5-0.
func (g *rig) ids() string {
	g.t.Helper()
	entries, err := redis.Values(g.do("XRANGE", "events", "-", "+"), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		id, _, err := entryOf(e)
		if err != nil {
			g.t.Fatal(err)
		}
		ids = append(ids, strings.TrimSuffix(string(id), "-0"))
	}
	return strings.Join(ids, " ")
}

func TestStreamIsReadOnceAndLeftAsItIs(t *testing.T) {
	g := newRig(t)
	db, want := newDatabase(), map[string]string{}
	src := g.stream(StreamOptions{PageRows: 100, MemoryBudget: 64 << 10})
	if more, err := db.flushOnce(t.Context(), src, nil); more || err != nil {
		t.Fatalf("of no stream: %v, %v", more, err)
	}
	g.fillStream(1, 1234, want)
	db.drain(t, src)
	same(t, "rows", want, db.rows)
	if p := db.places["events"]; p != "1234-0 1234" {
		t.Errorf("position %q", p)
	}
	g.fillStream(1235, 1237, want)
	db.drain(t, g.stream(StreamOptions{})) // another process
	same(t, "rows after more", want, db.rows)
	if n := g.num("XLEN", "events"); n != 1237 {
		t.Errorf("the stream has %d entries, want all 1237", n)
	}
	if noted := g.str("HGET", eventsPositions, "events"); noted != "1237-0 1237" {
		t.Errorf("noted %q", noted)
	}
}

func TestPagesOfAStreamMoveThePositionFromEndToEnd(t *testing.T) {
	g := newRig(t)
	g.fillStream(1, 25, nil)
	src := g.stream(StreamOptions{PageRows: 10})
	st := stageNow(t, src, "a")
	if want := (flush.Stage{ID: "a", Size: 25}); st != want {
		t.Errorf("staged %+v, want %+v", st, want)
	}
	g.fillStream(26, 30, nil) // belongs to the next stage
	var moves []flush.Move
	var sizes []int
	for _, p := range readAll(t, src, st) {
		moves, sizes = append(moves, *p.Move), append(sizes, len(p.Records))
		if p.Part != -1 {
			t.Errorf("part %d", p.Part)
		}
	}
	if diff := cmp.Diff([]flush.Move{{From: "", To: "10-0 10"}, {From: "10-0 10", To: "20-0 20"}, {From: "20-0 20", To: "25-0 25"}}, moves); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{10, 10, 5}, sizes); diff != "" {
		t.Error(diff)
	}
	if err := src.Read(t.Context(), flush.Stage{ID: "b"}, nil); err == nil {
		t.Error("a stage that was never made is read")
	}
}

func TestFirstReadingBeginsWhereItIsTold(t *testing.T) {
	for _, c := range []struct{ start, want, place string }{
		{"", "1 2 3 4 5 6", "6-0 6"},
		{"beginning", "1 2 3 4 5 6", "6-0 6"},
		{"end", "6", "6-0 6"},
		{"3-0", "4 5 6", "6-0 6"},
		{"3", "4 5 6", "6-0 6"},
		{"2-7", "3 4 5 6", "6-0 6"},
		{"99-0", "", ""},
	} {
		t.Run(c.start, func(t *testing.T) {
			g := newRig(t)
			g.fillStream(1, 5, nil)
			src, db := g.stream(StreamOptions{Start: c.start}), newDatabase()
			db.drain(t, src)
			g.fillStream(6, 6, nil)
			db.drain(t, src)
			var got []string
			for i := range 9 {
				if db.rows[fmt.Sprintf("%d-0", i)] != "" {
					got = append(got, fmt.Sprint(i))
				}
			}
			if strings.Join(got, " ") != c.want || db.places["events"] != c.place {
				t.Errorf("read %v up to %q, want %s up to %q", got, db.places["events"], c.want, c.place)
			}
		})
	}
	t.Run("end of no stream yet", func(t *testing.T) {
		g := newRig(t)
		src, db := g.stream(StreamOptions{Start: "end"}), newDatabase()
		db.drain(t, src)
		want := map[string]string{}
		g.fillStream(1, 3, want)
		db.drain(t, src)
		same(t, "rows", want, db.rows)
	})
	for _, o := range []StreamOptions{{Start: "now"}, {Start: "1-x"}, {OnGap: "ignore"}} {
		o.Job, o.Key = "a", "b"
		if _, err := NewStream(nil, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestFieldsOfEntriesAreReadAsTheyAre(t *testing.T) {
	g := newRig(t)
	odd := "\x00\xff\n"
	g.do("XADD", "events", "1-0", "n", odd, "$id", "mine", "", "empty name")
	g.do("XADD", "events", "2-0", "x", "1")
	g.do("XADD", "events", "3-0", "n", "1", "n", "2")
	g.do("XADD", "events", "4-0", "x", "1", "x", "2", "n", "")
	g.do("XADD", "events", "5-0", "n", "5", "$id", "mine")
	src := g.stream(StreamOptions{Inputs: []string{"n", "$id", ""}, MemoryBudget: 1})
	var got []string
	for _, p := range readAll(t, src, stageNow(t, src, "a")) {
		for _, r := range p.Records {
			text := r.Key + ": " + rowText(r)
			if r.Err != nil {
				text += " " + r.Err.Error()
			}
			got = append(got, text)
		}
	}
	want := []string{
		"1-0: " + odd + "|1-0|empty name", "2-0: -|2-0|-", `3-0: 1|3-0|- field "n" is there more than once, also with "2"`,
		"4-0: |4-0|-", "5-0: 5|5-0|-",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A page ends when it is full by rows or by bytes, and no reply is much longer than
// the budget allows.
func TestStreamIsReadWithinItsMemory(t *testing.T) {
	g := newRig(t)
	long := strings.Repeat("x", 100_000)
	for i := 1; i <= 100; i++ {
		g.do("XADD", "events", fmt.Sprintf("%d-0", i), "n", long)
	}
	src := g.stream(StreamOptions{MemoryBudget: 4 << 20})
	rows := 0
	for _, p := range readAll(t, src, stageNow(t, src, "a")) {
		size := 0
		for _, r := range p.Records {
			size += len(r.Inputs[1].Text)
		}
		rows += len(p.Records)
		if size > 1<<20+256<<10+len(long) {
			t.Errorf("a page of %d rows has %d bytes", len(p.Records), size)
		}
	}
	if rows != 100 {
		t.Errorf("%d rows", rows)
	}
}

// gapCase is what befalls a stream of which 1 to 5 were read.
type gapCase struct {
	what   string
	befall func(g *rig)
	say    string // of the error; "" for no gap
	rest   string // what is read then, with on_gap: continue if it is a gap
}

func gapCases() []gapCase {
	add := func(from, to int) func(*rig) { return func(g *rig) { g.fillStream(from, to, nil) } }
	do := func(name string, args ...any) func(*rig) { return func(g *rig) { g.do(name, args...) } }
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
		{"unread entries trimmed", all(add(6, 10), do("XTRIM", "events", "MINID", "8")), "2 entries behind it were trimmed", "8 9 10"},
		{"all trimmed, unread ones too", all(add(6, 10), do("XTRIM", "events", "MAXLEN", 0)), "5 entries behind it were trimmed", ""},
		{"the position deleted", all(add(6, 8), do("XDEL", "events", "5-0")), "", "6 7 8"},
		{"the last one deleted, nothing follows", do("XDEL", "events", "5-0"), "", ""},
		{"an unread one deleted on purpose", all(add(6, 8), do("XDEL", "events", "7-0")), "", "6 8"},
		{"a read one deleted", all(add(6, 8), do("XDEL", "events", "3-0")), "", "6 7 8"},
		{"the position and an unread one deleted", all(add(6, 8), do("XDEL", "events", "5-0", "7-0")), "some may not have been read", "6 8"},
		{"the position and all behind it deleted", all(add(6, 7), do("XDEL", "events", "5-0", "6-0", "7-0")), "some may not have been read", ""},
		{"the last id set forward", all(do("XSETID", "events", "50-0"), add(60, 61)), "", "60 61"},
		{"the stream deleted", do("DEL", "events"), "the stream is gone", ""},
		{"made anew with low ids", all(do("DEL", "events"), add(1, 3)), "before the position", ""},
		{"made anew with high ids", all(do("DEL", "events"), add(11, 13)), "3 entries in all, fewer than the 5", "11 12 13"},
		{"made anew with ids around it", all(do("DEL", "events"), add(1, 3), add(11, 13)), "never deleted, so Redis has lost data", "11 12 13"},
	}
}

func TestGapIsNoticedCountedAndPassedOnlyIfAllowed(t *testing.T) {
	for _, c := range gapCases() {
		t.Run(c.what, func(t *testing.T) {
			g := newRig(t)
			db := newDatabase()
			g.fillStream(1, 5, nil)
			db.drain(t, g.stream(StreamOptions{}))
			before, place := maps.Clone(db.rows), db.places["events"]
			c.befall(g)
			_, err := db.flushOnce(t.Context(), g.stream(StreamOptions{}), nil)
			if c.say == "" && err != nil || c.say != "" && (!errors.Is(err, flush.ErrGap) || !strings.Contains(err.Error(), c.say)) {
				t.Fatalf("flush: %v; want to be told %q", err, c.say)
			}
			if c.say != "" {
				if db.places["events"] != place || len(db.rows) != len(before) {
					t.Errorf("stopped, and yet the position is %q", db.places["events"])
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
				if id := fmt.Sprintf("%d-0", i); db.rows[id] != before[id] {
					got = append(got, fmt.Sprint(i))
				}
			}
			if strings.Join(got, " ") != c.rest {
				t.Errorf("read %v, want %s", got, c.rest)
			}
			// It is over, and what comes then is read.
			after := g.stream(StreamOptions{})
			db.drain(t, after)
			g.fillStream(100, 101, nil)
			db.drain(t, after)
			if db.rows["101-0"] == "" || db.rows["100-0"] == "" {
				t.Error("what came then was not read")
			}
			if n, err := after.Backlog(t.Context()); n != 0 || err != nil {
				t.Errorf("backlog %d, %v", n, err)
			}
		})
	}
}

// A producer trims by MAXLEN while we read: what we have not read is not passed in silence.
func TestStreamTrimmedWhileItIsReadIsNoticed(t *testing.T) {
	for _, carryOn := range []bool{false, true} {
		g := newRig(t)
		g.fillStream(1, 30, nil)
		o := StreamOptions{PageRows: 10, OnGap: "stop"}
		if carryOn {
			o.OnGap = "continue"
		}
		src, db := g.stream(o), newDatabase()
		once := false
		src.observe = func(step string) error {
			if step == stepEntriesRead && !once {
				once = true
				g.do("XTRIM", "events", "MINID", "16")
			}
			return nil
		}
		_, err := db.flushOnce(t.Context(), src, nil)
		if !carryOn && (!errors.Is(err, flush.ErrGap) || !strings.Contains(err.Error(), "5 entries")) || carryOn && err != nil {
			t.Errorf("on_gap %s: %v", o.OnGap, err)
		}
		if db.places["events"] != "10-0 10" && db.places["events"] != "" {
			t.Errorf("position %q", db.places["events"])
		}
		if carryOn {
			st, ok, err := src.Stage(t.Context(), "a", db.places["events"])
			if !ok || err != nil || !strings.Contains(st.Note, "5 entries") {
				t.Errorf("the next stage: %v, %v, note %q", ok, err, st.Note)
			}
			db.drain(t, src)
			if len(db.rows) != 25 {
				t.Errorf("%d rows, want 1 to 10 and 16 to 30", len(db.rows))
			}
		}
	}
}

func TestBacklogOfAStreamIsKnownWithoutReadingIt(t *testing.T) {
	g := newRig(t)
	backlog := func(want int64) {
		t.Helper()
		for _, src := range []*Stream{g.stream(StreamOptions{}), g.stream(StreamOptions{MemoryBudget: 1})} {
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
	g.do("XTRIM", "events", "MINID", "15")
	backlog(7)
	g.do("XDEL", "events", "23-0")
	backlog(7) // never too few
	g.do("XTRIM", "events", "MINID", "22")
	backlog(5)                     // and exact again
	db.places["events"] = "22-0 0" // of a Redis that did not count
	g.do("HSET", eventsPositions, "events", "22-0 0")
	backlog(4)
	db.drain(t, g.stream(StreamOptions{}))
	if p := db.places["events"]; p != "27-0 27" {
		t.Errorf("position %q", p)
	}
	if n, err := g.stream(StreamOptions{Job: "late", Start: "end"}).Backlog(t.Context()); n != 0 || err != nil {
		t.Errorf("of a job that begins at the end: %d, %v", n, err)
	}
	if n, err := g.stream(StreamOptions{Job: "mid", Start: "24-0"}).Backlog(t.Context()); n != 3 && n != 5 || err != nil {
		t.Errorf("of a job that begins in the middle: %d, %v", n, err)
	}
}

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
	db.drain(t, g.stream(StreamOptions{Retain: &hour})) // by ids of long ago nothing is young
	left("9 10 11")
	other.drain(t, slow)
	if len(db.rows) != 11 || len(other.rows) != 7 {
		t.Errorf("%d and %d rows, want 11 and the 7 since the other began", len(db.rows), len(other.rows))
	}
	// Entries of today stay for an hour; no retain at all leaves everything.
	for range 2 {
		g.do("XADD", "events", "*", "n", 1)
	}
	other.drain(t, slow)
	db.drain(t, g.stream(StreamOptions{Retain: &hour}))
	if n := g.num("XLEN", "events"); n != 2 {
		t.Errorf("left: %s; want the two of today", g.ids())
	}
}

// Only whole nodes of a stream go at a time, and yet all of it goes.
func TestLongStreamIsTrimmedInSteps(t *testing.T) {
	g := newRig(t)
	zero := time.Duration(0)
	for lo := 1; lo <= 25_050; lo += 1000 {
		g.fillStream(lo, min(lo+999, 25_050), nil)
	}
	steps := 0
	src := g.stream(StreamOptions{Retain: &zero, Inputs: []string{"n"}})
	db := newDatabase()
	src.observe = func(step string) error {
		if step == stepTrim {
			steps++
		}
		return nil
	}
	if _, err := db.flushOnce(t.Context(), src, nil); err != nil {
		t.Fatal(err)
	}
	if got := g.ids(); got != "25050" || steps != 4 || len(db.rows) != 25_050 {
		t.Errorf("after %d steps left: %.40s, of %d rows", steps, got, len(db.rows))
	}
}

// The highest ids there are: Lua counts to 2^53 only.
func TestIdsOf64BitsAreCompared(t *testing.T) {
	g := newRig(t)
	zero := time.Duration(0)
	const most = uint64(math.MaxUint64)
	for _, id := range []string{fmt.Sprintf("9-%d", most-1), fmt.Sprintf("9-%d", most), "10-1", fmt.Sprintf("%d-%d", most-1, 7), fmt.Sprintf("%d-0", most)} {
		g.do("XADD", "events", id, "n", 1)
	}
	src, db := g.stream(StreamOptions{Retain: &zero, PageRows: 1}), newDatabase()
	g.do("HSET", eventsPositions, "a", fmt.Sprintf("9-%d 2", most), "b", fmt.Sprintf("9-%d 1", most-1))
	db.drain(t, src)
	if n := g.num("XLEN", "events"); n != 5 {
		t.Errorf("left: %s; want all, as the first is somebody's position", g.ids())
	}
	g.do("HDEL", eventsPositions, "a", "b")
	g.do("HSET", eventsPositions, "other", fmt.Sprintf("%d-7 4", most-1))
	db.drain(t, src)
	if len(db.rows) != 5 {
		t.Errorf("rows: %v", db.rows)
	}
	if want := fmt.Sprintf("%d-7 %d", most-1, most); g.ids() != want {
		t.Errorf("left: %s; want %s", g.ids(), want)
	}
}

// Entries that were deleted before they were read do not count as pending for ever.
func TestPositionCountsWhatWasDeletedBeforeIt(t *testing.T) {
	g := newRig(t)
	g.fillStream(1, 5, nil)
	db := newDatabase()
	db.drain(t, g.stream(StreamOptions{}))
	g.fillStream(6, 9, nil)
	g.do("XDEL", "events", "7-0", "8-0")
	db.drain(t, g.stream(StreamOptions{}))
	if p := db.places["events"]; p != "9-0 9" {
		t.Errorf("position %q", p)
	}
}

// The leader knows that a page is committed before it is noted at the end of the run.
func TestBacklogOfTheLeaderShrinksWithEveryPage(t *testing.T) {
	g := newRig(t)
	g.fillStream(1, 30, nil)
	src, db := g.stream(StreamOptions{PageRows: 10}), newDatabase()
	src.observe = func(step string) error {
		if step == stepTrim {
			return errCrash
		}
		return nil
	}
	if _, err := db.flushOnce(t.Context(), src, nil); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	for want, s := range map[int64]*Stream{0: src, 30: g.stream(StreamOptions{})} {
		if n, err := s.Backlog(t.Context()); n != want || err != nil {
			t.Errorf("backlog %d, %v; want %d", n, err, want)
		}
	}
}

// A user who may read and nothing else is served, but noted nowhere.
func TestStreamIsReadByAUserWhoMayOnlyRead(t *testing.T) {
	g := newRig(t)
	want := map[string]string{}
	g.fillStream(1, 5, want)
	g.do("ACL", "SETUSER", "default", "-@write")
	db := newDatabase()
	db.drain(t, g.stream(StreamOptions{}))
	same(t, "rows", want, db.rows)
	zero := time.Duration(0)
	db = newDatabase()
	db.places["events"] = "2-0 2"
	if _, err := db.flushOnce(t.Context(), g.stream(StreamOptions{Retain: &zero}), nil); err == nil || !strings.Contains(err.Error(), "trim") {
		t.Errorf("trimming: %v", err)
	}
}

func TestStreamOfAnotherTypeOrPositionIsRefused(t *testing.T) {
	g := newRig(t)
	g.do("RPUSH", "events", 1)
	if _, _, err := g.stream(StreamOptions{}).Stage(t.Context(), "a", ""); !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), "needs a stream") {
		t.Errorf("a list: %v", err)
	}
	for _, position := range []string{"x", "1-0", "1-0 x", " 5", "1-0 -5", "x 5"} {
		if _, _, err := g.stream(StreamOptions{}).Stage(t.Context(), "a", position); err == nil || !strings.Contains(err.Error(), "baton_position") {
			t.Errorf("position %q: %v", position, err)
		}
	}
}

func TestPeekShowsTheNextEntries(t *testing.T) {
	g := newRig(t)
	src := g.stream(StreamOptions{MemoryBudget: 1})
	peek := func(want string) {
		t.Helper()
		records, err := src.Peek(t.Context(), 3)
		var got []string
		for _, r := range records {
			got = append(got, r.Inputs[1].Text)
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("peeked %v, %v; want %s", got, err, want)
		}
	}
	peek("")
	g.fillStream(1, 5, nil)
	peek("1 2 3")
	newDatabase().drain(t, g.stream(StreamOptions{}))
	peek("")
	g.fillStream(6, 7, nil)
	peek("6 7")
}

func TestWaitForAStreamEndsWithWork(t *testing.T) {
	g := newRig(t)
	src, db := g.stream(StreamOptions{}), newDatabase()
	if err := within(t, waits(t.Context(), src)); err != nil { // nothing is known yet
		t.Fatal(err)
	}
	db.drain(t, src)
	for round := 1; round <= 3; round++ {
		done := waits(t.Context(), src)
		g.blocked(1)
		g.fillStream(round, round, nil)
		if err := within(t, done); err != nil {
			t.Fatal(err)
		}
		if err := within(t, waits(t.Context(), src)); err != nil {
			t.Fatalf("with work: %v", err)
		}
		db.drain(t, src)
		if len(db.rows) != round {
			t.Fatalf("%d rows in round %d", len(db.rows), round)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := waits(ctx, src)
	g.blocked(1)
	cancel()
	if err := within(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	g.blocked(0)
}

// A Redis before 7.0 does not count entries, so less is known of a gap: then it is one.
func TestGapOfARedisThatDoesNotCountIsNotGuessedAway(t *testing.T) {
	id := func(n uint64) entryID { return entryID{ms: n} }
	at := streamPlace{id: id(5)}
	for _, c := range []struct {
		what string
		l    look
		at   streamPlace
		say  string
	}{
		{"the anchor is there", look{last: id(9), first: id(1), anchor: true}, at, ""},
		{"nothing was added since", look{last: id(5)}, at, ""},
		{"the beginning of everything", look{last: id(9), first: id(3)}, streamPlace{}, ""},
		{"trimmed", look{last: id(9), first: id(6)}, at, "may have been trimmed"},
		{"empty", look{last: id(9)}, at, "may have been trimmed"},
		{"trimmed, and it counts by now", look{last: id(9), first: id(6), length: 4, added: 9}, at, "may have been trimmed"},
		{"the anchor is gone", look{last: id(9), first: id(1)}, at, "does not tell which"},
		{"behind", look{last: id(4), first: id(1)}, at, "before the position"},
	} {
		c.l.exists = true
		if c.l.added == 0 {
			c.l.added = -1
		}
		if got, _ := c.l.gap(c.at); (got == "") != (c.say == "") || !strings.Contains(got, c.say) {
			t.Errorf("%s: %q, want %q", c.what, got, c.say)
		}
	}
	uncounted := look{exists: true, length: 7, last: id(9), first: id(3), behind: id(6), added: -1}
	if n := uncounted.pending(at); n != 7 {
		t.Errorf("%d are pending, want as many as there can be", n)
	}
	uncounted.behind = entryID{}
	if n := uncounted.pending(at); n != 0 {
		t.Errorf("%d are pending at the end", n)
	}
}
