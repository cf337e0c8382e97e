package source

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"baton/internal/flush/flushtest"
	"baton/internal/redisconn/redistest"
)

// There are keys of all types, and keys that come and go during the pass. Each key that exists during the whole pass must be read. No row
// whose key exists may be deleted.
func TestAPassOverABusyRedisMissesNothing(t *testing.T) {
	t.Parallel()
	const keys, gone = 8_000, 7_000
	g := newRig(t)
	write := func(c redis.Conn, i, round int) error {
		id := fmt.Sprintf("session:%d", i)
		switch i % 5 {
		case 0:
			return c.Send("HSET", id, "a", round)
		case 1:
			return c.Send("RPUSH", id, round)
		case 2:
			return c.Send("SADD", id, round)
		}
		return c.Send("SET", id, round)
	}
	for lo := 0; lo < keys; lo += 1000 {
		for i := lo; i < lo+1000; i++ {
			if err := write(g.Conn, i, 0); err != nil {
				t.Fatal(err)
			}
		}
		g.Do("")
	}
	j := sessions(g.store)
	j.options.PageRows = 500
	j.must(t)
	if n := len(j.table.texts()); n != keys/5*2 {
		t.Fatalf("%d rows", n)
	}
	// Keys with 3 modulo 10 come and go all the time. The keys from gone on were deleted.
	other := g.redis.Conn()
	for i := gone; i < keys; i++ {
		if err := other.Send("UNLINK", fmt.Sprintf("session:%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Do(""); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for round := 1; ; round++ {
			for lo := 0; lo < gone; lo += 1000 {
				for i := lo + 3; i < lo+1000; i += 10 {
					_ = other.Send("UNLINK", fmt.Sprintf("session:%d", i))
					_ = other.Send("SET", fmt.Sprintf("session:%d", i), round)
				}
				if _, err := other.Do(""); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}
	})
	j.must(t)
	close(stop)
	busy.Wait()
	rows := j.table.texts()
	for i := range keys {
		if _, there := rows[fmt.Sprint(i)]; there != (i%5 >= 3 && i < gone) {
			t.Fatalf("row %d is there: %v", i, there)
		}
	}
	j.must(t)
	rows = j.table.texts()
	for i := 3; i < gone; i += 500 { // each key was last set by a producer that has stopped
		if got, _ := redis.String(g.Do("GET", fmt.Sprintf("session:%d", i)), nil); rows[fmt.Sprint(i)] != got {
			t.Errorf("row %d differs from its key, %q", i, got)
		}
	}
}

// If a process dies at any step, a later pass makes the table equal to Redis.
func TestAScanThatDiesAnywhereIsMadeGoodByTheNext(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	names := map[string]bool{}
	for n := 1; ; n++ {
		g.Do("FLUSHALL")
		want := map[string]string{}
		for i := range 60 {
			g.Do("SET", fmt.Sprintf("session:%d", i), "old")
		}
		j := sessions(g.store)
		j.options.PageRows, j.options.Lanes = 20, 2
		j.must(t)
		for i := range 60 {
			switch i % 3 {
			case 0:
				g.Do("DEL", fmt.Sprintf("session:%d", i))
				continue
			case 1:
				g.Do("SET", fmt.Sprintf("session:%d", i), i)
			}
			want[fmt.Sprint(i)] = g.Str("GET", fmt.Sprintf("session:%d", i))
		}
		observe, _ := crashAt(n, names)
		j.observe = observe
		err := j.run(t.Context())
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("crash at %d: %v", n, err)
		}
		for id := range want {
			if _, ok := j.table.texts()[id]; !ok {
				t.Errorf("crash at %d: row %s has a key and is gone", n, id)
			}
		}
		j.observe = nil
		j.must(t)
		same(t, fmt.Sprintf("rows after a crash at step %d", n), want, j.table.texts())
		if err == nil {
			t.Logf("%d crashes", n-1)
			break
		}
	}
	for _, name := range []string{"INFO", "SCAN", "GET", "TYPE"} {
		for _, step := range []string{redistest.Before(name), redistest.After(name)} {
			if !names[step] {
				t.Errorf("step %q was never reached", step)
			}
		}
	}
	for _, step := range []flushtest.Step{flushtest.StepBeforeSweep, flushtest.StepStaleCounted, flushtest.StepStaleRead,
		flushtest.StepRechecked, flushtest.StepSwept} {
		if !names[string(step)] {
			t.Errorf("step %q was never reached", step)
		}
	}
}

// Producers write, passes are made and processes die in any order. After they have stopped, one complete pass must make the table equal to
// Redis.
func TestScansAreExactInAnyOrder(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	rapid.Check(t, func(t *rapid.T) {
		g.Do("FLUSHALL")
		model := map[string]string{}
		j := sessions(g.store)
		j.options.PageRows = rapid.IntRange(1, 7).Draw(t, "page")
		j.options.Lanes = rapid.IntRange(1, 3).Draw(t, "lanes")
		// Several goroutines draw numbers during a pass, and rapid allows only one.
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rate := rapid.IntRange(2, 30).Draw(t, "one change in")
		var mu sync.Mutex
		change := func() {
			id := fmt.Sprint(rng.IntN(12))
			switch rng.IntN(4) {
			case 0:
				g.Do("DEL", "session:"+id)
				delete(model, id)
			case 1: // a key of another type
				g.Do("DEL", "session:"+id)
				g.Do("SADD", "session:"+id, 1)
				delete(model, id)
			default:
				model[id] = fmt.Sprint(rng.IntN(1000))
				g.Do("SET", "session:"+id, model[id])
			}
		}
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			mu.Lock()
			for range rng.IntN(10) {
				change()
			}
			mu.Unlock()
			dead := errors.New("alive")
			j.observe = func(string) error {
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(dead, errCrash) {
					return errCrash
				}
				if rng.IntN(rate) == 0 {
					change()
				}
				if rng.IntN(40) == 0 {
					dead = errCrash
					return errCrash
				}
				return nil
			}
			if err := j.run(t.Context()); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			// After a crash, a late reply may still come. It must not change anything.
			mu.Lock()
			dead = errCrash
			mu.Unlock()
		}
		j.observe = nil
		if err := j.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := j.table.texts()
		if fmt.Sprint(got) != fmt.Sprint(model) {
			t.Fatalf("table %v, Redis %v", got, model)
		}
	})
}
