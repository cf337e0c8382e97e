package source

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"baton/internal/flush"
	"baton/internal/flush/source/staging"
)

// If the keys of a source show that there is nothing to do, Stage must find nothing, and must have nothing to clean up.
func TestKeysTellWhetherThereIsAnythingToDo(t *testing.T) {
	told := 0
	for _, kind := range Sources() {
		c := conformances[kind.Name]
		c.options.Job = "idle"
		d, err := Describe(c.options)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.IdleKeys()) == 0 {
			continue
		}
		told++
		t.Run(kind.Name, func(t *testing.T) {
			g := newRig(t)
			var config flush.Config
			d.Configure(&config, g.store)
			sources, err := config.NewSources(c.inputs)
			if err != nil {
				t.Fatal(err)
			}
			src := sources[0]
			is := func(when string, want bool) {
				t.Helper()
				if got := staging.Idle(t.Context(), g.store, [][]string{d.IdleKeys()}); len(got) != 1 || got[0] != want {
					t.Errorf("%s: idle: %v, want %v", when, got, want)
				}
				if pending, err := config.Pending(t.Context()); err != nil || pending == want {
					t.Errorf("%s: pending: %v, %v", when, pending, err)
				}
				if !want {
					return
				}
				before := g.Num("DBSIZE")
				if _, ok, err := src.Stage(t.Context(), "never", ""); ok || err != nil || g.Num("DBSIZE") != before {
					t.Errorf("%s: a stage was made, or something was cleared away: %v, %v", when, ok, err)
				}
			}
			is("at first", true)
			c.add(g, 0)
			is("with a change", false)
			st := stageNow(t, src, "one")
			is("staged", false)
			c.add(g, 1)
			is("staged, and with a change", false)
			finish := func(discard bool) {
				t.Helper()
				err := src.Read(t.Context(), st, func(p flush.Page) error {
					if r, ok := src.(flush.Releaser); ok {
						return r.Done(t.Context(), st, p)
					}
					return nil
				})
				if d, ok := src.(flush.Discarder); ok && discard && err == nil {
					err = d.Discard(t.Context(), st)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			finish(true)
			is("flushed, and with a change", false)
			st = stageNow(t, src, "two")
			finish(false)
			is("flushed, and not cleared away", false)
			if again, ok, err := src.Stage(t.Context(), "three", ""); err != nil {
				t.Fatal(err)
			} else if ok {
				st = again
				finish(true)
			}
			is("flushed and cleared away", true)
		})
	}
	if told != 5 {
		t.Errorf("of %d kinds keys tell whether there is anything to do, want 5", told)
	}
}

// If a run would fail, it must not be skipped.
func TestWhatARunWouldFailOverIsNotIdle(t *testing.T) {
	g := newRig(t)
	d, err := Describe(Options{Type: "counters", Key: "views:[0-15]"})
	if err != nil {
		t.Fatal(err)
	}
	idle := func() bool { return staging.Idle(t.Context(), g.store, [][]string{d.IdleKeys()})[0] }
	for what, do := range map[string][]any{
		"a key of another type":   {"RPUSH", "views:7", "x"},
		"a stage without its id":  {"HSET", "{views:15}:baton:stage", "f", 1},
		"an id without its stage": {"HSET", "{views:0}:baton:meta", "id", "x"},
	} {
		if !idle() {
			t.Fatal("not idle to begin with")
		}
		g.Do(do[0].(string), do[1:]...)
		if idle() {
			t.Error(what, "counts as nothing to do")
		}
		g.Do("FLUSHALL")
	}
}

func TestManyJobsAreLookedAtByOneCommandEach(t *testing.T) {
	g := newRig(t)
	const jobs = 50
	keys := make([][]string, jobs)
	for i := range keys {
		d, err := Describe(Options{Type: "counters", Key: fmt.Sprintf("views%d:[0-15]", i)})
		if err != nil {
			t.Fatal(err)
		}
		if i != 7 { // this job cannot tell
			keys[i] = d.IdleKeys()
		}
	}
	g.Do("HINCRBY", "views3:5", "f", 1)
	var idle []bool
	calls := g.CallsOf(func() { idle = staging.Idle(t.Context(), g.store, keys) })
	if calls["exists"] != jobs-1 {
		t.Errorf("%v", calls)
	}
	for i, is := range idle {
		if is != (i != 3 && i != 7) {
			t.Errorf("job %d: idle: %v", i, is)
		}
	}
	g.Do("CLIENT", "PAUSE", 2000, "ALL")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for i, is := range staging.Idle(ctx, g.store, keys) {
		if is {
			t.Errorf("job %d is idle, though Redis has not answered", i)
		}
	}
}

// The shards of a job are in many slots, and on all masters.
func TestJobsOfAClusterAreLookedAtOnEveryMaster(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	d, err := Describe(Options{Type: "counters", Key: "views:[0-15]"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Describe(Options{Type: "counters", Key: "hits:[0-3]"})
	if err != nil {
		t.Fatal(err)
	}
	var config flush.Config
	d.Configure(&config, g.store)
	is := func(when string, want ...bool) {
		t.Helper()
		got := staging.Idle(t.Context(), g.store, [][]string{d.IdleKeys(), other.IdleKeys()})
		if !slices.Equal(got, want) {
			t.Errorf("%s: idle: %v, want %v", when, got, want)
		}
		if pending, err := config.Pending(t.Context()); err != nil || pending == want[0] {
			t.Errorf("%s: pending: %v, %v", when, pending, err)
		}
	}
	is("at first", true, true)
	for i := range 16 {
		key := fmt.Sprint("views:", i)
		g.do("HINCRBY", key, "f", 1)
		is("with a change in "+key, false, true)
		g.do("UNLINK", key)
	}
	is("without them", true, true)
	g.do("HINCRBY", "views:3", "f", 1)
	if err := g.moveAway("views:3"); err != nil {
		t.Fatal(err)
	}
	is("of a slot that has moved, unknown to us", false, true)
	g.do("UNLINK", "views:3") // the command is redirected to the slot's node
	is("without it", true, true)
}
