package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/flush/row"
	"baton/internal/flush/source"
	"baton/internal/flush/source/existing"
	"baton/internal/flush/verify"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

var errAway = errors.New("redis is away")

// flaky is a source whose nth reading fails. Some of its rounds may have missed keys.
type flaky struct {
	verify.Source
	fails  int
	misses int
	before func(call string) // is called before each call
}

func (f *flaky) calls(name string) {
	if f.before != nil {
		f.before(name)
	}
}

func (f *flaky) Read(ctx context.Context, keys []string, yield func([]row.Record) error) error {
	f.calls("read")
	if f.fails--; f.fails == 0 {
		return errAway
	}
	return f.Source.Read(ctx, keys, yield)
}

func (f *flaky) StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error) {
	f.calls("still missing")
	if f.fails--; f.fails == 0 {
		return nil, errAway
	}
	return f.Source.StillMissing(ctx, records)
}

func (f *flaky) Keys(ctx context.Context, place string) (verify.KeyPage, error) {
	some, err := f.Source.Keys(ctx, place)
	if some.Next == "" && err == nil && f.misses > 0 {
		f.misses--
		some.Missed = errors.New("slots moved")
	}
	return some, err
}

// over compares through f, beginning with a state.
func (l *lab) over(f *flaky, o verify.Options, from verify.State) (verify.State, error) {
	l.Helper()
	o.Flushed = func(context.Context, time.Time) (bool, error) { return true, nil }
	c, err := verify.New(l.Context(), l.config, func(inputs []string) (verify.Source, error) {
		keys, err := l.keys(inputs)
		f.Source = keys
		return f, err
	}, o)
	if err != nil {
		l.Fatal(err)
	}
	return c.Run(l.Context(), from)
}

// Records that were counted before an error must not be counted again, at any point.
func TestWhatAnErrorInterruptsIsCountedOnce(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 2500)
	l.db.Exec(t, "DELETE FROM people WHERE id < 1500")
	l.db.Exec(t, "INSERT INTO people (id) SELECT id + 1000000 FROM people")
	for fails := 1; ; fails++ {
		f := &flaky{fails: fails}
		state, err := l.over(f, verify.Options{}, verify.State{})
		over := err == nil
		if !over {
			if !errors.Is(err, errAway) {
				t.Fatal(err)
			}
			if state, err = l.over(&flaky{}, verify.Options{}, state); err != nil {
				t.Fatal(err)
			}
		}
		if r := state.Result; r.Records != 2500 || r.Missing != 1500 || r.Extra != 1000 || r.Differences() != 2500 || r.Rows != 2000 {
			t.Errorf("reading %d failed, and then: %+v", fails, r)
		}
		if over {
			if fails < 8 {
				t.Errorf("only %d readings could fail", fails-1)
			}
			return
		}
	}
}

// nth returns a function that calls do before the nth call of that name.
func nth(name string, n int, do func()) func(string) {
	return func(call string) {
		if call != name {
			return
		}
		if n--; n == 0 {
			do()
		}
	}
}

// A record that differs in the first and in the second comparison is read again after its row. Both may have changed between these two.
func TestARecordThatChangesDuringTheLastLookIsNoDifference(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 10)
	l.db.Exec(t, "UPDATE people SET name = 'new' WHERE id = 7")
	looked := false
	f := &flaky{before: nth("read", 3, func() { looked = true; l.do("HSET", "user:7", "name", "new") })}
	state, err := l.over(f, verify.Options{}, verify.State{})
	if r := state.Result; err != nil || r.Differences() != 0 || r.Moving != 0 || !looked {
		t.Errorf("%+v, %v", r, err)
	}
}

// The same holds for a row whose record is missing.
func TestARecordThatComesBackDuringTheLastLookIsNoDifference(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 10)
	l.do("DEL", "user:7")
	looked := false
	f := &flaky{before: nth("still missing", 4, func() { looked = true; l.do("HSET", "user:7", "name", "name 7") })}
	state, err := l.over(f, verify.Options{}, verify.State{})
	if r := state.Result; err != nil || r.Differences() != 0 || !looked {
		t.Errorf("%+v, %v", r, err)
	}
}

// If keys may have been missed, they are read in another round, and no record is counted twice.
func TestWhatMayHaveBeenMissedIsReadAgain(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 1500)
	l.db.Exec(t, "DELETE FROM people WHERE id = 3")
	for misses, noted := range map[int]bool{0: false, 1: false, 2: false, 9: true} {
		for _, repair := range []bool{false, true} {
			state, err := l.over(&flaky{misses: misses}, verify.Options{Repair: repair}, verify.State{})
			if err != nil {
				t.Fatal(err)
			}
			r := state.Result
			if r.Records != 1500 || r.Missing != 1 || (r.Marked > 0) != repair || (len(r.Notes) > 0) != noted {
				t.Errorf("%d rounds miss keys, repair %v: %+v", misses, repair, r)
			}
		}
	}
}

// interrupted compares until the comparison has reached another place, and returns the state from which it continues.
func (l *lab) interrupted(from verify.State) verify.State {
	l.Helper()
	state, err := l.over(&flaky{}, verify.Options{Progress: func(s verify.State) error {
		if s.Place == from.Place {
			return nil
		}
		return errAway
	}}, from)
	if !errors.Is(err, errAway) || state.Place == "" {
		l.Fatalf("the comparison was not interrupted between two pages: %+v, %v", state, err)
	}
	return state
}

// The cursors of a process of Redis are not valid in the next process, so all keys are read again. No record is counted twice.
func TestARestartOfRedisCountsNothingTwice(t *testing.T) {
	t.Parallel()
	board := leaderboard(t, testsupport.SQLite(t))
	board.backfill()
	board.run()
	for name, l := range map[string]*lab{"keys": people(t, testsupport.SQLite(t), kinds["hashes"], 5000), "members": board} {
		for _, restarts := range []int{1, 2, 3} {
			state := l.interrupted(verify.State{})
			for range restarts {
				l.do("SAVE")
				l.server.Restart()
				l.redis = l.server.Conn()
				testsupport.AwaitNoError(t, "a connection to the new process", func() error { return l.store.Ping(t.Context()) })
				state = l.interrupted(state)
			}
			state, err := l.over(&flaky{}, verify.Options{}, state)
			noted := strings.Contains(strings.Join(state.Result.Notes, "\n"), "counted twice")
			if r := state.Result; err != nil || noted != (restarts >= 3) || !noted && r.Records != 5000 || r.Differences() != 0 {
				t.Errorf("%s after %d restarts: %+v, %v", name, restarts, r, err)
			}
		}
	}
}

// After a failover another server has the keys of a server that was read, so these keys are returned again.
func TestKeysOfAServerThatWasReplacedComeAgain(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 10)
	keys, err := l.keys([]string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	for place, again := range map[string]bool{
		"":                          false,
		`{"done":["gone:1"]}`:       true,
		`{"at":"gone:1"}`:           false, // none of its keys was read yet
		`{"at":"gone:1","run":"r"}`: true,
	} {
		if some, err := keys.Keys(t.Context(), place); err != nil || some.Again != again || len(some.Keys) != 10 {
			t.Errorf("after the place %q: %+v, %v", place, some, err)
		}
	}
}

// many is a source for which the server reads many keys for each key of the job.
type many struct {
	verify.Source
	steps, looked, rounds int
	marked                int
}

func (m *many) Keys(_ context.Context, place string) (verify.KeyPage, error) {
	var n int
	if place != "" {
		if _, err := fmt.Sscan(place, &n); err != nil {
			return verify.KeyPage{}, err
		}
	}
	some := verify.KeyPage{Keys: []string{fmt.Sprint("k", n)}, Next: fmt.Sprint(n + 1), Looked: m.looked}
	some.Part = float64(n+1) / float64(m.steps)
	if n+1 == m.steps {
		if some.Next = ""; m.rounds > 0 {
			m.rounds--
			some.Missed = errors.New("slots moved")
		}
	}
	return some, nil
}

func (m *many) Mark(_ context.Context, keys []string) error { m.marked += len(keys); return nil }

// The rate limits all keys that the server must read, and not only those of the job.
func TestTheRateIsThatOfAllKeysThatAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, began := &many{steps: 11, looked: 500}, time.Now()
		if err := verify.Backfill(t.Context(), m, verify.State{}, 1000, func(verify.State) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 5*time.Second || took > 6*time.Second || m.marked != 11 {
			t.Errorf("5,500 keys at 1,000 a second: %v, %d marked", took, m.marked)
		}
	})
}

func TestABackfillReadsAgainWhatItMayHaveMissed(t *testing.T) {
	for rounds, want := range map[int]int{0: 5, 1: 10, 9: 15} {
		m := &many{steps: 5, rounds: rounds}
		var last verify.State
		err := verify.Backfill(t.Context(), m, verify.State{}, 0, func(s verify.State) error { last = s; return nil })
		if err != nil || m.marked != want || last.Part != 1 || (len(last.Result.Notes) > 0) != (rounds == 9) {
			t.Errorf("%d rounds miss keys: %d are marked, want %d: %+v, %v", rounds, m.marked, want, last, err)
		}
	}
}

// To find a key the server has read other keys, too.
func TestKeysSayHowManyTheServerHasRead(t *testing.T) {
	t.Parallel()
	l := people(t, testsupport.SQLite(t), kinds["hashes"], 300)
	for i := range 5000 {
		l.do("SET", fmt.Sprint("other:", i), i)
	}
	keys, err := l.keys([]string{"id"})
	if err != nil {
		t.Fatal(err)
	}
	looked, found := 0, 0
	for place := ""; ; {
		some, err := keys.Keys(t.Context(), place)
		if err != nil || some.Missed != nil {
			t.Fatal(err, some.Missed)
		}
		looked, found = looked+some.Looked, found+len(some.Keys)
		if place = some.Next; place == "" {
			break
		}
	}
	if looked < 5000 || looked > 5500 || found != 300 {
		t.Errorf("%d keys read for %d; there are 5,300", looked, found)
	}
}

// If a key moves from a master that was not read yet to one that was read, it is read at neither.
func TestKeysOfAClusterThatMovedMayHaveBeenMissed(t *testing.T) {
	t.Parallel()
	cluster := testsupport.StartCluster(t)
	store, err := redisconn.Open(redisconn.Options{Cluster: cluster.Addresses()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	for i := range 60 {
		key := fmt.Sprint("user:", i)
		cluster.Owner(key).Client(t).Do("HSET", key, "name", "x")
	}
	o := source.Options{Job: "j", Type: "hashes", Key: "user:<id>", Changed: "changed"}
	keys, err := existing.Open(store, o, []string{"id"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, moves := range []bool{false, true, false} {
		found := map[string]bool{}
		var some verify.KeyPage
		for place, step := "", 0; step == 0 || place != ""; step++ {
			if some, err = keys.Keys(t.Context(), place); err != nil {
				t.Fatal(err)
			}
			for _, key := range some.Keys {
				found[key] = true
			}
			if place = some.Next; step == 0 && moves {
				from := ""
				for i := range 60 {
					if key := fmt.Sprint("user:", i); !found[key] {
						from = key
					}
				}
				cluster.MoveSlot(from, cluster.Owner(some.Keys[0]))
				cluster.AwaitAgreement()
			}
		}
		if moves != (some.Missed != nil) || !moves && len(found) != 60 {
			t.Errorf("moves %v: %d keys were found, missed: %v", moves, len(found), some.Missed)
		}
		if moves && !strings.Contains(some.Missed.Error(), "slots") {
			t.Error(some.Missed)
		}
	}
}
