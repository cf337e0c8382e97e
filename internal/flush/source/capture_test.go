package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

func TestWhateverChangesReachesTheTable(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	g.Do("SET", "s:old", "there before")
	g.Do("SET", "other:1", "not ours")
	j.mustEqual(g.Client)
	if notes := j.told(); !strings.HasPrefix(notes, "expected: ") || !strings.Contains(notes, "the job is new") {
		t.Errorf("notes: %q", notes)
	}
	for _, commands := range []string{
		"SET s:1 a", "SET s:1 b|APPEND s:1 c", "DEL s:1", "MSET s:1 x other:2 y s:2 z s:3 w", "RENAME s:1 s:4", "COPY s:2 s:5",
		"MULTI|SET s:6 a|SELECT 2|SET s:6 elsewhere|SELECT 0|SET s:7 b|EXEC", "SET s:2 gone EX 1000|EXPIRE s:2 -1", "MOVE s:4 3",
		"EVAL return+redis.call('SET','s:8','lua') 0", "SET s:6 x PX 1|AWAIT s:6", "INCR s:9|INCRBYFLOAT s:9 1.5", "GETDEL s:9",
		"DEL s:3|LPUSH s:3 list", "DEL s:3|SET s:3 again", "SELECT 3|MOVE s:4 0|SELECT 0", "SET s:old new|DEL s:old",
		"RPUSH l b a|SORT l ALPHA STORE s:8",
		"DEL s:8 s:7 s:6 s:5 s:4 s:3 s:2 s:1",
	} {
		for command := range strings.SplitSeq(commands, "|") {
			words := strings.Split(command, " ")
			if words[0] == "AWAIT" {
				for g.Num("EXISTS", words[1]) == 1 {
					continue
				}
				continue
			}
			var args []any
			for _, word := range words[1:] {
				args = append(args, strings.ReplaceAll(word, "+", " "))
			}
			g.Do(words[0], args...)
		}
		j.must(g.Client)
		want := contentsOf(t, g.Client)
		if got := j.table.texts(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %s: %v, want %v", commands, got, want)
		}
	}
	if notes := j.told(); notes != "" {
		t.Errorf("notes: %q", notes)
	}
}

// Only changed keys are read, and each of them once for all of its changes.
func TestOnlyChangedKeysAreRead(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	for i := range 500 {
		g.Send("SET", fmt.Sprintf("s:%d", i), i)
	}
	g.Do("")
	j.mustEqual(g.Client)
	for i := range 1000 {
		g.Send("SET", fmt.Sprintf("s:%d", i%5), i)
	}
	g.Do("")
	calls := g.CallsOf(func() { j.mustEqual(g.Client) })
	// The comparison itself reads everything once.
	if n := calls["get"] - 501; n > 40 || calls["scan"] > 0 {
		t.Errorf("%d GET and %d SCAN for 1000 changes of 5 keys", n, calls["scan"])
	}
}

// A new process continues where the previous one stopped, and does not read everything.
func TestATakeOverGoesOnFromThePlaceInTheDatabase(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	g.Do("SET", "s:1", "a")
	j.mustEqual(g.Client)
	j.die()
	j.told()
	g.Do("SET", "s:1", "b")
	g.Do("SET", "s:2", "c")
	calls := g.CallsOf(func() { j.must(g.Client) })
	j.equal(g.Client)
	if notes := j.told(); calls["scan"] != 0 || calls["psync"] != 1 || !strings.Contains(notes, "+CONTINUE") {
		t.Errorf("%d SCAN, %d PSYNC, notes %q", calls["scan"], calls["psync"], notes)
	}
}

func TestAStreamThatIsGoneIsMadeUpForByAPass(t *testing.T) {
	g := newRig(t, testsupport.RedisArgs("--repl-backlog-size", "16384"))
	j := newCaptureJob(t, g.redis)
	for i := range 100 {
		g.Do("SET", fmt.Sprintf("s:%d", i), "a")
	}
	j.mustEqual(g.Client)
	j.die()
	j.told()
	g.Do("DEL", "s:7")
	g.Do("SET", "s:new", "b")
	for i := range 50 {
		g.Do("SET", "other", strings.Repeat("x", 1000+i))
	}
	j.mustEqual(g.Client)
	if notes := j.told(); !strings.Contains(notes, "raise repl-backlog-size") {
		t.Errorf("notes: %q", notes)
	}
}

func TestAnInterruptedStreamGoesOnByItself(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.mustEqual(g.Client)
	for i := range 5 {
		g.Do("SET", fmt.Sprintf("s:%d", i), "a")
		g.Do("CLIENT", "KILL", "TYPE", "replica")
		g.Do("SET", fmt.Sprintf("s:%d", i), "b")
		j.again(func() error { return j.run(t.Context()) })
		j.mustEqual(g.Client)
	}
	if calls := g.Calls(); calls["scan"] > 2 {
		t.Errorf("%d SCAN", calls["scan"])
	}
}

// More changes than the memory can hold must lead to a pass, and lose nothing.
func TestMoreChangesThanMemoryLeadToAPass(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.options.Rows = 1000
	j.mustEqual(g.Client)
	long := strings.Repeat("k", 20_000)
	for i := range 2000 {
		g.Send("SET", fmt.Sprintf("s:%s%d", long, i), i)
		if i%3 == 0 {
			g.Send("DEL", fmt.Sprintf("s:%s%d", long, i))
		}
	}
	g.Do("")
	j.must(g.Client)
	if notes := j.told(); !strings.Contains(notes, "memory") {
		t.Errorf("notes: %q", notes)
	}
	j.mustEqual(g.Client)
}

func TestWhatIsNotKnownLeadsToAPass(t *testing.T) {
	g := newRig(t, testsupport.RedisArgs("--rename-command", "APPEND", "hidden"))
	j := newCaptureJob(t, g.redis)
	g.Do("SET", "s:1", "a")
	j.mustEqual(g.Client)
	j.told()
	g.Do("hidden", "s:1", "b") // the server does not list this name of the command
	j.mustEqual(g.Client)
	if notes := j.told(); !strings.Contains(notes, `does not know the command "hidden"`) {
		t.Errorf("notes: %q", notes)
	}
}

func TestAnEmptiedDatabaseIsAnOperatorsDecision(t *testing.T) {
	for i, empty := range []string{"FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "SELECT 1|SWAPDB 1 0|SELECT 0"} {
		g := newRig(t)
		j := newCaptureJob(t, g.redis)
		for n := range 30 {
			g.Do("SET", fmt.Sprintf("s:%d", n), "a")
		}
		j.mustEqual(g.Client)
		before := j.table.Count("rows")
		for command := range strings.SplitSeq(empty, "|") {
			words := strings.Split(command, " ")
			var args []any
			for _, word := range words[1:] {
				args = append(args, word)
			}
			g.Do(words[0], args...)
		}
		g.Do("SET", "s:new", "b")
		wait := func() error { return j.until(func() bool { return false }) }
		if err := wait(); !errors.Is(err, flush.ErrEmptied) || !strings.Contains(err.Error(), "on_flush") {
			t.Errorf("%s: run ended with %v", empty, err)
		}
		j.die() // another node finds the same
		if err := wait(); !errors.Is(err, flush.ErrEmptied) {
			t.Errorf("%s: the next process's run ended with %v", empty, err)
		}
		if n := j.table.Count("rows"); n < before {
			t.Errorf("%s: %d rows of %d are left", empty, n, before)
		}
		if j.options.OnFlush = "delete"; i%2 == 0 {
			j.options.OnFlush = "pass"
			j.die()
			if err := wait(); !errors.Is(err, flush.ErrTooManyVanished) {
				t.Errorf("%s: with on_flush: pass the run ended with %v", empty, err)
			}
			j.options.MaxPct = 100
		}
		j.die()
		if j.mustEqual(g.Client); j.table.Count("rows") != 2 {
			t.Errorf("%s: %d rows are left", empty, j.table.Count("rows"))
		}
	}
}

// max_pct is for rows whose keys are missing without a known reason. A deletion that the stream has shown does not count. It may be
// received during the pass, or by the next process after one that died in its pass.
func TestADeletionThatTheStreamToldIsNotHeldAgainstMaxPct(t *testing.T) {
	for _, value := range []string{"string", "set"} {
		for _, when := range []string{"in the pass", "after its process"} {
			t.Run(value+", "+when, func(t *testing.T) {
				t.Parallel()
				deleteAndPass(t, value, when)
			})
		}
	}
}

func deleteAndPass(t *testing.T, value, when string) {
	g := newRig(t, testsupport.RedisArgs("--rename-command", "APPEND", "hidden"))
	j := newCaptureJob(t, g.redis)
	write := "SET"
	if value == "set" {
		j, write = j.ofMembers(value), "SADD"
	}
	for n := range 30 {
		g.Do(write, fmt.Sprintf("s:%d", n), "a")
	}
	j.mustEqual(g.Client)
	other := g.redis.Client(t) // of the observer, which other goroutines call
	deletes := func() (err error) {
		for n := 0; n < 20 && err == nil; n++ {
			_, err = other.Conn.Do("DEL", fmt.Sprintf("s:%d", n))
		}
		return err
	}
	sweeps := 0
	j.watch(func(step string) error {
		if step != "before-sweep" {
			return nil
		}
		switch sweeps++; {
		case when == "in the pass" && sweeps == 1:
			return deletes()
		case when == "after its process" && sweeps == 1:
			return errDies
		}
		return nil
	})
	g.Do("hidden", "other", "x") // the keys that this command changes are unknown, so a pass is owed
	if when == "after its process" {
		if err := j.until(func() bool { return false }); !errors.Is(err, errDies) {
			t.Fatal(err)
		}
		j.die()
		if err := deletes(); err != nil {
			t.Fatal(err)
		}
	}
	if j.mustEqual(g.Client); sweeps == 0 {
		t.Error("there was no pass")
	}
}

// A pending write of a key does not explain why its row should go. If the key is lost with the server's data, or by a command that empties
// the database, max_pct applies. That is also so if the keys are pending, or if it happens during the sweep.
func TestWhatIsLostIsHeldAgainstMaxPctAlthoughItIsPending(t *testing.T) {
	for what, lose := range map[string]func(*testsupport.Redis, testsupport.Client){
		"restarts without its data": func(r *testsupport.Redis, _ testsupport.Client) { r.Kill(); r.Restart() },
		"FLUSHALL":                  func(_ *testsupport.Redis, c testsupport.Client) { c.Do("FLUSHALL") },
		"is emptied, not known how": func(_ *testsupport.Redis, c testsupport.Client) { c.Do("empties") },
	} {
		for _, step := range []string{"", "staged", "before-sweep", "stale-read"} {
			t.Run(what+" "+step, func(t *testing.T) {
				t.Parallel()
				loseAndPass(t, step, lose)
			})
		}
	}
}

// loseAndPass makes Redis lose all keys while they are pending: before a pass, at a step of it, or after a batch of changes was taken.
func loseAndPass(t *testing.T, where string, lose func(*testsupport.Redis, testsupport.Client)) {
	g := newRig(t, testsupport.RedisArgs("--rename-command", "APPEND", "hidden", "--rename-command", "FLUSHDB", "empties"))
	j := newCaptureJob(t, g.redis)
	j.options.OnFlush = "pass"
	write := func(c testsupport.Client, keys int, text string) {
		for n := range keys {
			c.Do("SET", fmt.Sprintf("s:%d", n), text)
		}
	}
	write(g.Client, 30, "a")
	j.mustEqual(g.Client)
	other := g.redis.Client(t) // of the observer, which other goroutines call
	// A pass reads the rows to count them, and again to sweep them.
	passed, last, written, least := 0, 1, 30, 31
	if where == "stale-read" {
		last, written, least = 2, 15, 28
	}
	j.watch(func(step string) error {
		if step != where {
			return nil
		}
		if passed++; passed == last {
			write(other, written, "c")
			if lose(g.redis, other); step == "staged" {
				time.Sleep(500 * time.Millisecond) // so that the stream is joined again before the batch is read
			}
		}
		return nil
	})
	write(g.Client, 30, "b")
	switch where {
	case "":
		lose(g.redis, g.Client)
	case "before-sweep", "stale-read":
		g.Do("DEL", "s:29")          // so that there is a row to sweep,
		g.Do("hidden", "other", "x") // and a pass
	}
	var err error
	for limit := time.Now().Add(time.Minute); !errors.Is(err, flush.ErrTooManyVanished); {
		if time.Now().After(limit) {
			t.Fatalf("the last run ended with %v, and %d rows are left", err, j.table.Count("rows"))
		}
		if err = j.run(t.Context()); err != nil {
			t.Log(err)
			time.Sleep(10 * time.Millisecond)
		}
	}
	if n := j.table.Count("rows"); n < least {
		t.Errorf("%d rows are left", n)
	}
	if where != "" && passed < last {
		t.Errorf("it never came to %s", where)
	}
}

// A row must never keep a write that a failover has lost. The process ends after it has written the row. Then the position is still before
// the write, or after it.
func TestAWriteThatAFailoverLostDoesNotStayInTheTable(t *testing.T) {
	for _, step := range []string{"applied", ""} {
		g := newRig(t, testsupport.RedisArgs("--repl-ping-replica-period", "3600")) // the offsets grow by writes alone
		replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(g.redis))
		r := replica.Client(t)
		j := newCaptureJob(t, g.redis)
		j.options.Rows, j.options.MaxPct = 3, 100
		for i := range 20 {
			g.Do("SET", fmt.Sprintf("s:%d", i), "kept")
		}
		j.mustEqual(g.Client)
		// WAIT would ask for acknowledgements. A second later the job leaves the stream, and may write a position alone.
		testsupport.Await(t, "the replica has all writes", func() bool { return offsetOf(t, r) == offsetOf(t, g.Client) })
		r.Do("REPLICAOF", "NO", "ONE")
		for i := range 15 {
			g.Do("SET", fmt.Sprintf("s:%d", i), "lost")
		}
		g.Do("SET", "s:new", "lost, too")
		if step != "" {
			j.watch(func(s string) error {
				if s == step && strings.Contains(fmt.Sprint(j.table.texts()), "lost") {
					return errDies
				}
				return nil
			})
			if err := j.until(func() bool { return false }); !errors.Is(err, errDies) {
				t.Fatal(err)
			}
		} else {
			j.mustEqual(g.Client)
		}
		j.die()
		g.redis.Kill()
		if texts := fmt.Sprint(j.table.texts()); !strings.Contains(texts, "lost") {
			t.Fatalf("the table has no row of a lost write: %s", texts)
		}
		second := newCaptureJob(t, replica)
		second.table, second.epoch, second.options = j.table, j.epoch, j.options
		second.mustEqual(r)
		want := "a failover may have lost writes"
		if step == "" {
			want = "after the last change that the promoted master had received"
		}
		if notes := second.told(); !strings.Contains(notes, want) {
			t.Errorf("%q: notes: %q", step, notes)
		}
	}
}

// A deposed leader that continues after its successor has taken over must write nothing.
func TestADeposedCaptureWritesNothing(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	g.Do("SET", "s:1", "a")
	j.mustEqual(g.Client)
	second := newCaptureJob(t, g.redis)
	second.table, second.epoch = j.table, j.epoch
	j.watch(at("before-apply", func() {
		g.Do("SET", "s:1", "c")
		second.mustEqual(g.Client)
	}))
	g.Do("SET", "s:1", "b")
	var err error
	for limit := time.Now().Add(time.Minute); err == nil && time.Now().Before(limit); {
		err = j.run(t.Context())
	}
	if !errors.Is(err, flush.ErrFenced) {
		t.Errorf("run ended with %v", err)
	}
	second.mustEqual(g.Client)
}

// If the process ends, or the run fails, at any step, the next run must make the table equal.
func TestARunThatEndsAnywhereLosesNothing(t *testing.T) {
	for name, dies := range map[string]bool{"the process dies": true, "the run fails": false} {
		for _, lanes := range []int{1, 2} {
			for _, pass := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, lanes=%d, pass=%v", name, lanes, pass), func(t *testing.T) {
					t.Parallel()
					endAnywhere(t, dies, lanes, pass)
				})
			}
		}
	}
}

func endAnywhere(t *testing.T, dies bool, lanes int, pass bool) {
	g := newRig(t, testsupport.RedisArgs("--rename-command", "APPEND", "hidden"))
	j := newCaptureJob(t, g.redis)
	j.options.Rows, j.options.Lanes, j.options.MaxPct = 3, lanes, 100
	for i := range 10 {
		g.Do("SET", fmt.Sprintf("s:%d", i), "old")
	}
	j.mustEqual(g.Client)
	other := g.redis.Client(t) // of the observer, which other goroutines call
	for n, hit := 1, true; hit; n++ {
		if pass {
			g.Do("hidden", "other", "x") // the keys that this command changes are unknown
		}
		if dies {
			j.die()
			j.live()
		}
		passed := 0
		j.watch(func(string) error {
			if passed++; passed != n {
				return nil
			}
			if _, err := other.Conn.Do("SET", "s:meanwhile", n); err != nil {
				return err
			}
			return errDies
		})
		g.Do("DEL", fmt.Sprintf("s:%d", n%10))
		for i := range 4 {
			g.Do("SET", fmt.Sprintf("s:%d", (n+i+1)%10), n)
		}
		j.mark(g.Client)
		_ = j.until(j.marked)
		j.observing.Lock()
		hit, j.observe = passed >= n, nil
		j.observing.Unlock()
		if dies {
			j.die()
		}
		j.again(func() error { return j.run(t.Context()) })
		if j.mustEqual(g.Client); t.Failed() {
			t.Fatalf("after step %d", n)
		}
		if !hit && n < 20 {
			t.Errorf("%d steps", n)
		}
	}
}

// A dead letter is replayed by reading its key again, on any node that leads.
func TestAMarkedKeyIsReadAgain(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	g.Do("SET", "s:1", "a")
	j.mustEqual(g.Client)
	j.table.put("1", "wrong")
	store := openStore(t, g.redis.URL())
	d, err := Describe(Options{Job: "capture", Type: "capture", Key: "s:<id>", Value: "string"})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := d.Open(store, []string{"id", "$value"})
	if err != nil {
		t.Fatal(err)
	}
	marker := sources[0].(interface {
		Mark(ctx context.Context, newID string, ids []string) error
	})
	if err := marker.Mark(t.Context(), "new", []string{"s:1", "other:1", "s:none"}); err != nil {
		t.Fatal(err)
	}
	j.mustEqual(g.Client)
}

// The stream may be behind. A run must wait for it.
func TestARunFlushesWhatWasWrittenBeforeItBegan(t *testing.T) {
	g := newRig(t)
	j := newCaptureJob(t, g.redis)
	j.mustEqual(g.Client)
	for i := range 300 {
		g.Do("SET", "s:1", i)
		if err := j.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := j.table.texts()["1"]; got != fmt.Sprint(i) {
			t.Fatalf("after a run the row is %q, and %d was written before it began", got, i)
		}
	}
}
