package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

var errCrash = errors.New("crash")

// crashAt returns an observer that fails at the n-th step (from 1) and at every later one: a dead process does nothing more. names collects
// the steps.
func crashAt(n int, names map[string]bool) (observe func(string) error, reached func() int) {
	var mu sync.Mutex
	count := 0
	return func(step string) error {
			mu.Lock()
			defer mu.Unlock()
			count++
			if names != nil {
				names[step] = true
			}
			if count >= n {
				return errCrash
			}
			return nil
		}, func() int {
			mu.Lock()
			defer mu.Unlock()
			return count
		}
}

// crashAtEveryStep flushes the changes that begin has made, and crashes at each step in turn. end makes more changes, lets a new process
// finish, and checks.
func crashAtEveryStep(t *testing.T, names map[string]bool, begin func(*database, func(step string) error) flush.Source,
	end func(db *database, when string),
) {
	t.Helper()
	for n := 1; ; n++ {
		db := newDatabase()
		observe, reached := crashAt(n, names)
		_, err := db.flush(t.Context(), begin(db, observe), observe)
		end(db, fmt.Sprintf("after a crash at step %d", n))
		if err == nil {
			t.Logf("%d crashes", n-1)
			return
		}
		if !errors.Is(err, errCrash) || reached() < n {
			t.Fatalf("crash at %d: %v", n, err)
		}
	}
}

// strikeAtEveryStep flushes the changes that begin has made, with a strike at each step in turn. The process survives and tries again. The
// function that begin returns checks the result.
func strikeAtEveryStep(t *testing.T, what string, strike func(),
	begin func(*database, func(step string) error) (src flush.Source, check func(when string)),
) {
	t.Helper()
	failed := 0
	for n, reached := 1, 1; reached >= n; n++ {
		db := newDatabase()
		var steps atomic.Int64 // an aborted request may still be on its way when the flush has ended
		src, check := begin(db, locked(func(string) error {
			if steps.Add(1) == int64(n) {
				strike()
			}
			return nil
		}))
		for more, tries := true, 0; more; tries++ {
			var err error
			if more, err = db.flush(t.Context(), src, nil); err != nil {
				failed++
				more = true
			}
			if tries == 10 {
				t.Fatalf("%s at step %d: does not recover: %v", what, n, err)
			}
		}
		check(fmt.Sprintf("after %s at step %d", what, n))
		reached = int(steps.Load())
	}
	if failed == 0 {
		t.Errorf("%s made nothing fail", what)
	}
}

// The process crashes once at every step of the protocol. A new process finishes the work, and the result must be the same as without a
// crash.
func TestCrashAtAnyStepIsResumedExactly(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	names := map[string]bool{}

	t.Run("counters", func(t *testing.T) {
		var want map[string]int64
		crashAtEveryStep(t, names, func(_ *database, observe func(string) error) flush.Source {
			want = g.fillCounters("views:3", 300)
			return countersOn(t, watched(g.store, observe), CountersOptions{PartRows: 100, MemoryBudget: 3 << 10})
		}, func(db *database, when string) {
			g.Do("HINCRBY", "views:3", "article:1", 1000)
			want["article:1"] += 1000
			db.drain(t, g.counters(CountersOptions{PartRows: 50}))
			same(t, "counts "+when, want, db.counts())
			g.nothingLeft()
		})
	})
	for _, zset := range []bool{false, true} {
		t.Run(fmt.Sprintf("hashes zset=%v", zset), func(t *testing.T) {
			var want map[string]string
			crashAtEveryStep(t, names, func(db *database, observe func(string) error) flush.Source {
				g.Do("FLUSHALL")
				want = map[string]string{}
				for i := range 60 {
					id := fmt.Sprint(i)
					g.change(zset, id, "name", i)
					want[id] = id + "|name|" + id
				}
				g.remove(zset, "7")
				delete(want, "7")
				db.putRow("7")
				return hashesOn(t, watched(g.store, observe), IndexedOptions{PageRows: 25})
			}, func(db *database, when string) {
				g.change(zset, "8", "later", 1)
				want["8"] = "8|later|1"
				db.drain(t, g.hashes(IndexedOptions{PageRows: 40}))
				same(t, "rows "+when, want, db.rows())
				g.nothingLeft()
			})
		})
	}
	crashedAt(t, names, "stage", "HSCAN", "HGET", "HLEN", "SSCAN", "ZSCAN", "HMGET", "MULTI", "stage_remove", "stage_discard")
}

// crashedAt fails unless there was a crash before or after each of these commands and scripts.
func crashedAt(t *testing.T, at map[string]bool, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, step := range []string{redistest.Before(name), redistest.After(name)} {
			if !at[step] {
				t.Errorf("nothing has crashed %s", step)
			}
		}
	}
}

// The connection is cut once at every step. The process survives and tries again.
func TestConnectionCutAtAnyStepIsResumedExactly(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	p := g.redis.Proxy()
	store := openStore(t, g.redis.URLThrough(p))
	t.Run("counters", func(t *testing.T) {
		strikeAtEveryStep(t, "a cut", p.Cut, func(db *database, observe func(string) error) (flush.Source, func(string)) {
			want := g.fillCounters("views:3", 300)
			src := countersOn(t, watched(store, observe), CountersOptions{PartRows: 100, MemoryBudget: 3 << 10})
			return src, func(when string) {
				same(t, "counts "+when, want, db.counts())
				g.nothingLeft()
			}
		})
	})
	t.Run("hashes", func(t *testing.T) {
		strikeAtEveryStep(t, "a cut", p.Cut, func(db *database, observe func(string) error) (flush.Source, func(string)) {
			want := map[string]string{}
			for i := range 60 {
				id := fmt.Sprint(i)
				g.change(false, id, "name", i)
				want[id] = id + "|name|" + id
			}
			return hashesOn(t, watched(store, observe), IndexedOptions{PageRows: 25}), func(when string) {
				same(t, "rows "+when, want, db.rows())
				g.nothingLeft()
			}
		})
	})
}

// locked makes an observer safe for concurrent calls of the reader and the writer.
func locked(observe func(string) error) func(string) error {
	var mu sync.Mutex
	return func(step string) error {
		mu.Lock()
		defer mu.Unlock()
		return observe(step)
	}
}

// seeded returns a generator. It prints the seed, which can be set for another run.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("BATON_TEST_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("BATON_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// flushUnder flushes, with random crashes, until stop is closed. Then it drains the source.
func flushUnder(t *testing.T, rnd *rand.Rand, db *database, stop <-chan struct{}, source func(observe func(string) error) flush.Source) {
	t.Helper()
	flushes, crashes := 0, 0
	for running := true; running; {
		select {
		case <-stop:
			running = false
		default:
		}
		observe, _ := crashAt(1+rnd.IntN(60), nil)
		more, err := db.flush(t.Context(), source(observe), observe)
		switch {
		case errors.Is(err, errCrash):
			crashes++
		case err != nil:
			t.Fatal(err)
		case more:
			flushes++
		}
	}
	db.drain(t, source(nil))
	t.Logf("%d flushes, %d crashes", flushes, crashes)
	if crashes == 0 {
		t.Error("nothing was tested: no crash happened")
	}
}

func TestNothingIsLostOfCountersWhileProducersGoOn(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	rnd := seeded(t)
	stop := make(chan struct{})
	want := map[string]int64{}
	var mu sync.Mutex
	var producers sync.WaitGroup
	for range 2 {
		own, c := rand.New(rand.NewPCG(rnd.Uint64(), 1)), g.redis.Conn()
		producers.Go(func() {
			for range testsupport.Often(4000) {
				field, n := fmt.Sprint(own.IntN(200)), own.IntN(9)-2
				if _, err := c.Do("HINCRBY", "views:3", field, n); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want[field] += int64(n)
				mu.Unlock()
			}
		})
	}
	go func() { producers.Wait(); close(stop) }()
	db := newDatabase()
	flushUnder(t, rnd, db, stop, func(observe func(string) error) flush.Source {
		return countersOn(t, watched(g.store, observe), CountersOptions{PartRows: 1 + rnd.IntN(100), MemoryBudget: 1 + rnd.IntN(20_000)})
	})
	same(t, "counts", want, db.counts())
	g.nothingLeft()
}

func TestLastWriteOfEveryHashArrivesWhileProducersGoOn(t *testing.T) {
	t.Parallel()
	bothIndexes(t, func(t *testing.T, g *rig, zset bool) {
		rnd := seeded(t)
		stop := make(chan struct{})
		producer := &rig{Client: testsupport.Client{T: t, Conn: g.redis.Conn()}, redis: g.redis, store: g.store}
		own := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		want := map[string]string{}
		go func() {
			defer close(stop)
			for i := range testsupport.Often(2000) {
				id := fmt.Sprint(own.IntN(150))
				if own.IntN(5) == 0 {
					producer.remove(zset, id)
					delete(want, id)
				} else {
					producer.change(zset, id, "v", i)
					want[id] = fmt.Sprintf("%s|v|%d", id, i)
				}
			}
		}()
		db := newDatabase()
		flushUnder(t, rnd, db, stop, func(observe func(string) error) flush.Source {
			return hashesOn(t, watched(g.store, observe), IndexedOptions{PageRows: 1 + rnd.IntN(60), MemoryBudget: 1 + rnd.IntN(20_000)})
		})
		<-stop
		same(t, "rows", want, db.rows())
		g.nothingLeft()
	})
}
