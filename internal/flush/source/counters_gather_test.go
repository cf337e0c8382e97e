package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestCrashWhileGatheringAtAnyStepIsResumedExactly(t *testing.T) {
	t.Parallel()
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		names := map[string]bool{}
		var want map[string]int64
		crashAtEveryStep(t, names, func(_ *database, observe func(string) error) flush.Source {
			want = g.fillPlain(zset, 300)
			return plainOn(t, watched(g.store, observe), PlainCountersOptions{PartRows: 125, MemoryBudget: 2 << 10})
		}, func(db *database, when string) {
			for i := range 40 { // some of them are moved, and some are not
				page := fmt.Sprintf("p%d", i*7)
				g.sendHit(zset, page, 1000)
				want[page] += 1000
			}
			g.Do("")
			db.drain(t, g.plain(PlainCountersOptions{PartRows: 75}))
			same(t, "counts "+when, want, db.counts())
			g.noCounters()
		})
		crashedAt(t, names, "counters_stage", "counters_gather", "counters_seal",
			"HSCAN", "HGET", "HLEN", "HMGET", "counters_deal", "stage_discard")
	})
}

func TestConnectionCutWhileGatheringIsResumedExactly(t *testing.T) {
	g := newRig(t)
	p := g.redis.Proxy()
	store := openStore(t, g.redis.URLThrough(p))
	strikeAtEveryStep(t, "a cut", p.Cut, func(db *database, observe func(string) error) (flush.Source, func(string)) {
		want := g.fillPlain(false, 700)
		return plainOn(t, watched(store, observe), PlainCountersOptions{PartRows: 500}), func(when string) {
			same(t, "counts "+when, want, db.counts())
			g.noCounters()
		}
	})
}

// The reply of every script is lost once. The script has run, and must not act again.
func TestLostRepliesOfGatheringAreResumed(t *testing.T) {
	g := newRig(t)
	for _, s := range []*redis.Script{countersStageScript, countersGatherScript, countersSealScript} {
		if err := s.Load(g.Conn); err != nil {
			t.Fatal(err)
		}
	}
	p := g.redis.Proxy()
	src := plainOn(t, openStore(t, g.redis.URLThrough(p)), PlainCountersOptions{})
	for _, script := range []*redis.Script{countersStageScript, countersGatherScript, countersSealScript} {
		db := newDatabase()
		want := g.fillPlain(false, 100)
		lost := p.LoseReply(script.Hash())
		if _, err := db.flush(t.Context(), src, nil); err == nil {
			t.Fatal("flushed without a reply")
		}
		<-lost
		g.hit(false, "p3", 50)
		want["p3"] += 50
		db.drain(t, src)
		same(t, "counts", want, db.counts())
		g.noCounters()
	}
}

// A leader that was delayed tries to move counters that it had found before. Its successor has moved them already, and the present counts
// do not belong to that stage.
func TestLateGatheringMovesNothing(t *testing.T) {
	g := newRig(t)
	db := newDatabase()
	want := g.fillPlain(false, 1200)
	more := func(n int64) {
		for i := range 1200 {
			page := fmt.Sprint("p", i)
			g.Send("INCRBY", "hits:"+page, n)
			g.Send("SADD", "changed:hits", page)
			want[page] += n
		}
		g.Do("")
	}
	late := g.plain(PlainCountersOptions{})
	// at makes the late leader stand still at a step while others acts.
	at := func(step string, others func()) {
		once := false
		late.Store = watched(g.store, func(s string) error {
			if s == step && !once {
				once = true
				others()
			}
			return nil
		})
	}

	at(redistest.Before("counters_gather"), func() { // the successor moves the same counters and some more, and dies
		chunks := 0
		successor := plainOn(t, watched(openStore(t, g.redis.URL()), func(step string) error {
			if step == redistest.After("counters_gather") {
				if chunks++; chunks == 2 {
					return errCrash
				}
			}
			return nil
		}), PlainCountersOptions{})
		if _, _, err := successor.Stage(t.Context(), "b", ""); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		more(1000)
	})
	if st := stageNow(t, late, "a"); st.ID != "a" || st.Size != 1200 {
		t.Errorf("the late leader has staged %+v", st)
	}
	db.drain(t, late)
	same(t, "counts", want, db.counts())

	for i, step := range []string{redistest.Before("counters_gather"), redistest.Before("counters_seal")} {
		more(7)
		at(step, func() { // the successor finishes, and stages newer changes
			db.drain(t, g.plain(PlainCountersOptions{}))
			more(9)
			stageNow(t, g.plain(PlainCountersOptions{}), fmt.Sprint("d", i))
		})
		if _, _, err := late.Stage(t.Context(), fmt.Sprint("c", i), ""); !errors.Is(err, flush.ErrStaleStage) {
			t.Errorf("stage, late at %q: %v, want ErrStaleStage", step, err)
		}
		db.drain(t, late)
		same(t, "counts", want, db.counts())
	}
	g.noCounters()
}

// A client or a proxy may send the sealing again after it was executed.
func TestSealingThatIsSentAgainChangesNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.fillPlain(false, 300)
	src := g.plain(PlainCountersOptions{PartRows: 125})
	want := stageNow(t, src, "a")
	again := flush.Stage{ID: "a" + gathering, Job: want.Job}
	if ok, err := src.seal(t.Context(), &again, "a"); !ok || err != nil || again != want {
		t.Errorf("sealed again: %+v, %v, %v; want %+v", again, ok, err, want)
	}
	if _, err := src.seal(t.Context(), &flush.Stage{ID: "b" + gathering}, "b"); !errors.Is(err, flush.ErrStaleStage) {
		t.Errorf("sealed by another run: %v, want ErrStaleStage", err)
	}
}

// Random schedules of producers, flushes and crashes are compared with a sum.
func TestPlainCountersAreExactUnderAnySchedule(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	rapid.Check(t, func(r *rapid.T) {
		g.Do("FLUSHALL")
		zset := rapid.Bool().Draw(r, "zset")
		db, want := newDatabase(), map[string]int64{}
		flushTo := func(n int) {
			observe, _ := crashAt(n, nil)
			src := plainOn(t, watched(g.store, observe), PlainCountersOptions{
				PartRows:     rapid.IntRange(1, 40).Draw(r, "rows of a part"),
				MemoryBudget: rapid.IntRange(1, 4000).Draw(r, "budget"),
			})
			if _, err := db.flush(t.Context(), src, observe); err != nil && !errors.Is(err, errCrash) {
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
				g.Do("")
			},
			"crash": func(r *rapid.T) { flushTo(rapid.IntRange(1, 50).Draw(r, "step")) },
			"flush": func(*rapid.T) { flushTo(1 << 30) },
		})
		db.drain(t, g.plain(PlainCountersOptions{}))
		got := db.counts()
		for page, n := range want {
			if got[page] != n {
				r.Errorf("page %s: %d, want %d", page, got[page], n)
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
			producer := &rig{Client: testsupport.Client{T: t, Conn: g.redis.Conn()}, redis: g.redis, store: g.store}
			producers.Go(func() {
				for range testsupport.Often(3000) {
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
			return plainOn(t, watched(g.store, observe), PlainCountersOptions{PartRows: 1 + rnd.IntN(100), MemoryBudget: 1 +
				rnd.IntN(20_000)})
		})
		got := db.counts()
		for page, n := range want {
			if n == 0 {
				delete(want, page) // it may have been flushed as 1 and −1, or not at all
				if got[page] == 0 {
					delete(got, page)
				}
			}
		}
		same(t, "counts", want, got)
		g.noCounters()
	})
}
