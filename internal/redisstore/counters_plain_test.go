package redisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"baton/internal/flush"
)

const hitsIndex, hitsStage, hitsMeta = "{changed:hits}:baton:index", "{changed:hits}:baton:stage", "{changed:hits}:baton:meta"

func (g *rig) plain(o PlainCountersOptions) *PlainCounters {
	g.t.Helper()
	return plainOn(g.t, g.store, o)
}

func plainOn(t testing.TB, store *Store, o PlainCountersOptions) *PlainCounters {
	t.Helper()
	if o.Job == "" {
		o.Job = "hits"
	}
	if o.Key == "" {
		o.Key = "hits:<page>"
	}
	if o.Changed == "" {
		o.Changed = "changed:hits"
	}
	if o.Inputs == nil {
		o.Inputs = []string{"page", "$value"}
	}
	src, err := NewPlainCounters(store, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// hit adds to a counter as producers do.
func (g *rig) hit(zset bool, page string, n int64) {
	g.t.Helper()
	g.sendHit(zset, page, n)
	g.do("")
}

func (g *rig) sendHit(zset bool, page string, n int64) {
	g.t.Helper()
	g.send("MULTI")
	g.send("INCRBY", "hits:"+page, n)
	if zset {
		g.send("ZADD", "changed:hits", n, page)
	} else {
		g.send("SADD", "changed:hits", page)
	}
	g.send("EXEC")
}

func (g *rig) send(name string, args ...any) {
	g.t.Helper()
	if err := g.conn.Send(name, args...); err != nil {
		g.t.Fatal(err)
	}
}

// fillPlain adds to n counters, pipelined.
func (g *rig) fillPlain(zset bool, n int) map[string]int64 {
	g.t.Helper()
	want := make(map[string]int64, n)
	for i := range n {
		page := fmt.Sprintf("p%d", i)
		want[page] = int64(i%97 + 1)
		g.send("INCRBY", "hits:"+page, want[page])
		if zset {
			g.send("ZADD", "changed:hits", i, page)
		} else {
			g.send("SADD", "changed:hits", page)
		}
		if i%1000 == 999 || i == n-1 {
			g.do("")
		}
	}
	return want
}

// noCounters asserts that every counter has been moved.
func (g *rig) noCounters() {
	g.t.Helper()
	keys, err := redis.Strings(g.do("KEYS", "*hits*"), nil)
	if err != nil || len(keys) > 0 {
		g.t.Errorf("keys left behind: %q, %v", keys, err)
	}
}

func TestPlainCountersAreFlushedOnceAndLeaveNothingBehind(t *testing.T) {
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		src := g.plain(PlainCountersOptions{PartRows: 100})
		db := newDatabase()
		want := g.fillPlain(zset, 1234)
		db.drain(t, src)
		same(t, "counts", want, db.counts)
		g.hit(zset, "p7", 5)
		g.hit(zset, "новый", -3)
		g.hit(zset, "", 2)
		want["p7"] += 5
		want["новый"], want[""] = -3, 2
		db.drain(t, src)
		same(t, "counts after more increments", want, db.counts)
		g.noCounters()
	})
}

func TestSealedCountersAreTheSameAtEveryReading(t *testing.T) {
	g := newRig(t)
	g.fillPlain(false, 950)
	src := g.plain(PlainCountersOptions{PartRows: 100, Lanes: 2})
	first := stageNow(t, src, "a")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Job: "hits"}); first != want {
		t.Fatalf("staged %+v, want %+v", first, want)
	}
	whole := partsOf(t, src, first)
	g.hit(false, "p1", 1000) // a producer goes on
	other := g.plain(PlainCountersOptions{PartRows: 7, Job: "renamed"})
	again := stageNow(t, other, "b")
	if want := (flush.Stage{ID: "a", Parts: 10, Size: 950, Resumed: true, Job: "hits"}); again != want {
		t.Fatalf("found %+v, want %+v", again, want)
	}
	if diff := cmp.Diff(whole, partsOf(t, other, again)); diff != "" {
		t.Errorf("another reading gives other parts: %.1000s", diff)
	}
	if n := g.num("GET", "hits:p1"); n != 1000 {
		t.Errorf("the live counter has %d, want the 1000 that came later", n)
	}
	for _, p := range readAll(t, src, again) {
		if p.Lane != p.Part%2 {
			t.Errorf("part %d is of lane %d", p.Part, p.Lane)
		}
	}
	if ttl := g.num("PTTL", hitsStage); ttl != -1 {
		t.Errorf("PTTL of the stage: %d", ttl)
	}
}

func TestCrashWhileGatheringAtAnyStepIsResumedExactly(t *testing.T) {
	t.Parallel()
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		names := map[string]bool{}
		for n := 1; ; n++ {
			db := newDatabase()
			want := g.fillPlain(zset, 600)
			observe, reached := crashAt(n, names)
			_, err := db.flushOnce(t.Context(), g.plain(PlainCountersOptions{PartRows: 250, MemoryBudget: 4 << 10, Observe: observe}), observe)
			for i := range 40 { // some of them are moved, some are not
				page := fmt.Sprintf("p%d", i*15)
				g.sendHit(zset, page, 1000)
				want[page] += 1000
			}
			g.do("")
			db.drain(t, g.plain(PlainCountersOptions{PartRows: 150}))
			same(t, fmt.Sprintf("counts after a crash at step %d", n), want, db.counts)
			g.noCounters()
			if err == nil {
				t.Logf("%d crashes", n-1)
				break
			}
			if !errors.Is(err, errCrash) || reached() < n {
				t.Fatalf("crash at %d: %v", n, err)
			}
		}
		for _, step := range StepsOf("plain") {
			if !names[step] {
				t.Errorf("nothing has crashed at %q", step)
			}
		}
	})
}

func TestConnectionCutWhileGatheringIsResumedExactly(t *testing.T) {
	g := newRig(t)
	p := g.redis.Proxy()
	store := openStore(t, g.redis.URLThrough(p))
	failed := 0
	for n, reached := 1, 1; reached >= n; n++ {
		db := newDatabase()
		steps := 0
		want := g.fillPlain(false, 700)
		src := plainOn(t, store, PlainCountersOptions{PartRows: 500, Observe: locked(func(string) error {
			if steps++; steps == n {
				p.Cut()
			}
			return nil
		})})
		for more, tries := true, 0; more; tries++ {
			var err error
			if more, err = db.flushOnce(t.Context(), src, nil); err != nil {
				failed++
				more = true
			}
			if tries == 10 {
				t.Fatalf("cut at step %d: does not recover: %v", n, err)
			}
		}
		same(t, fmt.Sprintf("counts after a cut at step %d", n), want, db.counts)
		g.noCounters()
		reached = steps
	}
	if failed == 0 {
		t.Error("no cut made anything fail")
	}
}

// The reply of every script is lost once: it was done, and must not be done again.
func TestLostRepliesOfGatheringAreResumed(t *testing.T) {
	g := newRig(t)
	for _, s := range []*redis.Script{countersStageScript, countersGatherScript, countersSealScript} {
		if err := s.Load(g.conn); err != nil {
			t.Fatal(err)
		}
	}
	p := g.redis.Proxy()
	src := plainOn(t, openStore(t, g.redis.URLThrough(p)), PlainCountersOptions{})
	for _, script := range []*redis.Script{countersStageScript, countersGatherScript, countersSealScript} {
		db := newDatabase()
		want := g.fillPlain(false, 100)
		lost := p.LoseReply(script.Hash())
		if _, err := db.flushOnce(t.Context(), src, nil); err == nil {
			t.Fatal("flushed without a reply")
		}
		<-lost
		g.hit(false, "p3", 50)
		want["p3"] += 50
		db.drain(t, src)
		same(t, "counts", want, db.counts)
		g.noCounters()
	}
}

// A leader that was held up moves what it had found before: its successor has moved it
// already, and what is in the counters now is not of that stage.
func TestLateGatheringMovesNothing(t *testing.T) {
	g := newRig(t)
	db := newDatabase()
	want := g.fillPlain(false, 1200)
	more := func(n int64) {
		for i := range 1200 {
			page := fmt.Sprint("p", i)
			g.send("INCRBY", "hits:"+page, n)
			g.send("SADD", "changed:hits", page)
			want[page] += n
		}
		g.do("")
	}
	late := g.plain(PlainCountersOptions{})
	// at has the late leader stand still at a step while others do something.
	at := func(step string, others func()) {
		late.observe = func(s string) error {
			if s == step {
				late.observe = nil
				others()
			}
			return nil
		}
	}

	at(stepGather, func() { // the successor moves the same counters, and some more, and dies
		chunks := 0
		successor := g.plain(PlainCountersOptions{Observe: func(step string) error {
			if step == stepGathered {
				if chunks++; chunks == 2 {
					return errCrash
				}
			}
			return nil
		}})
		if _, _, err := successor.Stage(t.Context(), "b", ""); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		more(1000)
	})
	if st := stageNow(t, late, "a"); st.ID != "a" || st.Size != 1200 {
		t.Errorf("the late leader has staged %+v", st)
	}
	db.drain(t, late)
	same(t, "counts", want, db.counts)

	for i, step := range []string{stepGather, stepSeal} {
		more(7)
		at(step, func() { // the successor does all of it, and stages what has come since
			db.drain(t, g.plain(PlainCountersOptions{}))
			more(9)
			stageNow(t, g.plain(PlainCountersOptions{}), fmt.Sprint("d", i))
		})
		if _, _, err := late.Stage(t.Context(), fmt.Sprint("c", i), ""); !errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("stage, late at %q: %v, want ErrStaleStage", step, err)
		}
		db.drain(t, late)
		same(t, "counts", want, db.counts)
	}
	g.noCounters()
}

func TestScanThatMissesCountersIsNotSealed(t *testing.T) {
	g := newRig(t)
	g.fillPlain(false, 10)
	src := g.plain(PlainCountersOptions{Observe: func(step string) error {
		if step == stepSeal { // a counter that the scan did not return
			g.do("SMOVE", "unseen", hitsIndex, "p77")
		}
		return nil
	}})
	g.do("SADD", "unseen", "p77")
	g.do("SET", "hits:p77", 5)
	if _, _, err := src.Stage(t.Context(), "a", ""); err == nil || !strings.Contains(err.Error(), "the scan did not return") {
		t.Errorf("stage: %v", err)
	}
	if st := stageNow(t, src, "b"); st.ID != "a" || st.Size != 11 {
		t.Errorf("found %+v", st)
	}
}

// What is no number must reach the mapping, which makes a dead letter of it.
func TestPlainCountersThatAreNoNumbersAreHandedOver(t *testing.T) {
	g := newRig(t)
	g.do("SET", "hits:text", "many")
	g.do("RPUSH", "hits:list", "x")
	g.do("SET", "hits:decimal", "1.5e-7")
	g.do("SET", "hits:zero", 0)
	g.do("SET", "hits:empty", "")
	g.do("SADD", "changed:hits", "text", "list", "decimal", "zero", "empty", "missing")
	src := g.plain(PlainCountersOptions{Inputs: []string{"$value", "page"}})
	got := map[string]string{}
	st := stageNow(t, src, "a")
	for _, p := range readAll(t, src, st) {
		for _, r := range p.Records {
			got[r.Key] = r.Inputs[0].Text + " of " + r.Inputs[1].Text
		}
	}
	same(t, "records", map[string]string{
		"text": "many of text", "list": "a list and no counter of list", "decimal": "1.5e-7 of decimal", "empty": " of empty",
	}, got)
	if left, _ := redis.Strings(g.do("KEYS", "hits:*"), nil); len(left) != 1 || left[0] != "hits:list" {
		t.Errorf("left in their keys: %q, want what is no counter alone", left)
	}
	if err := src.Discard(t.Context(), st); err != nil {
		t.Error(err)
	}
	g.nothingLeft()
}

func TestNothingCountedStagesNothing(t *testing.T) {
	g := newRig(t)
	src := g.plain(PlainCountersOptions{})
	nothing := func() {
		t.Helper()
		if st, ok, err := src.Stage(t.Context(), "a", ""); ok || err != nil {
			t.Errorf("staged %+v, %v, %v", st, ok, err)
		}
		g.nothingLeft()
	}
	nothing()
	g.do("SADD", "changed:hits", 1, 2)
	g.do("SET", "hits:1", 0)
	nothing()
	g.noCounters()

	// An earlier run has left such a stage; what has come since is staged at once.
	g.do("SADD", "changed:hits", 1)
	crash := g.plain(PlainCountersOptions{Observe: func(step string) error {
		if step == stepGather {
			return errCrash
		}
		return nil
	}})
	if _, _, err := crash.Stage(t.Context(), "b", ""); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	g.hit(false, "2", 4)
	if st := stageNow(t, src, "c"); st.ID != "c" || st.Resumed || st.Size != 1 {
		t.Errorf("staged %+v", st)
	}
}

func TestPermissionThatIsMissingLosesNoPlainCounter(t *testing.T) {
	shared := newRig(t)
	for _, zset := range []bool{false, true} {
		index := map[bool][]string{false: {"scard", "sismember", "sscan", "srem"}, true: {"zcard", "zscore", "zscan", "zrem"}}[zset]
		for _, missing := range append(index, "type", "hlen", "exists", "persist", "hset", "rename", "hmget", "hget", "unlink", "mget", "del", "hscan") {
			t.Run(missing, func(t *testing.T) {
				g := &rig{t: t, redis: shared.redis, conn: shared.conn}
				g.do("FLUSHALL")
				want := g.fillPlain(zset, 50)
				g.do("ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "+@all", "-"+missing)
				s, err := Open(Options{URL: g.redis.URL(), Username: "app", Password: func() (string, error) { return "pw", nil }})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				src := plainOn(t, s, PlainCountersOptions{PartRows: 10})
				db := newDatabase()
				for range 2 {
					_, _ = db.flushOnce(t.Context(), src, nil)
					g.hit(zset, "p7", 100)
					want["p7"] += 100
				}
				g.do("ACL", "SETUSER", "app", "+@all")
				db.drain(t, src)
				same(t, "counts", want, db.counts)
				g.noCounters()
			})
		}
	}
}

func TestFullRedisIsGathered(t *testing.T) {
	g := newRig(t)
	want := g.fillPlain(false, 700)
	g.do("SET", "much", strings.Repeat("x", 4<<20))
	g.do("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction")
	if _, err := g.conn.Do("SET", "more", "x"); err == nil || !strings.HasPrefix(err.Error(), "OOM") {
		t.Fatalf("Redis is not full: %v", err)
	}
	db := newDatabase()
	db.drain(t, g.plain(PlainCountersOptions{PartRows: 10}))
	same(t, "counts", want, db.counts)
}

func TestGatheredCountersThatAreGoneAreReported(t *testing.T) {
	for what, spoil := range map[string]func(g *rig){
		"all of them":     func(g *rig) { g.do("UNLINK", hitsStage) },
		"some, unsealed":  func(g *rig) { g.do("HDEL", hitsStage, "p1"); g.do("HDEL", hitsMeta, "parts") },
		"one, of another": func(g *rig) { g.do("HDEL", hitsStage, "p1") },
	} {
		t.Run(what, func(t *testing.T) {
			g := newRig(t)
			g.fillPlain(false, 10)
			src := g.plain(PlainCountersOptions{})
			stageNow(t, src, "a")
			spoil(g)
			_, _, err := src.Stage(t.Context(), "b", "")
			if !errors.Is(err, ErrBrokenStage) || !strings.Contains(err.Error(), "DEL "+hitsMeta) {
				t.Errorf("stage: %v", err)
			}
		})
	}
}

func TestGatheredCountersWithoutTheirIDAreNeverOverwritten(t *testing.T) {
	g := newRig(t)
	g.do("HSET", hitsStage, "p1", 41)
	g.hit(false, "p1", 1)
	src := g.plain(PlainCountersOptions{})
	_, _, err := src.Stage(t.Context(), "new", "")
	if !errors.Is(err, ErrBrokenStage) || !strings.Contains(err.Error(), "HSET "+hitsMeta+" id") {
		t.Errorf("stage: %v", err)
	}
	g.do("HSET", hitsMeta, "id", "mended") // the remedy that the message gives
	db := newDatabase()
	db.drain(t, src)
	same(t, "counts", map[string]int64{"p1": 42}, db.counts)
	g.noCounters()

	// A staged index without its id has lost nothing: its counters still have their counts.
	g.do("SADD", hitsIndex, "p2")
	g.do("SET", "hits:p2", 5)
	db.drain(t, src)
	same(t, "counts", map[string]int64{"p1": 42, "p2": 5}, db.counts)
	g.noCounters()
}

func TestPlainCounterKeysOfTheWrongTypeAreNamed(t *testing.T) {
	g := newRig(t)
	src := g.plain(PlainCountersOptions{})
	for key, needs := range map[string]string{"changed:hits": "set or a zset", hitsIndex: "set or a zset", hitsStage: "hash", hitsMeta: "hash"} {
		g.do("RPUSH", key, "x")
		err := errOf(src.Stage(t.Context(), "a", ""))
		if !errors.Is(err, ErrWrongType) || !strings.Contains(err.Error(), strconv.Quote(key)+" is a list") || !strings.Contains(err.Error(), needs) {
			t.Errorf("stage with a list in %s: %v", key, err)
		}
		if key != hitsMeta {
			if err := second(src.Backlog(t.Context())); !errors.Is(err, ErrWrongType) {
				t.Errorf("backlog with a list in %s: %v", key, err)
			}
		}
		g.do("DEL", key)
	}
}

func TestBacklogOfPlainCountersCountsLiveAndStaged(t *testing.T) {
	g := newRig(t)
	g.fillPlain(false, 20)
	crash := g.plain(PlainCountersOptions{Observe: func(step string) error {
		if step == stepGather {
			return errCrash
		}
		return nil
	}})
	if _, _, err := crash.Stage(t.Context(), "a", ""); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	g.hit(false, "p1", 1)
	for range 2 { // staged, then gathered
		if n, err := crash.Backlog(t.Context()); n != 21 || err != nil {
			t.Errorf("backlog %d, %v; want 21", n, err)
		}
		stageNow(t, g.plain(PlainCountersOptions{}), "b")
	}
}

func TestPlainCountersAreCheckedWhenTheyAreMade(t *testing.T) {
	g := newRig(t)
	for want, o := range map[string]PlainCountersOptions{
		"<":             {Job: "j", Key: "hits", Changed: "c"},
		"input":         {Job: "j", Key: "hits:<page>", Changed: "c", Inputs: []string{"$field"}},
		"empty":         {Job: "j", Key: "hits:<page>"},
		"name of its j": {Key: "hits:<page>", Changed: "c"},
	} {
		if _, err := NewPlainCounters(g.store, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v does not say %q", o, err, want)
		}
	}
}

// Random schedules of producers, flushes and crashes, against a sum.
func TestPlainCountersAreExactUnderAnySchedule(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	rapid.Check(t, func(r *rapid.T) {
		g.do("FLUSHALL")
		zset := rapid.Bool().Draw(r, "zset")
		db, want := newDatabase(), map[string]int64{}
		flushTo := func(n int) {
			observe, _ := crashAt(n, nil)
			src := g.plain(PlainCountersOptions{
				PartRows:     rapid.IntRange(1, 40).Draw(r, "rows of a part"),
				MemoryBudget: rapid.IntRange(1, 4000).Draw(r, "budget"), Observe: observe,
			})
			if _, err := db.flushOnce(t.Context(), src, observe); err != nil && !errors.Is(err, errCrash) {
				r.Fatal(err)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"produce": func(r *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(r, "increments") {
					page, n := fmt.Sprint(rapid.IntRange(0, 80).Draw(r, "page")), rapid.Int64Range(-3, 9).Draw(r, "n")
					g.sendHit(zset, page, n)
					want[page] += n
				}
				g.do("")
			},
			"crash": func(r *rapid.T) { flushTo(rapid.IntRange(1, 25).Draw(r, "step")) },
			"flush": func(*rapid.T) { flushTo(1 << 30) },
		})
		db.drain(t, g.plain(PlainCountersOptions{}))
		for page, n := range want {
			if db.counts[page] != n {
				r.Errorf("page %s: %d, want %d", page, db.counts[page], n)
			}
		}
	})
}

func TestNothingIsLostOfPlainCountersWhileProducersGoOn(t *testing.T) {
	t.Parallel()
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		rnd := seeded(t)
		stop := make(chan struct{})
		want := map[string]int64{}
		var mu sync.Mutex
		var producers sync.WaitGroup
		for range 2 {
			own := rand.New(rand.NewPCG(rnd.Uint64(), 1))
			producer := &rig{t: t, redis: g.redis, store: g.store, conn: g.redis.Conn()}
			producers.Go(func() {
				for range 2000 {
					page, n := fmt.Sprint(own.IntN(700)), int64(own.IntN(9)-2)
					producer.hit(zset, page, n)
					mu.Lock()
					want[page] += n
					mu.Unlock()
				}
			})
		}
		go func() { producers.Wait(); close(stop) }()
		db := newDatabase()
		flushUnder(t, rnd, db, stop, func(observe func(string) error) flush.Source {
			return g.plain(PlainCountersOptions{PartRows: 1 + rnd.IntN(100), MemoryBudget: 1 + rnd.IntN(20_000), Observe: observe})
		})
		for page, n := range want {
			if n == 0 {
				delete(want, page) // it may have been flushed as 1 and −1, or not at all
				if db.counts[page] == 0 {
					delete(db.counts, page)
				}
			}
		}
		same(t, "counts", want, db.counts)
		g.noCounters()
	})
}

func TestPlainCountersOfAClusterShareTheirIndexsSlot(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	for _, o := range []PlainCountersOptions{
		{Key: "hits:<page>", Changed: "changed:hits"},
		{Key: "{hits}:<page>", Changed: "changed:hits"},
		{Key: "hits:<page>:{changed:hits}", Changed: "changed:hits"}, // a page may have a brace
		{Key: "{<page>}", Changed: "{x}"},
	} {
		o.Job = "hits"
		if _, err := NewPlainCounters(g.store, o); err == nil || !strings.Contains(err.Error(), "the same {tag}") {
			t.Errorf("%s with %s: %v", o.Key, o.Changed, err)
		}
	}
	db, want := newDatabase(), map[string]int64{}
	src := plainOn(t, g.store, PlainCountersOptions{Key: "{hits}:<page>", Changed: "{hits}:changed", PartRows: 100})
	for round := range 2 {
		for i := range 600 {
			page := fmt.Sprintf("{%d}", i)
			g.do("INCRBY", "{hits}:"+page, i+round+1)
			g.do("SADD", "{hits}:changed", page)
			want[page] += int64(i + round + 1)
		}
		db.drain(t, src)
	}
	same(t, "counts", want, db.counts)
}
