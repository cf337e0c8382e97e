package source

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn/redistest"
)

const usersStage, usersMeta = "{changed:user}:baton:stage", "{changed:user}:baton:meta"

// change writes a row as a producer must: the row and its id in the index, in one transaction.
func (g *rig) change(zset bool, id, name string, n int) {
	g.T.Helper()
	g.Send("MULTI")
	g.Send("HSET", "user:"+id, "name", name, "n", n)
	g.sendIndex(zset, id)
	g.Do("EXEC")
}

func (g *rig) remove(zset bool, id string) {
	g.T.Helper()
	g.Send("MULTI")
	g.Send("DEL", "user:"+id)
	g.sendIndex(zset, id)
	g.Do("EXEC")
}

func (g *rig) index(zset bool, id string) {
	g.T.Helper()
	g.sendIndex(zset, id)
	g.Do("")
}

func (g *rig) sendIndex(zset bool, id string) {
	g.T.Helper()
	if zset {
		g.Send("ZADD", "changed:user", 0.5, id) // a score that is the id of no test
	} else {
		g.Send("SADD", "changed:user", id)
	}
}

// bothIndexes runs a test with an index in a SET, and with one in a ZSET.
func bothIndexes(t *testing.T, test func(t *testing.T, g *rig, zset bool)) {
	for _, zset := range []bool{false, true} {
		t.Run(map[bool]string{false: "set", true: "zset"}[zset], func(t *testing.T) { test(t, newRig(t), zset) })
	}
}

func TestChangedHashesAreFlushedAndLeaveNothingBehind(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		src := g.hashes(IndexedOptions{PageRows: 7})
		db := newDatabase()
		want := map[string]string{}
		for i := range 100 {
			id := fmt.Sprint(i)
			g.change(zset, id, "name "+id, i)
			want[id] = id + "|name " + id + "|" + id
		}
		db.drain(t, src)
		same(t, "rows", want, db.rows())

		g.change(zset, "5", "", 55) // an empty field is not a missing one
		want["5"] = "5||55"
		g.remove(zset, "6")
		delete(want, "6")
		g.remove(zset, "7")
		g.change(zset, "7", "reborn", 1)
		want["7"] = "7|reborn|1"
		g.Do("HDEL", "user:8", "name")
		g.index(zset, "8")
		want["8"] = "8|-|8"
		db.drain(t, src)
		same(t, "rows after changes and deletes", want, db.rows())
		g.nothingLeft()
	})
}

func TestIDsOfEveryKindAreFlushed(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		want := map[string]string{}
		for _, id := range []string{
			"", " ", "ключ", "日本語", "🙂", "a:b", "{tag}", "a}b", "a\nb\r\n", "\x00\xff\xfe", "'\"\\", "*", "-1", "007", "7",
			"123456789012345678901234567890", strings.Repeat("long", 1<<14),
		} {
			g.change(zset, id, "n:"+id, 1)
			want[id] = id + "|n:" + id + "|1"
		}
		db := newDatabase()
		db.drain(t, g.hashes(IndexedOptions{PageRows: 4}))
		same(t, "rows", want, db.rows())
		g.nothingLeft()
	})
}

// More ids are collected once the rows of the earlier ones are read, twice as many each time: 200, 400, 800, 1600 and the rest. Each time
// they are in order.
func TestPagesComeInKeyOrder(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		const n = 5000
		for i := range n {
			g.sendIndex(zset, fmt.Sprint(i*7919%n))
		}
		g.Do("")
		src := g.hashes(IndexedOptions{PageRows: 100})
		var got []string
		breaks := 0 // how often the order breaks
		for _, p := range readAll(t, src, stageNow(t, src, "a")) {
			if p.Part != -1 || len(p.Records) > 100 {
				t.Errorf("page of part %d with %d records", p.Part, len(p.Records))
			}
			for _, r := range p.Records {
				if len(got) > 0 && byNumber(got[len(got)-1], r.Key) > 0 {
					breaks++
				}
				got = append(got, r.Key)
			}
		}
		if breaks > 4 {
			t.Errorf("the order begins anew %d times", breaks)
		}
		slices.SortFunc(got, byNumber)
		if len(slices.Compact(got)) != n {
			t.Errorf("%d of %d ids", len(slices.Compact(got)), n)
		}
	})
}

func TestMoreIDsThanMemoryAreReadInRounds(t *testing.T) {
	t.Parallel()
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		want := map[string]string{}
		for i := range 6000 {
			id := fmt.Sprint(i)
			g.sendIndex(zset, id)
			if i%3 == 0 {
				g.Send("HSET", "user:"+id, "name", "x", "n", i)
				want[id] = id + "|x|" + id
			}
		}
		g.Do("")
		scans := 0
		src := hashesOn(t, watched(g.store, func(step string) error {
			if step == redistest.Before("SSCAN") || step == redistest.Before("ZSCAN") {
				scans++
			}
			return nil
		}), IndexedOptions{PageRows: 100, MemoryBudget: 16 << 10})
		db := newDatabase()
		for id := range 6000 {
			db.putRow(fmt.Sprint(id))
		}
		if _, err := db.flush(t.Context(), src, nil); err != nil {
			t.Fatal(err)
		}
		same(t, "rows after one flush", want, db.rows())
		if scans < 3 {
			t.Errorf("%d rounds for 200 KB of ids in a budget of 16 KiB", scans)
		}
		g.nothingLeft()
	})
}

func TestLongRowsMakeShortPages(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	const most = 256 << 10
	want := map[string]string{}
	for i := range 600 {
		id, name := fmt.Sprint(i), "x"
		if i%3 > 0 {
			name = strings.Repeat("x", 20<<10)
		}
		g.Send("HSET", "user:"+id, "name", name, "n", i)
		g.index(false, id)
		want[id] = id + "|" + name + "|" + id
	}
	src := g.hashes(IndexedOptions{BatchBytes: most})
	longest := 0
	db := newDatabase()
	if err := src.Read(t.Context(), stageNow(t, src, "a"), func(p flush.Page) error {
		size := 0
		for _, r := range p.Records {
			for _, raw := range r.Inputs {
				size += len(raw.Text)
			}
		}
		longest = max(longest, size)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if longest > most {
		t.Errorf("a page of %d bytes where %d are the aim", longest, most)
	}
	db.drain(t, src)
	same(t, "rows", want, db.rows())
	g.nothingLeft()
}

// Each lane holds two pages at the same time, so all lanes share the budget.
func TestPagesOfLongRowsAreSmallerTheMoreLanesThereAre(t *testing.T) {
	g := newRig(t)
	for i := range 400 {
		g.change(false, fmt.Sprint(i), strings.Repeat("x", 1000), i)
	}
	const most, lanes = 64 << 10, 8
	src := g.hashes(IndexedOptions{BatchBytes: most, Lanes: lanes})
	for _, p := range readAll(t, src, stageNow(t, src, "a")) {
		if size := 1000 * len(p.Records); size > most/lanes {
			t.Errorf("a page of %d bytes, and %d at the same time", size, 2*lanes)
		}
	}
}

func TestRowOfAnotherTypeIsADeadLetterAndTheRestIsRead(t *testing.T) {
	g := newRig(t)
	g.change(false, "1", "one", 1)
	g.Do("SET", "user:2", "a string")
	g.Do("SADD", "changed:user", 2, 3)
	db := newDatabase()
	db.putRow("3")
	db.drain(t, g.hashes(IndexedOptions{}))
	same(t, "rows", map[string]string{"1": "1|one|1"}, db.rows())
	if len(db.dead()) != 1 || !strings.Contains(db.dead()["2"], `"user:2" is not a hash`) {
		t.Errorf("dead letters: %q", db.dead())
	}
	g.nothingLeft()
}

func TestRowWithoutAnyOfTheFieldsIsNotGone(t *testing.T) {
	g := newRig(t)
	g.Do("HSET", "user:1", "other", "x")
	g.Do("SADD", "changed:user", 1, 2)
	src := g.hashes(IndexedOptions{})
	pages := readAll(t, src, stageNow(t, src, "a"))
	want := []row.Record{
		{Key: "1", Inputs: []row.Raw{{Text: "1", OK: true}, {}, {}}},
		{Key: "2", Inputs: []row.Raw{{Text: "2", OK: true}, {}, {}}, Gone: true},
	}
	if len(pages) != 1 || pages[0].Part != -1 {
		t.Fatalf("pages %+v", pages)
	}
	if diff := cmp.Diff(want, pages[0].Records); diff != "" {
		t.Error(diff)
	}
}

func TestRowThatAppearsAfterItWasMissedIsReadAgain(t *testing.T) {
	g := newRig(t)
	rows := g.hashes(IndexedOptions{}).rowsReader.(*rowReader)
	recs := []*row.Record{{Key: "1", Inputs: make([]row.Raw, 3)}, {Key: "2", Inputs: make([]row.Raw, 3)},
		{Key: "3", Inputs: make([]row.Raw, 3)}}
	c, err := g.store.Conn(t.Context(), "changed")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	blank, _, err := rows.readFields(t.Context(), c, recs)
	if err != nil || len(blank) != 3 {
		t.Fatalf("%d of 3 rows are blank, %v", len(blank), err)
	}
	g.change(false, "1", "born", 1)
	g.Do("RPUSH", "user:3", "x")
	if _, err := rows.settle(t.Context(), c, blank); err != nil {
		t.Fatal(err)
	}
	if recs[0].Gone || rowText(*recs[0]) != "1|born|1" {
		t.Errorf("the row that appeared: %+v", recs[0])
	}
	if !recs[1].Gone {
		t.Errorf("the row that is gone: %+v", recs[1])
	}
	if recs[2].Gone || !errors.Is(recs[2].Err, staging.ErrWrongType) {
		t.Errorf("the key of another type: %+v", recs[2])
	}
}

func TestOnlyTheIDIsWanted(t *testing.T) {
	g := newRig(t)
	g.change(false, "1", "one", 1)
	g.Do("SADD", "changed:user", 2)
	src := g.hashes(IndexedOptions{Key: "user:<key>", Inputs: []string{"key"}})
	var got []string
	for _, p := range readAll(t, src, stageNow(t, src, "a")) {
		for _, r := range p.Records {
			got = append(got, fmt.Sprint(rowText(r), r.Gone))
		}
	}
	if diff := cmp.Diff([]string{"1false", "2true"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestChangeDuringTheFlushIsFlushedNext(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		db := newDatabase()
		g.change(zset, "1", "first", 1)
		src := g.hashes(IndexedOptions{})
		_, err := db.flush(t.Context(), src, func(step string) error {
			if step == stepOfFlush+string(flushtest.StepBeforeApply) { // read, and not yet written
				g.change(zset, "1", "second", 2)
			}
			return nil
		})
		if err != nil || db.rows()["1"] != "1|first|1" {
			t.Fatalf("row %q, %v", db.rows()["1"], err)
		}
		db.drain(t, src)
		same(t, "rows", map[string]string{"1": "1|second|2"}, db.rows())
	})
}

func TestDoneRemovesOnlyItsPageAndOnlyFromItsStage(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		for i := range 2500 {
			g.index(zset, fmt.Sprint(i))
		}
		src := g.hashes(IndexedOptions{PageRows: 2400})
		st := stageNow(t, src, "a")
		pages := readAll(t, src, st)
		if err := src.Done(t.Context(), flush.Stage{ID: "another"}, pages[0]); !errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("done under another id: %v", err)
		}
		if again := stageNow(t, src, "b"); again.Size != 2500 {
			t.Errorf("%d ids are left of 2500", again.Size)
		}
		for range 2 { // the first reply was lost
			if err := src.Done(t.Context(), st, pages[0]); err != nil {
				t.Fatal(err)
			}
		}
		if again := stageNow(t, src, "b"); again.Size != 100 || again.ID != "a" || !again.Resumed {
			t.Errorf("left %+v, want the 100 ids of the second page", again)
		}
		if err := src.Done(t.Context(), st, pages[1]); err != nil {
			t.Fatal(err)
		}
		if err := src.Done(t.Context(), st, pages[1]); err != nil {
			t.Errorf("done again on a drained stage: %v", err)
		}
		if err := src.Discard(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		g.nothingLeft()
	})
}

func TestDiscardNeverThrowsUnflushedIDsAway(t *testing.T) {
	g := newRig(t)
	g.Do("SADD", "changed:user", 1, 2, 3)
	src := g.hashes(IndexedOptions{})
	st := stageNow(t, src, "a")
	if err := src.Discard(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if again := stageNow(t, src, "b"); again.ID != "a" || again.Size != 3 {
		t.Errorf("found %+v, want the 3 ids under their old id", again)
	}
	if err := src.Discard(t.Context(), flush.Stage{ID: "b"}); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("discard of another id: %v", err)
	}
}

func TestDrainedStageMakesRoomForTheNext(t *testing.T) {
	g := newRig(t)
	src := g.hashes(IndexedOptions{})
	drain := func(id string) flush.Stage {
		st := stageNow(t, src, id)
		for _, p := range readAll(t, src, st) {
			if err := src.Done(t.Context(), st, p); err != nil {
				t.Fatal(err)
			}
		}
		return st
	}
	g.Do("SADD", "changed:user", 1)
	old := drain("a") // and dies before it discards the stage
	if pages := readAll(t, src, old); len(pages) != 0 {
		t.Errorf("a drained stage has %d pages", len(pages))
	}
	g.Do("SADD", "changed:user", 2)
	if st := stageNow(t, src, "b"); st.ID != "b" || st.Size != 1 || st.Resumed {
		t.Errorf("staged %+v", st)
	}
	if err := src.Discard(t.Context(), old); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("late discard of the old stage: %v", err)
	}
	drain("c")
	if _, ok, err := src.Stage(t.Context(), "d", ""); ok || err != nil {
		t.Errorf("staged something out of nothing: %v", err)
	}
	g.nothingLeft()
}

func TestIndexStageThatLostItsIDIsReadAgain(t *testing.T) {
	g := newRig(t)
	g.change(false, "1", "one", 1)
	src := g.hashes(IndexedOptions{})
	stageNow(t, src, "a")
	g.Do("DEL", usersMeta)
	g.change(false, "2", "two", 2)
	db := newDatabase()
	db.drain(t, src)
	same(t, "rows", map[string]string{"1": "1|one|1", "2": "2|two|2"}, db.rows())
}

func TestReadOfAStaleIndexStageFails(t *testing.T) {
	g := newRig(t)
	g.Do("SADD", "changed:user", 1)
	src := g.hashes(IndexedOptions{})
	stageNow(t, src, "a")
	err := src.Read(t.Context(), flush.Stage{ID: "old"}, func(flush.Page) error { t.Error("a page"); return nil })
	if !errors.Is(err, flush.ErrStaleStage) {
		t.Error(err)
	}
}

func TestIndexOfTheWrongTypeIsNamed(t *testing.T) {
	g := newRig(t)
	src := g.hashes(IndexedOptions{})
	g.Do("SET", "changed:user", "x")
	for what, err := range map[string]error{
		"stage":   errOf(src.Stage(t.Context(), "a", "")),
		"backlog": second(src.Backlog(t.Context())),
	} {
		if !errors.Is(err, staging.ErrWrongType) || !strings.Contains(err.Error(), `"changed:user" is a string`) ||
			!strings.Contains(err.Error(), "a set or a zset") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, o := range []IndexedOptions{
		{Job: "j", Key: "user", Changed: "c"},
		{Job: "j", Key: "user:<id>", Changed: ""},
		{Job: "j", Key: "user:<id>", Changed: "a}"},
	} {
		if _, err := NewHashes(g.store, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

func TestErrorThatIsNotOneRowsOwnEndsTheRead(t *testing.T) {
	g := newRig(t)
	g.change(false, "1", "one", 1)
	g.Do("SADD", "changed:user", 2)
	src := g.hashes(IndexedOptions{})
	st := stageNow(t, src, "a")
	g.Do("ACL", "SETUSER", "default", "-hmget")
	err := src.Read(t.Context(), st, func(flush.Page) error { t.Error("a page"); return nil })
	if err == nil || !strings.Contains(err.Error(), "ACL SETUSER") || !strings.Contains(err.Error(), `"user:<id>"`) {
		t.Errorf("hmget forbidden: %v", err)
	}
	g.Do("ACL", "SETUSER", "default", "+hmget", "-exists")
	err = src.Read(t.Context(), st, func(flush.Page) error { t.Error("a page"); return nil })
	if err == nil {
		t.Error("exists forbidden, and nobody noticed")
	}
}

func byNumber(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return x - y
}
