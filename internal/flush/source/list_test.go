package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

const ordersStage, ordersMeta = "{orders}:baton:stage", "{orders}:baton:meta"

func (g *rig) list(o ListOptions) *List {
	g.T.Helper()
	return listOn(g.T, g.store, o)
}

func listOn(t testing.TB, store *redisconn.Store, o ListOptions) *List {
	t.Helper()
	preset(&o.Job, "orders")
	preset(&o.Key, "orders")
	if o.Inputs == nil {
		o.Inputs = []string{"id", "n"}
	}
	return made(t, NewList, store, o)
}

// item returns an item of a list. The sums of n by id show whether each item was flushed once.
func item(id string, n int) string { return fmt.Sprintf(`{"id":%q,"n":%d}`, id, n) }

// fillList pushes n items, and adds them to want.
func (g *rig) fillList(key string, n int, want map[string]int64) {
	g.T.Helper()
	for lo := 0; lo < n; lo += 1000 {
		args := []any{key}
		for i := lo; i < min(lo+1000, n); i++ {
			id := fmt.Sprintf("order:%d", i%1009)
			args = append(args, item(id, i))
			want[id] += int64(i)
		}
		g.Do("RPUSH", args...)
	}
}

func TestListIsFlushedOnceAndLeavesNothingBehind(t *testing.T) {
	g := newRig(t)
	db, want := newDatabase(), map[string]int64{}
	g.fillList("orders", 1234, want)
	src := g.list(ListOptions{PartRows: 100})
	db.drain(t, src)
	same(t, "sums", want, db.counts())
	g.fillList("orders", 3, want)
	db.drain(t, src)
	same(t, "sums after more", want, db.counts())
	g.nothingLeft()
	if db.Parts() != 14 {
		t.Errorf("%d parts, want 13 of 1234 items and 1 of 3", db.Parts())
	}
}

func TestPartsOfAListComeInOrderAndAreTheSameAtEveryReading(t *testing.T) {
	g := newRig(t, testsupport.RedisAOF())
	g.fillList("orders", 950, map[string]int64{})
	st := stageNow(t, g.list(ListOptions{PartRows: 100}), "a")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Job: "orders"}); st != want {
		t.Fatalf("staged %+v, want %+v", st, want)
	}
	g.Do("RPUSH", "orders", item("late", 1)) // a producer continues
	whole := readAll(t, g.list(ListOptions{}), st)
	if len(whole) != 10 || len(whole[9].Records) != 50 || whole[3].Part != 3 || whole[3].Records[7].Key != item("order:307", 307) {
		t.Fatalf("%d parts, the last one of %d", len(whole), len(whole[9].Records))
	}
	g.redis.Restart()
	store := openStore(t, g.redis.URL())
	// Another process has another size of parts and another memory limit. The stage stays as it was cut.
	again := listOn(t, store, ListOptions{Job: "renamed", PartRows: 7, BatchBytes: 1})
	found := stageNow(t, again, "b")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Resumed: true, Job: "orders"}); found != want {
		t.Fatalf("found %+v, want %+v", found, want)
	}
	if diff := difference(whole, readAll(t, again, found)); diff != "" {
		t.Errorf("other parts: %.1000s", diff)
	}
	if err := again.Done(t.Context(), found, whole[0]); err != nil {
		t.Fatal(err)
	}
	if diff := difference(whole[1:], readAll(t, again, found)); diff != "" {
		t.Errorf("other parts when one is off: %.1000s", diff)
	}
	if found := stageNow(t, again, "c"); found.Size != 850 || found.Parts != 10 {
		t.Errorf("when one part is off, found %+v", found)
	}
}

// itemsOf returns the items of each part, by the part's number.
func itemsOf(pages []flush.Page) map[int][]string {
	parts := map[int][]string{}
	for _, p := range pages {
		for _, r := range p.Records {
			parts[p.Part] = append(parts[p.Part], r.Key)
		}
	}
	return parts
}

// A part ends when it is full by rows or by bytes. A longer item is a part of its own. A second reading finds the same parts, no matter
// where the head is by then.
func TestPartsOfAListAreCutByBytes(t *testing.T) {
	g := newRig(t)
	item := func(i, size int) string { return fmt.Sprintf("%04d%s", i, strings.Repeat("x", size-4)) }
	var all []string
	for i := range 1000 {
		size := 10
		switch {
		case i%100 == 50:
			size = 5000 // longer than a part
		case i >= 500:
			size = 100
		}
		all = append(all, item(i, size))
	}
	for _, text := range all {
		g.Send("RPUSH", "orders", text)
	}
	g.Do("")
	src := g.list(ListOptions{PartRows: 30, BatchBytes: 2000})
	st := stageNow(t, src, "a")
	whole := readAll(t, src, st)
	var got []string
	for i, p := range whole {
		bytes := 0
		for _, r := range p.Records {
			bytes += len(r.Key)
			got = append(got, r.Key)
		}
		if p.Part != i || len(p.Records) > 30 || bytes > 2000 && len(p.Records) > 1 {
			t.Errorf("page %d is part %d of %d items and %d bytes", i, p.Part, len(p.Records), bytes)
		}
		if next := i + 1; next < len(whole) && len(p.Records) < 30 && bytes+len(whole[next].Records[0].Key) <= 2000 {
			t.Errorf("part %d of %d items and %d bytes has room for the next item", i, len(p.Records), bytes)
		}
	}
	if diff := difference(all, got); diff != "" {
		t.Fatalf("other items: %.1000s", diff)
	}
	want := itemsOf(whole)
	for i, p := range whole {
		// Another process has other sizes.
		again := g.list(ListOptions{PartRows: 1 + i*7%50, BatchBytes: 1 + i*997%5000})
		if diff := difference(want, itemsOf(readAll(t, again, stageNow(t, again, "b")))); diff != "" {
			t.Fatalf("with %d parts off there are others: %.1000s", i, diff)
		}
		if err := again.Done(t.Context(), st, p); err != nil {
			t.Fatal(err)
		}
		delete(want, p.Part)
	}
	if err := src.Discard(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	g.nothingLeft()
}

// A stage of an older version, whose parts all have the same length, must be finished as it was begun: the ledger may have some of its
// parts.
func TestListThatAnOlderVersionHasStagedIsFinished(t *testing.T) {
	g := newRig(t)
	for i := range 250 {
		g.Send("RPUSH", ordersStage, item(fmt.Sprint(i%7), i))
	}
	g.Do("HSET", ordersMeta, "id", "old", "parts", 3, "job", "orders", "size", 250, "rows", 100, "done", 0,
		"taken", 77, "part_rows", 3, "part_bytes", 5) // fields that an earlier stage has left
	src := g.list(ListOptions{PartRows: 7, BatchBytes: 100})
	st := stageNow(t, src, "b")
	pages := readAll(t, src, st)
	if st.ID != "old" || !st.Resumed || len(pages) != 3 || len(pages[0].Records) != 100 || len(pages[2].Records) != 50 {
		t.Fatalf("found %+v, and read %d parts", st, len(pages))
	}
	if err := src.Done(t.Context(), st, pages[0]); err != nil {
		t.Fatal(err)
	}
	st = stageNow(t, src, "c")
	if pages = readAll(t, src, st); st.Size != 150 || len(pages) != 2 || pages[0].Part != 1 || pages[0].Records[0].Key != item("2", 100) {
		t.Fatalf("then found %+v, and read %d parts", st, len(pages))
	}
	for _, p := range pages {
		if err := src.Done(t.Context(), st, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := src.Discard(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	g.nothingLeft()
}

// A version without a limit of bytes would cut other parts. It must refuse such a stage.
func TestListIsNotReadByAVersionThatWouldCutOtherParts(t *testing.T) {
	g := newRig(t)
	g.fillList("orders", 10, map[string]int64{})
	stageNow(t, g.list(ListOptions{BatchBytes: 100}), "a")
	if rows := g.Str("HGET", ordersMeta, "rows"); rows != "0" { // the older version refuses a stage without the rows of a part
		t.Errorf("it finds parts of %s items", rows)
	}
}

func TestPartOfAListIsTakenOffOnceAndInOrder(t *testing.T) {
	g := newRig(t)
	g.fillList("orders", 250, map[string]int64{})
	src := g.list(ListOptions{PartRows: 100})
	st := stageNow(t, src, "a")
	pages := readAll(t, src, st)
	if err := src.Done(t.Context(), st, pages[1]); err == nil || !strings.Contains(err.Error(), "before the previous part") {
		t.Errorf("the second part before the first: %v", err)
	}
	for range 2 { // the reply of the first call was lost
		if err := src.Done(t.Context(), st, pages[0]); err != nil {
			t.Fatal(err)
		}
		if n := g.Num("LLEN", ordersStage); n != 150 {
			t.Fatalf("%d items are left, want 150", n)
		}
	}
	other := flush.Stage{ID: "b", Parts: 3}
	for what, err := range map[string]error{
		"done":    src.Done(t.Context(), other, pages[1]),
		"discard": src.Discard(t.Context(), other),
		"read":    src.Read(t.Context(), other, func(flush.Page) error { t.Error("a page"); return nil }),
	} {
		if !errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("%s by another id: %v", what, err)
		}
	}
	if err := src.Discard(t.Context(), st); err != nil || g.Num("LLEN", ordersStage) != 150 {
		t.Errorf("discarding what is not drained: %v, %d items are left", err, g.Num("LLEN", ordersStage))
	}
	for _, p := range pages[1:] {
		if err := src.Done(t.Context(), st, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := src.Discard(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if err := src.Discard(t.Context(), st); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("discarding again: %v", err)
	}
	g.nothingLeft()
}

// All parts are removed, and the process died before it discarded the id. That does not count as a stage, and must not prevent the next
// one.
func TestDrainedListIsOver(t *testing.T) {
	g := newRig(t)
	g.fillList("orders", 10, map[string]int64{})
	src := g.list(ListOptions{})
	st := stageNow(t, src, "a")
	if err := src.Done(t.Context(), st, readAll(t, src, st)[0]); err != nil {
		t.Fatal(err)
	}
	g.fillList("orders", 3, map[string]int64{})
	if st := stageNow(t, src, "b"); st.ID != "b" || st.Resumed || st.Size != 3 {
		t.Errorf("staged %+v", st)
	}
	if err := src.Discard(t.Context(), st); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("discarding the first one late: %v", err)
	}
}

func TestDeposedReaderOfAListHandsNothingOver(t *testing.T) {
	g := newRig(t)
	g.fillList("orders", 250, map[string]int64{})
	src := g.list(ListOptions{PartRows: 100})
	st := stageNow(t, src, "a")
	successor := g.list(ListOptions{})
	pages := readAll(t, successor, st)
	var got []int
	src.Store = watched(g.store, func(step string) error {
		if step == redistest.Before("LRANGE") && len(got) == 1 {
			for _, p := range pages[:2] { // the successor is ahead
				if err := successor.Done(t.Context(), st, p); err != nil {
					return err
				}
			}
		}
		return nil
	})
	err := src.Read(t.Context(), st, func(p flush.Page) error { got = append(got, p.Part); return nil })
	if !errors.Is(err, flush.ErrStaleStage) || len(got) != 1 {
		t.Errorf("read parts %v, %v; want the first one and ErrStaleStage", got, err)
	}
}

func TestListThatSomebodyElseTouchedIsNotGuessedAt(t *testing.T) {
	for what, c := range map[string]struct {
		touch func(g *rig)
		say   string
	}{
		"an item is gone":    {func(g *rig) { g.Do("RPOP", ordersStage) }, "should have 250 more items"},
		"an item came":       {func(g *rig) { g.Do("RPUSH", ordersStage, "{}") }, "but has 251"},
		"the stage is gone":  {func(g *rig) { g.Do("DEL", ordersStage) }, "but has 0"},
		"the id is gone":     {func(g *rig) { g.Do("DEL", ordersMeta) }, "has no id"},
		"the stage is a set": {func(g *rig) { g.Do("DEL", ordersStage); g.Do("SADD", ordersStage, 1) }, "is a set"},
	} {
		t.Run(what, func(t *testing.T) {
			g := newRig(t)
			g.fillList("orders", 250, map[string]int64{})
			stageNow(t, g.list(ListOptions{}), "a")
			g.fillList("orders", 1, map[string]int64{})
			c.touch(g)
			_, ok, err := g.list(ListOptions{}).Stage(t.Context(), "b", "")
			if ok || err == nil || !strings.Contains(err.Error(), c.say) || !errors.Is(err, staging.ErrBrokenStage) && !errors.Is(err,
				staging.ErrWrongType) {
				t.Errorf("staged %v, %v; want to be told %q", ok, err, c.say)
			}
			if n := g.Num("LLEN", "orders"); n != 1 {
				t.Errorf("%d items are live, want the one", n)
			}
		})
	}
	t.Run("an item goes while it is read", func(t *testing.T) {
		g := newRig(t)
		g.fillList("orders", 250, map[string]int64{})
		src := g.list(ListOptions{PartRows: 100})
		st := stageNow(t, src, "a")
		g.Do("LPOP", ordersStage)
		err := src.Read(t.Context(), st, func(flush.Page) error { t.Error("a page"); return nil })
		if !errors.Is(err, staging.ErrBrokenStage) {
			t.Errorf("read: %v", err)
		}
	})
	t.Run("the live key is a hash", func(t *testing.T) {
		g := newRig(t)
		g.Do("HSET", "orders", "a", 1)
		_, _, err := g.list(ListOptions{}).Stage(t.Context(), "b", "")
		if !errors.Is(err, staging.ErrWrongType) || !strings.Contains(err.Error(), `"orders" is a hash, but job "orders" needs a list`) {
			t.Errorf("staged: %v", err)
		}
	})
}

// The index of hashes was drained, and a crash left its id, before a list got the same name.
func TestListIsFlushedWhereHashesWereBefore(t *testing.T) {
	g := newRig(t)
	g.Do("SADD", "orders", "7")
	before := g.hashes(IndexedOptions{Changed: "orders"})
	st := stageNow(t, before, "a")
	for _, p := range readAll(t, before, st) {
		if err := before.Done(t.Context(), st, p); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int64{}
	g.fillList("orders", 10, want)
	db := newDatabase()
	db.drain(t, g.list(ListOptions{}))
	same(t, "sums", want, db.counts())
	g.nothingLeft()
}

// If a user lacks a permission, the source must fail before it has staged anything in part.
func TestListIsNotHalfStaged(t *testing.T) {
	g := newRig(t)
	for _, lacks := range []string{"rename", "hset", "persist", "ltrim"} {
		g.Do("ACL", "SETUSER", "flusher", "reset", "on", "nopass", "~*", "+@all", "-"+lacks)
		g.Do("DEL", "orders", ordersStage, ordersMeta)
		want := map[string]int64{}
		g.fillList("orders", 10, want)
		store, err := redisconn.Open(redisconn.Options{URL: g.redis.URL(), Username: "flusher",
			Password: func() (string, error) { return "x", nil }})
		if err != nil {
			t.Fatal(err)
		}
		db := newDatabase()
		if _, err := db.flush(t.Context(), listOn(t, store, ListOptions{}), nil); !redisconn.IsDenied(err) {
			t.Errorf("without %s: %v", lacks, err)
		}
		_ = store.Close()
		db.drain(t, g.list(ListOptions{}))
		same(t, "sums when "+lacks+" was granted", want, db.counts())
		g.nothingLeft()
	}
}

// A part is removed with the commands that the preflight checks. If one were refused in the middle, the stage would look broken, although
// all of it is in the database.
func TestPartOfAListIsTakenOffWithWhatThePreflightAsksFor(t *testing.T) {
	g := newRig(t)
	want := map[string]int64{}
	g.fillList("orders", 25, want)
	g.Do("ACL", "SETUSER", "flusher", "reset", "on", "nopass", "~*", "+@all", "-hincrby")
	store, err := redisconn.Open(redisconn.Options{URL: g.redis.URL(), Username: "flusher",
		Password: func() (string, error) { return "x", nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	db := newDatabase()
	if _, err := db.flush(t.Context(), listOn(t, store, ListOptions{PartRows: 10}), nil); err != nil {
		t.Errorf("without hincrby, which is not asked for: %v", err)
	}
	same(t, "sums", want, db.counts())
	g.nothingLeft()
}

func TestItemsOfAListAreReadAsTheyAre(t *testing.T) {
	g := newRig(t)
	texts := []string{
		`{"id": "1", "n": 1.50, "more": [1, {"a": "b"}], "gone": null, "ok": true}`,
		`{"id":"é\n\u00e9\ud83d\ude00","n":"x"}`,
		`[1]`,
		`{"id":1,"id":2}`,
		"{\"id\":\"\xff\"}",
		`{"id":"\ud800"}`,
		`{"id":1`,
		``,
	}
	for _, text := range texts {
		g.Do("RPUSH", "orders", text)
	}
	src := g.list(ListOptions{Inputs: []string{"id", "n", "$value", "more", "gone", "ok", "nowhere"}})
	records := readAll(t, src, stageNow(t, src, "a"))[0].Records
	if len(records) != len(texts) {
		t.Fatalf("%d records", len(records))
	}
	var got []string
	for i, r := range records {
		if r.Key != texts[i] || r.Inputs[2] != (row.Raw{Text: texts[i], OK: true}) {
			t.Errorf("%q became key %q, $value %q", texts[i], r.Key, r.Inputs[2].Text)
		}
		r.Inputs[2] = row.Raw{}
		text := rowText(r)
		if r.Err != nil {
			text = "dead"
		}
		got = append(got, text)
	}
	want := []string{`1|1.50|-|[1, {"a": "b"}]|-|true|-`, "é\né😀|x|-|-|-|-|-", "dead", "dead", "dead", "dead", "dead", "dead"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBacklogOfAListCountsWhatIsStagedToo(t *testing.T) {
	g := newRig(t)
	g.fillList("orders", 250, map[string]int64{})
	src := g.list(ListOptions{PartRows: 100})
	st := stageNow(t, src, "a")
	g.fillList("orders", 7, map[string]int64{})
	if err := src.Done(t.Context(), st, readAll(t, src, st)[0]); err != nil {
		t.Fatal(err)
	}
	if n, err := src.Backlog(t.Context()); n != 157 || err != nil {
		t.Errorf("backlog %d, %v; want 157", n, err)
	}
}

func TestPeekShowsTheOldestItemsAndChangesNothing(t *testing.T) {
	g := newRig(t)
	src := g.list(ListOptions{})
	if records, err := src.Peek(t.Context(), 5); len(records) != 0 || err != nil {
		t.Errorf("of nothing: %d records, %v", len(records), err)
	}
	g.fillList("orders", 3, map[string]int64{})
	stageNow(t, src, "a")
	g.Do("RPUSH", "orders", item("later", 1), `x`, item("last", 1))
	before := g.Str("DUMP", "orders") + g.Str("DUMP", ordersStage)
	records, err := src.Peek(t.Context(), 5)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, r.Inputs[0].Text)
	}
	if diff := cmp.Diff([]string{"order:0", "order:1", "order:2", "later", ""}, got); diff != "" || records[4].Err == nil {
		t.Errorf("peeked %v: %s", records, diff)
	}
	if after := g.Str("DUMP", "orders") + g.Str("DUMP", ordersStage); after != before {
		t.Error("peeking has changed something")
	}
}

// waits starts a wait, and returns its result.
func waits(ctx context.Context, src flush.Waiter) <-chan error {
	done := make(chan error, 1)
	go func() { done <- src.Wait(ctx) }()
	return done
}

func TestWaitForAListEndsWithWorkAndChangesNothing(t *testing.T) {
	t.Parallel()
	for _, lacks := range []string{"", "blmove"} {
		t.Run("without "+lacks, func(t *testing.T) {
			g := newRig(t)
			store := g.store
			if lacks != "" {
				g.Do("ACL", "SETUSER", "default", "-"+lacks)
			}
			src := listOn(t, store, ListOptions{})
			for round := range 3 { // one connection serves all of them
				before := g.Calls()["llen"]
				done := waits(t.Context(), src)
				if lacks == "" {
					g.blocked(1)
				} else { // it has checked, and not returned
					testsupport.Await(t, "a second look", func() bool { return g.Calls()["llen"] > before+1 })
				}
				g.Do("RPUSH", "orders", item("a", round), item("b", round))
				if err := within(t, done); err != nil {
					t.Fatal(err)
				}
				if err := within(t, waits(t.Context(), src)); err != nil {
					t.Fatalf("with work: %v", err)
				}
				st := stageNow(t, src, fmt.Sprint(round))
				records := readAll(t, src, st)[0].Records
				if len(records) != 2 || records[0].Key != item("a", round) {
					t.Errorf("the list has become %v", records)
				}
				if err := within(t, waits(t.Context(), src)); err != nil {
					t.Fatalf("with a stage: %v", err)
				}
				if err := src.Done(t.Context(), st, flush.Page{Part: 0, Records: records}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// within waits for the end of a wait.
func within(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("still waits")
		return nil
	}
}

// A blocked connection is cut off, and no other connection is lost.
func TestWaitForAListEndsWithWorkWhileTheMemoryIsFull(t *testing.T) {
	g := newRig(t)
	src := g.list(ListOptions{})
	g.Do("RPUSH", src.Live, `{"id": 1}`)
	g.Do("CONFIG", "SET", "maxmemory", "1b", "maxmemory-policy", "noeviction")
	if err := src.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWaitForAListEndsWithItsContext(t *testing.T) {
	g := newRig(t)
	src := g.list(ListOptions{})
	if _, err := src.Backlog(t.Context()); err != nil { // opens a pooled connection
		t.Fatal(err)
	}
	before := g.clients()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := waits(ctx, src)
	g.blocked(1)
	enough := errors.New("enough")
	cancel(enough)
	if err := within(t, done); !errors.Is(err, enough) {
		t.Errorf("wait: %v", err)
	}
	g.blocked(0)
	if _, err := src.Backlog(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := g.clients(); len(after) != 1 || after[0] != before[0] {
		t.Errorf("connections %v are open, want only the pooled one, %v", after, before)
	}
}

// clients returns the ids of the store's connections.
func (g *rig) clients() (ids []string) {
	for line := range strings.Lines(g.Str("CLIENT", "LIST")) {
		if strings.Contains(line, "name=baton-test") {
			ids = append(ids, strings.Fields(line)[0])
		}
	}
	return ids
}

// blocked waits until Redis has that many blocked clients.
func (g *rig) blocked(n int) {
	g.T.Helper()
	line := fmt.Sprintf("blocked_clients:%d\r", n)
	testsupport.Await(g.T, line, func() bool { return strings.Contains(g.Str("INFO", "clients"), line) })
}

// A wait lasts longer than the time limit of a single reply.
func TestWaitForAListOutlastsTheTimeoutOfACommand(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	// Redis blocks repeatedly, each time for half of the time-out. A busy machine does not stop for so long.
	store := redistest.Open(t, redisconn.Options{URL: g.redis.URL(), Timeout: 3 * time.Second})
	before := g.Calls()["blmove"]
	done := waits(t.Context(), listOn(t, store, ListOptions{}))
	testsupport.Await(t, "three halves", func() bool {
		select {
		case err := <-done:
			t.Fatalf("returned without work: %v", err)
		default:
		}
		return g.Calls()["blmove"] >= before+3
	})
	g.Do("RPUSH", "orders", "x")
	if err := within(t, done); err != nil {
		t.Error(err)
	}
}
