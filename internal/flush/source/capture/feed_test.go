package capture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn/follow"
	"baton/internal/redisconn/follow/keys"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// table returns the table of commands of a real server.
func table(t testing.TB) *keys.Table {
	t.Helper()
	all, err := keys.Read(t.Context(), testsupport.StartRedis(t).Conn())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// heard is a feed of "s:<id>" in database 2, with one master that it follows.
type heard struct {
	*feed
	*streamReader
	mark *cursor
}

func fed(t testing.TB, budget int) heard {
	match := func(key string) bool { return strings.HasPrefix(key, "s:") }
	h := &follower{db: 2, number: "2"}
	g := heard{feed: newFeed(feedOptions{follower: h, prefix: "s:", match: match, budget: budget}), streamReader: newStreamReader(h, nil)}
	g.table = table(t)
	at := follow.Position{ReplID: "id", Offset: 100}
	g.restart("base", jobPosition{masters: []masterPosition{{at: at, slots: noSlots}}, owed: owesNothing})
	g.expect(1)
	g.joinsAt(follow.Joined{Kind: follow.Continued, At: at, Backlog: 1 << 20})
	offset := at.Offset
	g.offset = func() int64 { offset++; return offset }
	if _, _, _ = g.take(flushStop); !g.joined {
		t.Fatal("it does not follow")
	}
	return g
}

// joinsAt makes the stream reader join.
func (g *heard) joinsAt(j follow.Joined) {
	free, at, gen := g.freeMarks()
	mark, from := g.noteJoin(g.streamReader, gen, j, free, make([]follow.Loss, len(at)), slots{name: noSlots})
	g.mark, g.subscriptions = mark, []subscription{{g.feed, mark, from}}
}

func (g heard) hears(db int, commands ...string) {
	for _, c := range commands {
		var args [][]byte
		for word := range strings.FieldsSeq(c) {
			args = append(args, []byte(word))
		}
		g.Command(db, args)
	}
}

func TestAFeedHearsOfItsOwnKeys(t *testing.T) {
	f := fed(t, 1<<20)
	f.hears(2, "SET s:1 x", "SET other x", "MSET s:2 a t:1 b", "DEL s:3", "SET s:1 y")
	f.hears(0, "SET s:elsewhere x", "MOVE s:4 2", "COPY s:5 s:6 DB 2")
	f.hears(follow.AnyDB, "SET s:7 x")
	f.Command(0, [][]byte{[]byte("publish"), []byte("baton:capture"), []byte("2 s:8")})
	f.Command(0, [][]byte{[]byte("publish"), []byte("baton:capture"), []byte("3 s:wrong")})
	f.Command(0, [][]byte{[]byte("publish"), []byte("baton:capture"), []byte("2 other")})
	want := strings.Fields("s:1 s:2 s:3 s:4 s:6 s:7 s:8")
	for _, key := range want {
		if _, there := f.pending[key]; !there {
			t.Errorf("%s is not pending", key)
		}
	}
	if len(f.pending) != len(want) || f.passesOwed != f.passesDone || f.emptied != "" {
		t.Errorf("pending %v, %d debts, %q", f.pending, f.passesOwed, f.emptied)
	}
}

func TestOnlyItsOwnDatabaseIsEmptied(t *testing.T) {
	for command, want := range map[string]bool{
		"2 FLUSHDB": true, "1 FLUSHDB": false, "1 FLUSHALL": true, "-1 FLUSHDB": true, "0 SWAPDB_1_2": true, "0 SWAPDB_0_1": false,
		"0 SWAPDB_2_2": false,
	} {
		f := fed(t, 1<<20)
		number, words, _ := strings.Cut(command, " ")
		var db int
		if _, err := fmt.Sscan(number, &db); err != nil {
			t.Fatal(err)
		}
		f.hears(db, strings.ReplaceAll(words, "_", " "))
		if (f.emptied != "") != want {
			t.Errorf("%s: %q", command, f.emptied)
		}
	}
}

// If the position is that of no page of the batch, another leader has moved it.
func TestABatchIsSettledByThePlaceInTheDatabase(t *testing.T) {
	for _, c := range []struct {
		at      func(first, last string) string
		knows   bool
		pending int
	}{
		{func(_, last string) string { return last }, true, 1},
		{func(first, _ string) string { return first }, true, 3},
		{func(_, _ string) string { return "base" }, true, 3},
		{func(_, _ string) string { return "another" }, false, 1},
	} {
		f := fed(t, 1<<20)
		f.hears(2, "MSET s:1 a s:2 b")
		f.Reached(follow.Position{ReplID: "id", Offset: 200, DB: 2})
		b, _, err := f.take(flushStop)
		if err != nil || len(b.keys) != 2 || len(f.pending) != 0 {
			t.Fatalf("%+v, %v", b, err)
		}
		first, last := f.move(b, false).To, f.move(b, true).To
		f.hears(2, "SET s:3 c")
		at := c.at(first, last)
		p, _ := parsePosition(at)
		if knows := f.settle(at, p); knows != c.knows || len(f.pending) != c.pending {
			t.Errorf("at %q: known %v, pending %v", at, knows, f.pending)
		}
		if moved := f.mark.base.Offset == 200; moved != (at == last) {
			t.Errorf("at %q: the next page says that the database is at offset %d", at, f.mark.base.Offset)
		}
	}
}

func TestThePlaceMovesBehindTheChangesWithTheLastPage(t *testing.T) {
	f := fed(t, 1<<20)
	f.hears(2, "SET s:1 a")
	f.Reached(follow.Position{ReplID: "id", Offset: 200, DB: 2})
	b, _, _ := f.take(flushStop)
	f.hears(2, "SET s:1 b")
	f.Reached(follow.Position{ReplID: "id", Offset: 300, DB: 3})
	if err := f.noteSeen(b, []follow.Position{{ReplID: "id", Offset: 350}}); err != nil {
		t.Fatal(err)
	}
	first, last := f.move(b, false), f.move(b, true)
	if first.From != "base" || first.To != "id 100 0 350 - - 1" || last.From != first.To || last.To != "id 200 2 350 - - 2" {
		t.Errorf("%+v, %+v", first, last)
	}
	p, _ := parsePosition(last.To)
	if f.settle(last.To, p); len(f.pending) != 1 || f.shouldMove() {
		t.Errorf("pending %v, moves %v", f.pending, f.shouldMove())
	}
	f.moved = time.Now().Add(-moveEvery - time.Second)
	if !f.shouldMove() {
		t.Error("the place stays where it is for ever")
	}
}

// Values from a master that was replaced count only up to the offset at which both histories are the same.
func TestValuesOfAFormerMasterAreDoubted(t *testing.T) {
	for _, c := range []struct {
		seen, sawLate int64
		owes          bool
	}{{400, 0, false}, {401, 0, true}, {0, 400, false}, {0, 401, true}} {
		f := fed(t, 1<<20)
		f.Reached(follow.Position{ReplID: "id", Offset: 300})
		f.mark.seen = c.seen
		f.noteLeft(f.mark, f.streamReader, false)
		f.joinsAt(follow.Joined{Kind: follow.Promoted, At: follow.Position{ReplID: "new", Offset: 300}, Shared: 400})
		if c.sawLate > 0 {
			if err := f.noteSeen(&batch{}, []follow.Position{{ReplID: "id", Offset: c.sawLate}}); err != nil {
				t.Error(err)
			}
		}
		if owes := f.passesOwed > f.passesDone; owes != c.owes {
			t.Errorf("%+v: owes a pass: %v", c, owes)
		}
		if err := f.noteSeen(&batch{}, []follow.Position{{ReplID: "third", Offset: 1}}); err == nil {
			t.Error("values of an unknown master count")
		}
	}
}

// If a run would find nothing to do, there is no run. Changes that come meanwhile wait for the next one.
func TestABatchThatIsWrittenIsNoReasonForARun(t *testing.T) {
	f := fed(t, 1<<20)
	f.hears(2, "SET s:1 x")
	f.Reached(follow.Position{ReplID: "id", Offset: 1 << 20, DB: 2}) // more than the share after which a run moves the position
	b, _, err := f.take(flushStop)
	if err != nil || len(b.keys) != 1 {
		t.Fatalf("%+v, %v", b, err)
	}
	if !f.hasWork() {
		t.Error("the batch is not written, and no run would begin")
	}
	f.move(b, true)
	if f.hasWork() {
		t.Error("a run would begin for a place that is written")
	}
	f.Reached(follow.Position{ReplID: "id", Offset: 2 << 20, DB: 2})
	if !f.hasWork() {
		t.Error("no run would move the place after the stream")
	}

	f = fed(t, 1<<20)
	f.oweLocked(notKnown, "a reason")
	pass, _, err := f.take(flushStop)
	if err != nil || pass.passesOwed == 0 {
		t.Fatalf("%+v, %v", pass, err)
	}
	p, err := parsePosition(f.move(pass, false).To)
	if f.pay(pass); err != nil || !f.settle(pass.text, p) || !f.hasWork() {
		t.Fatalf("no run would write that the pass is over: %v", err)
	}
	last, _, err := f.take(flushStop)
	if err != nil || last == nil {
		t.Fatalf("%+v, %v", last, err)
	}
	if f.move(last, true); f.hasWork() {
		t.Error("a run would begin although it is written that the pass is over")
	}
}

func TestAPassThatMissedSomethingPaysNothing(t *testing.T) {
	f := fed(t, 1<<20)
	f.oweLocked(notKnown, "a reason")
	f.oweLocked(notKnown, "another one")
	b, note, err := f.take(flushStop)
	if err != nil || b.passesOwed != 2 || !strings.HasSuffix(note, "all keys are read: a reason") {
		t.Fatalf("%+v, %q, %v", b, note, err)
	}
	b.missed = redis.Error("moved")
	if f.pay(b); f.passesOwed == f.passesDone {
		t.Error("it is paid")
	}
	b.missed = nil
	f.oweLocked(notKnown, "meanwhile")
	if f.pay(b); f.passesDone != 2 || f.passesOwed != 3 {
		t.Errorf("%d of %d are paid", f.passesDone, f.passesOwed)
	}
}

// Slots may leave a master, come back before all keys were read, and leave again. Then a pass is needed for the second time, too.
func TestSlotsThatGoTwiceLeadToAPassTwice(t *testing.T) {
	g := fed(t, 1<<20)
	for _, own := range []string{"b", noSlots} {
		g.noteSlots(g.streamReader, own)
	}
	for range 2 {
		b, _, err := g.take(flushStop)
		if err != nil || b == nil || b.passesOwed == 0 {
			t.Fatalf("other slots lead to %+v, %v; want a pass", b, err)
		}
		g.move(b, true)
		g.pay(b)
		if g.passes() {
			t.Fatal("a pass that was made is owed still")
		}
		g.noteSlots(g.streamReader, "b")
	}
}

// A wait for changes of a former master must end: they may never come. It does not matter when the failover was noticed.
func TestAWaitForAFormerMasterEnds(t *testing.T) {
	for _, before := range []bool{true, false} {
		f := fed(t, 1<<20)
		at := heads{[]follow.Position{{ReplID: "gone", Offset: 1}}, f.failures()}
		ends := func() { f.noteFailure(fmt.Errorf("redis: %w", follow.ErrNotMaster)) }
		if before {
			ends()
		} else {
			time.AfterFunc(10*time.Millisecond, ends)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for wait, err := range map[string]error{"hear": f.awaitReceived(ctx, at), "catchUp": f.catchUp(ctx, at)} {
			if !errors.Is(err, follow.ErrNotMaster) {
				t.Errorf("found out before: %v; %s ends with %v", before, wait, err)
			}
		}
		cancel()
	}
}

// A master that was replaced may still answer for a while. Changes of its history will never come, although the stream of the promoted
// master is followed and does not break.
func TestAWaitForTheHistoryOfAReplacedMasterEnds(t *testing.T) {
	g := fed(t, 1<<20)
	g.noteLeft(g.mark, g.streamReader, false)
	g.noteFailure(errors.New("the stream broke"))
	g.joinsAt(follow.Joined{Kind: follow.Promoted, At: follow.Position{ReplID: "promoted", Offset: 100}, Shared: 100, Backlog: 1 << 20})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	at := heads{[]follow.Position{{ReplID: "id", Offset: 200}}, g.failures()}
	for wait, err := range map[string]error{"hear": g.awaitReceived(ctx, at), "catchUp": g.catchUp(ctx, at)} {
		if !errors.Is(err, follow.ErrNotMaster) {
			t.Errorf("%s: %v", wait, err)
		}
	}
}

func TestAFullFeedForgetsKeysAndOwesAPass(t *testing.T) {
	f := fed(t, 10*(keyCost+4))
	for i := range 100 {
		f.hears(2, fmt.Sprintf("SET s:%02d x", i))
	}
	if len(f.pending) > 10 || f.passesOwed == f.passesDone {
		t.Errorf("%d keys are pending, %d debts", len(f.pending), f.passesOwed)
	}
	if b, _, _ := f.take(flushStop); b.passesOwed == 0 || f.full {
		t.Errorf("%+v, full %v", b, f.full)
	}
	f.hears(2, "SET s:1 x")
	if len(f.pending) != 1 {
		t.Error("changes during the pass are not noted")
	}
}

func TestHearingOfAPendingKeyAllocatesNothing(t *testing.T) {
	f := fed(t, 1<<20)
	args := [][]byte{[]byte("HSET"), []byte("s:1"), []byte("a"), []byte("b")}
	f.Command(2, args)
	if n := testing.AllocsPerRun(100, func() { f.Command(2, args) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHear(b *testing.B) {
	f := fed(b, 64<<20)
	var all [][][]byte
	for i := range 95_000 {
		all = append(all, [][]byte{[]byte("HSET"), fmt.Appendf(nil, "s:%d", i), []byte("name"), []byte("x")})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f.Command(2, all[i%len(all)])
		i++
	}
}

// Jobs that share a stream each receive the changes after their own position, and none before it.
func TestJobsOfOneStreamHearFromTheirOwnPlacesOn(t *testing.T) {
	f := fed(t, 1<<20)
	later := newFeed(f.feedOptions)
	at := follow.Position{ReplID: "id", Offset: 102, DB: 2}
	later.restart("base", jobPosition{masters: []masterPosition{{at: at, slots: noSlots}}, owed: owesNothing})
	later.expect(1)
	free, _, gen := later.freeMarks()
	joined := follow.Joined{Kind: follow.Continued, At: at}
	mark, from := later.noteJoin(f.streamReader, gen, joined, free, make([]follow.Loss, 1), slots{name: noSlots})
	f.subscriptions = append(f.subscriptions, subscription{later, mark, from})
	f.hears(2, "FLUSHDB", "SET s:1 x", "SET s:2 x") // these end at the offsets 101, 102 and 103
	f.Reached(follow.Position{ReplID: "id", Offset: 103, DB: 2})
	if len(f.pending) != 2 || f.emptied == "" || f.mark.at.Offset != 103 {
		t.Errorf("the first job: pending %v, %q, at %d", f.pending, f.emptied, f.mark.at.Offset)
	}
	_, there := later.pending["s:2"]
	if !there || len(later.pending) != 1 || later.emptied != "" || mark.at.Offset != 103 {
		t.Errorf("the second job: pending %v, %q, at %d", later.pending, later.emptied, mark.at.Offset)
	}
}

// A few changes are flushed at once. Many changes are collected, so that a key that changes repeatedly is read once.
func TestManyChangesAreGathered(t *testing.T) {
	f := fed(t, 1<<20)
	for _, n := range []int{3, 9000} {
		for i := range n {
			f.hears(2, fmt.Sprint("SET s:", i, " x"))
		}
		if b, _, err := f.take(flushStop); err != nil || len(b.keys) != n {
			t.Fatal(b, err)
		}
		most := min(time.Duration(n)*pauseOfKey, longestGather)
		if got := f.gatherTime(); got > most {
			t.Errorf("%d keys have others wait %v, want %v at most", n, got, most)
		}
		f.takenAt = time.Now().Add(time.Hour) // so that the duration of this test does not matter
		if got := f.gatherTime(); got < 59*time.Minute || got > time.Hour+most {
			t.Errorf("%d keys, taken in an hour, have others wait %v", n, got)
		}
	}
	f.feed.mu.Lock()
	f.feed.oweLocked(notKnown, "a test")
	f.feed.mu.Unlock()
	if got := f.gatherTime(); got != 0 {
		t.Errorf("a pass waits %v", got)
	}
}

// Slots that are being moved are checked again once they have arrived. An earlier pass would miss some of their keys, and be useless.
func TestSlotsOnTheirWayOweNoPassYet(t *testing.T) {
	f := fed(t, 1<<20)
	f.noteLeft(f.mark, f.streamReader, false)
	free, at, gen := f.freeMarks()
	j := follow.Joined{Kind: follow.Continued, At: at[0], Backlog: 1 << 20}
	m, _ := f.noteJoin(f.streamReader, gen, j, free, make([]follow.Loss, len(at)), slots{name: "fewer", moving: true})
	if m == nil || f.passesOwed != f.passesDone {
		t.Errorf("%d debts while slots move: %s", f.passesOwed-f.passesDone, f.why)
	}
	f.noteSlots(f.streamReader, "fewer")
	if f.passesOwed == f.passesDone || f.reason != otherSlots {
		t.Errorf("%d debts once they have moved, because of %q", f.passesOwed-f.passesDone, f.reason)
	}
}

// If a master has gone, its last changes are unknown, and so is the present place of its keys.
func TestAMasterThatIsGoneOwesAPass(t *testing.T) {
	f := fed(t, 1<<20)
	two := []masterPosition{
		{at: follow.Position{ReplID: "id", Offset: 100}, slots: noSlots},
		{at: follow.Position{ReplID: "gone", Offset: 7}, slots: noSlots},
	}
	f.restart("two", jobPosition{masters: two, owed: owesNothing})
	f.expect(1)
	free, at, gen := f.freeMarks()
	lost := []follow.Loss{{}, {Code: follow.LostHistory, Words: "another master's"}}
	f.noteJoin(f.streamReader, gen, follow.Joined{Kind: follow.Continued, At: at[0], Backlog: 1 << 20}, free, lost, slots{name: noSlots})
	if f.passesOwed == f.passesDone || f.reason != otherMasters || len(f.cursors) != 1 || !f.joined {
		t.Errorf("%d debts because of %q, %d marks, joined %v", f.passesOwed-f.passesDone, f.reason, len(f.cursors), f.joined)
	}
}
