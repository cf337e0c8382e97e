package redisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"baton/internal/flush"
)

// sessions is a job of the keys session:<id>, each a string.
func sessions(store *Store) *scanJob {
	return &scanJob{store: store, table: newScanTable("id", "v"), options: ScanOptions{Key: "session:<id>", Value: "string"},
		columns: map[string]flush.ColumnSpec{"id": {}, "v": {From: "$value"}}}
}

func TestRowsOfVanishedKeysAreDeletedAndNoOthers(t *testing.T) {
	g := newRig(t)
	want := map[string]string{}
	for i := range 3000 {
		g.send("SET", fmt.Sprintf("session:%d", i), i)
		want[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	g.do("")
	j := sessions(g.store)
	// Rows that no scan has written are somebody else's.
	j.table.rows["mine"] = map[string]string{"id": "mine", "v": "x"}
	j.table.rows["too"] = map[string]string{"id": "too", "v": "x", "gen": "0"}
	want["mine"], want["too"] = "x", "x"
	j.must(t)
	same(t, "rows", want, j.table.texts())
	for i := 0; i < 3000; i += 2 {
		g.send("DEL", fmt.Sprintf("session:%d", i))
		delete(want, fmt.Sprint(i))
	}
	g.do("DEL", "session:1")
	g.do("RPUSH", "session:1", "of another type") // no row any more
	delete(want, "1")
	j.must(t)
	same(t, "rows after deletes", want, j.table.texts())
	if j.table.deletes != 1501 {
		t.Errorf("%d rows deleted", j.table.deletes)
	}
}

func TestTooManyVanishedRowsAreAnErrorAndStay(t *testing.T) {
	g := newRig(t)
	for i := range 100 {
		g.do("SET", fmt.Sprintf("session:%d", i), i)
	}
	j := sessions(g.store)
	j.maxPct = 10
	j.table.rows["mine"] = map[string]string{"id": "mine"} // does not count
	j.must(t)
	for i := range 10 {
		g.do("DEL", fmt.Sprintf("session:%d", i))
	}
	j.must(t) // just as many as it may
	if n := len(j.table.texts()); n != 91 {
		t.Errorf("%d rows", n)
	}
	g.do("FLUSHDB")
	err := j.run(t.Context())
	var many *flush.TooManyVanishedError
	if !errors.Is(err, flush.ErrTooManyVanished) || !errors.As(err, &many) || many.Stale != 90 || many.All != 90 {
		t.Fatalf("an empty Redis: %v", err)
	}
	for _, word := range []string{"90 of 90", `"rows"`, "session:<id>", "pattern", "database number", "FLUSHDB", "max_pct"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not tell %s: %v", word, err)
		}
	}
	if n := len(j.table.texts()); n != 91 {
		t.Errorf("%d rows", n)
	}
	j.maxPct = 100
	j.must(t)
	same(t, "rows that were allowed to go", map[string]string{"mine": "-"}, j.table.texts())
}

// What comes back, or was out of sight while the pass went by, survives.
func TestAKeyThatComesBackBeforeTheSweepKeepsItsRow(t *testing.T) {
	for _, c := range []struct {
		name         string
		options      ScanOptions
		columns      map[string]flush.ColumnSpec
		key          string
		there, again []any
		gone         []any
	}{
		{"string", ScanOptions{Key: "k:<id>", Value: "string"}, map[string]flush.ColumnSpec{"id": {}, "v": {From: "$value"}}, "id",
			[]any{"SET", "k:1", "x"}, []any{"SET", "k:1", "y"}, []any{"DEL", "k:1"}},
		{"hash", ScanOptions{Key: "k:<id>", Value: "hash"}, map[string]flush.ColumnSpec{"id": {From: "$key"}, "v": {}}, "id",
			[]any{"HSET", "k:1", "v", "x"}, []any{"HSET", "k:1", "w", "x"}, []any{"DEL", "k:1"}},
		{"set", ScanOptions{Key: "k:<a>:<b>", Value: "set"}, map[string]flush.ColumnSpec{"a": {}, "b": {}, "m": {From: "$member"}}, "b a m",
			[]any{"SADD", "k:1:2", "x"}, []any{"SADD", "k:1:2", "x"}, []any{"SREM", "k:1:2", "x"}},
		{"zset", ScanOptions{Key: "k:<id>:z", Value: "zset"}, map[string]flush.ColumnSpec{"id": {}, "m": {From: "$member"}}, "m id",
			[]any{"ZADD", "k:1:z", "7", "x"}, []any{"ZADD", "k:1:z", "8", "x"}, []any{"ZREM", "k:1:z", "x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			j := &scanJob{store: g.store, table: newScanTable(c.key, "v"), options: c.options, columns: c.columns}
			do := func(command []any) { g.do(command[0].(string), command[1:]...) }
			do(c.there)
			j.must(t)
			do(c.gone)
			j.observe = at(string(flush.StepStaleRead), func() { do(c.again) })
			j.must(t)
			if len(j.table.rows) != 1 {
				t.Errorf("the row is gone: %v", j.table.rows)
			}
			j.observe = nil
			do(c.gone)
			j.must(t)
			if len(j.table.rows) != 0 {
				t.Errorf("the row is there still: %v", j.table.rows)
			}
		})
	}
}

// Keys of all types, and keys that come and go while the pass is on: whoever is there
// from its beginning to its end is read, and nobody's row is deleted who is there.
func TestAPassOverABusyRedisMissesNothing(t *testing.T) {
	t.Parallel()
	const keys, gone = 20_000, 18_000
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
			if err := write(g.conn, i, 0); err != nil {
				t.Fatal(err)
			}
		}
		g.do("")
	}
	j := sessions(g.store)
	j.options.PageRows = 500
	j.must(t)
	if n := len(j.table.texts()); n != keys/5*2 {
		t.Fatalf("%d rows", n)
	}
	// Keys of 3 modulo 10 go and come all the time; those from gone on have gone.
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
	for i := 3; i < gone; i += 500 { // each was set last by somebody who has stopped
		if got, _ := redis.String(g.do("GET", fmt.Sprintf("session:%d", i)), nil); rows[fmt.Sprint(i)] != got {
			t.Errorf("row %d differs from its key, %q", i, got)
		}
	}
}

// Whatever step a process dies at: a later pass makes the table what Redis is.
func TestAScanThatDiesAnywhereIsMadeGoodByTheNext(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	names := map[string]bool{}
	for n := 1; ; n++ {
		g.do("FLUSHALL")
		want := map[string]string{}
		for i := range 60 {
			g.do("SET", fmt.Sprintf("session:%d", i), "old")
		}
		j := sessions(g.store)
		j.options.PageRows, j.options.Lanes = 20, 2
		j.must(t)
		for i := range 60 {
			switch i % 3 {
			case 0:
				g.do("DEL", fmt.Sprintf("session:%d", i))
				continue
			case 1:
				g.do("SET", fmt.Sprintf("session:%d", i), i)
			}
			want[fmt.Sprint(i)] = g.str("GET", fmt.Sprintf("session:%d", i))
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
	for _, step := range StepsOf("scan") {
		if !names[step] {
			t.Errorf("step %q was never reached", step)
		}
	}
	for _, step := range []flush.Step{flush.StepBeforeSweep, flush.StepStaleCounted, flush.StepStaleRead, flush.StepRechecked, flush.StepSwept} {
		if !names[string(step)] {
			t.Errorf("step %q was never reached", step)
		}
	}
}

// A deposed leader that goes on in the middle of its sweep deletes nothing.
func TestASweepOfADeposedLeaderDeletesNothing(t *testing.T) {
	g := newRig(t)
	g.do("SET", "session:1", "x")
	j := sessions(g.store)
	j.must(t)
	g.do("DEL", "session:1")
	j.observe = at(string(flush.StepRechecked), func() {
		g.do("SET", "session:1", "again")
		successor := *j
		successor.observe = nil
		successor.epoch = 100
		successor.must(t)
	})
	if err := j.run(t.Context()); !errors.Is(err, flush.ErrFenced) {
		t.Errorf("run ended with %v", err)
	}
	same(t, "rows", map[string]string{"1": "again"}, j.table.texts())
}

// The cursor of a scan is worth nothing to another process.
func TestAPassThatRedisDoesNotSurviveSweepsNothing(t *testing.T) {
	g := newRig(t)
	for i := range 100 {
		g.do("SET", fmt.Sprintf("session:%d", i), i)
	}
	j := sessions(g.store)
	j.options.PageRows = 10
	j.must(t)
	g.do("DEL", "session:7")
	j.observe = at(stepRows, func() { g.redis.Restart() })
	err := j.run(t.Context())
	if len(j.table.texts()) != 100 {
		t.Errorf("%d rows of 100 are left; run: %v, notes: %q", len(j.table.texts()), err, j.notes)
	}
	if err == nil && len(j.notes) == 0 {
		t.Error("nobody was told that nothing was swept")
	}
}

// Neither is the data of a master that fails over, on the same connection.
func TestAPassDuringAFailoverSweepsNothing(t *testing.T) {
	for name, commands := range map[string][]string{
		"it is a replica now":          {"127.0.0.1 1"},
		"it is a master of other data": {"127.0.0.1 1", "NO ONE"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			for i := range 100 {
				g.do("SET", fmt.Sprintf("session:%d", i), i)
			}
			j := sessions(g.store)
			j.must(t)
			g.do("DEL", "session:7")
			j.observe = at(stepScanned, func() {
				for _, to := range commands {
					host, port, _ := strings.Cut(to, " ")
					g.do("REPLICAOF", host, port)
				}
			})
			if err := j.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(j.notes) != 1 || !strings.Contains(j.notes[0], "session:<id>: no row was looked for") || len(j.table.texts()) != 100 {
				t.Errorf("notes %q, %d rows of 100", j.notes, len(j.table.texts()))
			}
			g.do("REPLICAOF", "NO", "ONE")
			j.observe = nil
			j.must(t)
			if n := len(j.table.texts()); n != 99 {
				t.Errorf("%d rows after a complete pass", n)
			}
		})
	}
}

// Producers write, passes are made and processes die in any order: once they have
// stopped, one complete pass makes the table what Redis is.
func TestScansAreExactInAnyOrder(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	rapid.Check(t, func(t *rapid.T) {
		g.do("FLUSHALL")
		model := map[string]string{}
		j := sessions(g.store)
		j.options.PageRows = rapid.IntRange(1, 7).Draw(t, "page")
		j.options.Lanes = rapid.IntRange(1, 3).Draw(t, "lanes")
		// Several goroutines draw while a pass is on, and rapid allows one only.
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rate := rapid.IntRange(2, 30).Draw(t, "one change in")
		var mu sync.Mutex
		change := func() {
			id := fmt.Sprint(rng.IntN(12))
			switch rng.IntN(4) {
			case 0:
				g.do("DEL", "session:"+id)
				delete(model, id)
			case 1: // of another type
				g.do("DEL", "session:"+id)
				g.do("SADD", "session:"+id, 1)
				delete(model, id)
			default:
				model[id] = fmt.Sprint(rng.IntN(1000))
				g.do("SET", "session:"+id, model[id])
			}
		}
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			for range rng.IntN(10) {
				change()
			}
			dead := errors.New("alive")
			j.observe = func(string) error {
				mu.Lock()
				defer mu.Unlock()
				if rng.IntN(rate) == 0 {
					change()
				}
				if rng.IntN(40) == 0 {
					dead = errCrash
				}
				if errors.Is(dead, errCrash) {
					return errCrash
				}
				return nil
			}
			if err := j.run(t.Context()); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
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

// In a Cluster keys are on all masters. While slots move, a pass says that it may have
// missed some, and nothing is deleted; then it goes on as before.
func TestAScanOfAClusterIsExactWhileSlotsMove(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	const keys = 300
	want := map[string]string{}
	for i := range keys {
		g.do("SET", fmt.Sprintf("session:%d", i), i)
		want[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	g.do("SADD", "session:set", "x")
	j := sessions(g.store)
	j.options.PageRows = 50
	j.must(t)
	same(t, "rows", want, j.table.texts())
	vanish := func(i int) {
		g.do("UNLINK", fmt.Sprintf("session:%d", i))
		delete(want, fmt.Sprint(i))
	}
	vanish(0)
	j.must(t)
	same(t, "rows after a key is gone", want, j.table.texts())

	passes := 0
	settle := func(what string) {
		t.Helper()
		for range 50 { // until the nodes agree on who has the slot
			j.notes = nil
			if err := j.run(t.Context()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			passes++
			if len(j.notes) == 0 {
				same(t, what, want, j.table.texts())
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatalf("%s: no pass was complete; the last one: %q", what, j.notes)
	}
	for round := range 3 {
		key := fmt.Sprintf("session:%d", 10+round)
		move := g.begin(key)
		vanish(20 + round)
		before := len(j.table.texts())
		// The slot is halfway: the key is at its new master, which does not own it yet.
		if round > 0 {
			if err := move.MoveKeys(key); err != nil {
				t.Fatal(err)
			}
		}
		j.notes = nil
		if err := j.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(j.notes) != 1 || !strings.Contains(j.notes[0], "slots") {
			t.Errorf("notes while a slot moves: %q", j.notes)
		}
		if n := len(j.table.texts()); n != before {
			t.Errorf("%d rows of %d are left after a pass while a slot moved", n, before)
		}
		if err := move.Finish(); err != nil {
			t.Fatal(err)
		}
		settle("rows after a slot has moved")

		// A slot that goes from one master to another in the middle of a pass.
		vanish(30 + round)
		j.observe = at(stepScanned, func() { g.moveAway(fmt.Sprintf("session:%d", 40+round)) })
		before = len(j.table.texts())
		j.notes = nil
		if err := j.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(j.notes) != 1 || len(j.table.texts()) != before {
			t.Errorf("a slot moved within the pass: notes %q, %d rows of %d", j.notes, len(j.table.texts()), before)
		}
		j.observe = nil
		settle("rows after a slot has moved within a pass")
	}
	t.Logf("%d passes", passes)
}

func TestMembersAndFieldsOfAClusterAreRead(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	want, hashes := map[string]string{}, map[string]string{}
	for i := range 100 {
		g.do("HSET", fmt.Sprintf("h:%d", i), "v", i)
		hashes[fmt.Sprint(i)] = fmt.Sprint(i)
		for m := range i%3 + 1 {
			g.do("ZADD", fmt.Sprintf("z:%d", i), m, fmt.Sprint("m", m))
			want[fmt.Sprintf("%d|m%d", i, m)] = fmt.Sprint(m)
		}
	}
	j := &scanJob{store: g.store, table: newScanTable("id m", "v"), options: ScanOptions{Key: "z:<id>", Value: "zset"},
		columns: map[string]flush.ColumnSpec{"id": {}, "m": {From: "$member"}, "v": {From: "$score"}}}
	h := &scanJob{store: g.store, table: newScanTable("id", "v"), options: ScanOptions{Key: "h:<id>"},
		columns: map[string]flush.ColumnSpec{"id": {}, "v": {}}}
	for _, halfway := range []bool{false, true} {
		if halfway {
			for _, key := range []string{"z:5", "h:5"} {
				if err := g.begin(key).MoveKeys(key); err != nil {
					t.Fatal(err)
				}
			}
		}
		g.do("ZREM", "z:8", "m0")
		delete(want, "8|m0")
		for _, job := range []*scanJob{j, h} {
			if err := job.run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		same(t, "members", want, j.table.texts())
		same(t, "fields", hashes, h.table.texts())
	}
}
