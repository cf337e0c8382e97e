package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

const eventsPositions = "{events}:baton:positions"

func (g *rig) stream(o StreamOptions) *Stream {
	g.T.Helper()
	return streamOn(g.T, g.store, o)
}

func streamOn(t testing.TB, store *redisconn.Store, o StreamOptions) *Stream {
	t.Helper()
	preset(&o.Job, "events")
	preset(&o.Key, "events")
	if o.Inputs == nil {
		o.Inputs = []string{"$id", "n"}
	}
	return made(t, NewStream, store, o)
}

// fillStream adds entries with the ids from-0 to to-0, and adds them to want.
func (g *rig) fillStream(from, to int, want map[string]string) {
	g.T.Helper()
	for i := from; i <= to; i++ {
		id := fmt.Sprintf("%d-0", i)
		if err := g.Conn.Send("XADD", "events", id, "n", i, "other", "x"); err != nil {
			g.T.Fatal(err)
		}
		if want != nil {
			want[id] = fmt.Sprintf("%s|%d", id, i)
		}
	}
	g.Do("")
}

// ids returns the ids of the stream's entries in short form: "3 4 5" for 3-0, 4-0 and 5-0.
func (g *rig) ids() string {
	g.T.Helper()
	entries, err := redis.Values(g.Do("XRANGE", "events", "-", "+"), nil)
	if err != nil {
		g.T.Fatal(err)
	}
	var ids []string
	for _, e := range entries {
		id, err := redis.String(e.([]any)[0], nil)
		if err != nil {
			g.T.Fatal(err)
		}
		ids = append(ids, strings.TrimSuffix(id, "-0"))
	}
	return strings.Join(ids, " ")
}

func TestStreamIsReadOnceAndLeftAsItIs(t *testing.T) {
	g := newRig(t)
	db, want := newDatabase(), map[string]string{}
	src := g.stream(StreamOptions{PageRows: 100, BatchBytes: 16 << 10})
	if more, err := db.flush(t.Context(), src, nil); more || err != nil {
		t.Fatalf("of no stream: %v, %v", more, err)
	}
	g.fillStream(1, 1234, want)
	db.drain(t, src)
	same(t, "rows", want, db.rows())
	if p := db.place(); p != "1234-0 1234" {
		t.Errorf("position %q", p)
	}
	g.fillStream(1235, 1237, want)
	db.drain(t, g.stream(StreamOptions{})) // another process
	same(t, "rows after more", want, db.rows())
	if n := g.Num("XLEN", "events"); n != 1237 {
		t.Errorf("the stream has %d entries, want all 1237", n)
	}
	if noted := g.Str("HGET", eventsPositions, "events"); noted != "1237-0 1237" {
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
	if diff := cmp.Diff([]flush.Move{{From: "", To: "10-0 10"}, {From: "10-0 10", To: "20-0 20"}, {From: "20-0 20", To: "25-0 25"}},
		moves); diff != "" {
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
				if db.rows()[fmt.Sprintf("%d-0", i)] != "" {
					got = append(got, fmt.Sprint(i))
				}
			}
			if strings.Join(got, " ") != c.want || db.place() != c.place {
				t.Errorf("read %v up to %q, want %s up to %q", got, db.place(), c.want, c.place)
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
		same(t, "rows", want, db.rows())
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
	g.Do("XADD", "events", "1-0", "n", odd, "$id", "mine", "", "empty name")
	g.Do("XADD", "events", "2-0", "x", "1")
	g.Do("XADD", "events", "3-0", "n", "1", "n", "2")
	g.Do("XADD", "events", "4-0", "x", "1", "x", "2", "n", "")
	g.Do("XADD", "events", "5-0", "n", "5", "$id", "mine")
	src := g.stream(StreamOptions{Inputs: []string{"n", "$id", ""}, BatchBytes: 1})
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
		"1-0: " + odd + "|1-0|empty name", "2-0: -|2-0|-", `3-0: 1|3-0|- field "n" occurs more than once, also with the value "2"`,
		"4-0: |4-0|-", "5-0: 5|5-0|-",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A page ends when it is full by rows or by bytes. No reply is much longer than the budget allows.
func TestStreamIsReadWithinItsMemory(t *testing.T) {
	g := newRig(t)
	long := strings.Repeat("x", 100_000)
	for i := 1; i <= 100; i++ {
		g.Do("XADD", "events", fmt.Sprintf("%d-0", i), "n", long)
	}
	src := g.stream(StreamOptions{BatchBytes: 1 << 20})
	rows := 0
	for _, p := range readAll(t, src, stageNow(t, src, "a")) {
		size := 0
		for _, r := range p.Records {
			size += len(r.Inputs[1].Text)
		}
		rows += len(p.Records)
		if size > 1<<20 {
			t.Errorf("a page of %d rows has %d bytes", len(p.Records), size)
		}
	}
	if rows != 100 {
		t.Errorf("%d rows", rows)
	}
}

// These are the highest possible ids: Lua counts only up to 2^53.
func TestIdsOf64BitsAreCompared(t *testing.T) {
	g := newRig(t)
	zero := time.Duration(0)
	const most = uint64(math.MaxUint64)
	for _, id := range []string{fmt.Sprintf("9-%d", most-1), fmt.Sprintf("9-%d", most), "10-1", fmt.Sprintf("%d-%d", most-1, 7),
		fmt.Sprintf("%d-0", most)} {
		g.Do("XADD", "events", id, "n", 1)
	}
	src, db := g.stream(StreamOptions{Retain: &zero, PageRows: 1}), newDatabase()
	g.Do("HSET", eventsPositions, "a", fmt.Sprintf("9-%d 2", most), "b", fmt.Sprintf("9-%d 1", most-1))
	db.drain(t, src)
	if n := g.Num("XLEN", "events"); n != 5 {
		t.Errorf("left: %s; want all, as the first is somebody's position", g.ids())
	}
	g.Do("HDEL", eventsPositions, "a", "b")
	g.Do("HSET", eventsPositions, "other", fmt.Sprintf("%d-7 4", most-1))
	db.drain(t, src)
	if len(db.rows()) != 5 {
		t.Errorf("rows: %v", db.rows())
	}
	if want := fmt.Sprintf("%d-7 %d", most-1, most); g.ids() != want {
		t.Errorf("left: %s; want %s", g.ids(), want)
	}
}

// The source must work for a user who may only read. It records no place then.
func TestStreamIsReadByAUserWhoMayOnlyRead(t *testing.T) {
	g := newRig(t)
	want := map[string]string{}
	g.fillStream(1, 5, want)
	g.Do("ACL", "SETUSER", "default", "-@write")
	db := newDatabase()
	db.drain(t, g.stream(StreamOptions{}))
	same(t, "rows", want, db.rows())
	zero := time.Duration(0)
	db = newDatabase()
	db.SetPlace("events", "events", "2-0 2")
	if _, err := db.flush(t.Context(), g.stream(StreamOptions{Retain: &zero}), nil); err == nil || !strings.Contains(err.Error(), "trim") {
		t.Errorf("trimming: %v", err)
	}
}

func TestStreamOfAnotherTypeOrPositionIsRefused(t *testing.T) {
	g := newRig(t)
	g.Do("RPUSH", "events", 1)
	if _, _, err := g.stream(StreamOptions{}).Stage(t.Context(), "a", ""); !errors.Is(err, staging.ErrWrongType) ||
		!strings.Contains(err.Error(), "needs a stream") {
		t.Errorf("a list: %v", err)
	}
	for _, position := range []string{"x", "1-0", "1-0 x", " 5", "1-0 -5", "x 5"} {
		if _, _, err := g.stream(StreamOptions{}).Stage(t.Context(), "a", position); err == nil ||
			!strings.Contains(err.Error(), "baton_position") {
			t.Errorf("position %q: %v", position, err)
		}
	}
}

func TestPeekShowsTheNextEntries(t *testing.T) {
	g := newRig(t)
	src := g.stream(StreamOptions{BatchBytes: 1})
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
		if len(db.rows()) != round {
			t.Fatalf("%d rows in round %d", len(db.rows()), round)
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
