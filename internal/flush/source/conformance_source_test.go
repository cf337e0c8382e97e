package source

import (
	"fmt"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/row"
)

// conformances has the options and inputs with which each kind of source is tested, by its name in the registry.
var conformances = map[string]struct {
	options Options
	inputs  []string
	add     func(g *rig, n int)
}{
	"counters": {Options{Type: "counters", Key: "views:3"}, []string{row.InputField, row.InputValue}, func(g *rig, n int) {
		g.Do("HINCRBY", "views:3", fmt.Sprint("f", n), n+1)
	}},
	"plain": {Options{Type: "counters", Key: "hits:<page>", Changed: "changed:hits"}, []string{"page", row.InputValue},
		func(g *rig, n int) {
			g.Do("INCRBY", fmt.Sprint("hits:", n), n+1)
			g.Do("SADD", "changed:hits", n)
		}},
	"watermark": {Options{Type: "counters", Key: "totals", Watermark: true}, []string{row.InputField, row.InputValue}, func(g *rig, n int) {
		g.Do("HINCRBY", "totals", fmt.Sprint("f", n), n+1)
	}},
	"watermark keys": {Options{Type: "counters", Key: "total:<page>", Watermark: true}, []string{"page", row.InputValue},
		func(g *rig, n int) {
			g.Do("INCRBY", fmt.Sprint("total:", n), n+1)
		}},
	"hashes": {Options{Type: "hashes", Key: "user:<id>", Changed: "changed:user", RemoveEvery: 1}, []string{"id", "name"},
		func(g *rig, n int) {
			g.Do("HSET", fmt.Sprint("user:", n), "name", fmt.Sprint("Ann ", n))
			g.Do("ZADD", "changed:user", n, n)
		}},
	"zset": {Options{Type: "zset", Key: "board", Changed: "changed:board", RemoveEvery: 1}, []string{row.InputMember, row.InputScore},
		func(g *rig, n int) {
			g.Do("ZADD", "board", n, fmt.Sprint("ann", n))
			g.Do("SADD", "changed:board", fmt.Sprint("ann", n))
		}},
	"list": {Options{Type: "list", Key: "orders"}, []string{"id", row.InputValue}, func(g *rig, n int) {
		g.Do("RPUSH", "orders", fmt.Sprintf(`{"id":"%d"}`, n))
	}},
	"stream": {Options{Type: "stream", Key: "events"}, []string{row.InputID, "id"}, func(g *rig, n int) {
		g.Do("XADD", "events", fmt.Sprintf("%d-1", n+1), "id", n)
	}},
	"scan": {Options{Type: "scan", Key: "user:<id>", Value: "hash"}, []string{"id", row.InputKey, row.InputGeneration, "name"},
		func(g *rig, n int) {
			g.Do("HSET", fmt.Sprint("user:", n), "name", fmt.Sprint("Ann ", n))
		}},
	"capture": {Options{Type: "capture", Key: "user:<id>", Value: "hash", OnFlush: "delete"}, []string{"id", row.InputKey, "name"},
		func(g *rig, n int) {
			g.Do("HSET", fmt.Sprint("user:", n), "name", fmt.Sprint("Ann ", n))
		}},
}

func TestEverySourceKeepsThePromisesOfItsPort(t *testing.T) {
	g := newRig(t)
	for _, kind := range Sources() {
		c, ok := conformances[kind.Name]
		if !ok {
			t.Errorf("%s are not fed: say how in conformances", kind.Name)
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			flushtest.Source(t, func(t *testing.T) flushtest.SourceHarness {
				g.Do("FLUSHALL")
				return conformanceOf(t, g, c.options, c.inputs, c.add)
			})
		})
	}
}

func conformanceOf(t *testing.T, g *rig, o Options, inputs []string, add func(*rig, int)) flushtest.SourceHarness {
	o.Job, o.Rows = "conformance", 8
	described, err := Describe(o)
	if err != nil {
		t.Fatal(err)
	}
	return flushtest.SourceHarness{
		Promises: described.Inputs, Inputs: inputs,
		Open: func(t testing.TB, inputs []string) flush.Source {
			sources, err := described.Open(g.store, inputs)
			if err != nil || len(sources) != 1 {
				t.Fatalf("%d sources, %v", len(sources), err)
			}
			return sources[0]
		},
		Add: func(t testing.TB, from, to int) {
			t.Helper()
			for n := from; n < to; n++ {
				add(g, n)
			}
		},
	}
}
