package source

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"baton/internal/flush"
	"baton/internal/flush/flushtest"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
)

// sessions returns a job for the keys session:<id>, each a string.
func sessions(store *redisconn.Store) *scanJob {
	return &scanJob{store: store, table: newScanTable("id", "v"), options: ScanOptions{Key: "session:<id>", Value: "string"},
		columns: map[string]mapping.ColumnSpec{"id": {}, "v": {From: "$value"}}}
}

func TestRowsOfVanishedKeysAreDeletedAndNoOthers(t *testing.T) {
	g := newRig(t)
	want := map[string]string{}
	for i := range 3000 {
		g.Send("SET", fmt.Sprintf("session:%d", i), i)
		want[fmt.Sprint(i)] = fmt.Sprint(i)
	}
	g.Do("")
	j := sessions(g.store)
	// Rows that no scan has written do not belong to the scan.
	j.table.put("mine", "x")
	j.table.Put("rows", map[string]row.Value{"id": row.String(row.KindText, "too"), "v": row.String(row.KindText, "x"),
		"gen": row.Integer(0)})
	want["mine"], want["too"] = "x", "x"
	j.must(t)
	same(t, "rows", want, j.table.texts())
	for i := 0; i < 3000; i += 2 {
		g.Send("DEL", fmt.Sprintf("session:%d", i))
		delete(want, fmt.Sprint(i))
	}
	g.Do("DEL", "session:1")
	g.Do("RPUSH", "session:1", "of another type") // no row any longer
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
		g.Do("SET", fmt.Sprintf("session:%d", i), i)
	}
	j := sessions(g.store)
	j.maxPct = 10
	j.table.put("mine", "") // does not count
	j.must(t)
	for i := range 10 {
		g.Do("DEL", fmt.Sprintf("session:%d", i))
	}
	j.must(t) // exactly as many as allowed
	if n := len(j.table.texts()); n != 91 {
		t.Errorf("%d rows", n)
	}
	g.Do("FLUSHDB")
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

// If a key is created again, or could not be read by the pass, its row must stay.
func TestAKeyThatComesBackBeforeTheSweepKeepsItsRow(t *testing.T) {
	for _, c := range []struct {
		name         string
		options      ScanOptions
		columns      map[string]mapping.ColumnSpec
		key          string
		there, again []any
		gone         []any
	}{
		{"string", ScanOptions{Key: "k:<id>", Value: "string"}, map[string]mapping.ColumnSpec{"id": {}, "v": {From: "$value"}}, "id",
			[]any{"SET", "k:1", "x"}, []any{"SET", "k:1", "y"}, []any{"DEL", "k:1"}},
		{"hash", ScanOptions{Key: "k:<id>", Value: "hash"}, map[string]mapping.ColumnSpec{"id": {From: "$key"}, "v": {}}, "id",
			[]any{"HSET", "k:1", "v", "x"}, []any{"HSET", "k:1", "w", "x"}, []any{"DEL", "k:1"}},
		{"set", ScanOptions{Key: "k:<a>:<b>", Value: "set"}, map[string]mapping.ColumnSpec{"a": {}, "b": {}, "m": {From: "$member"}},
			"b a m",
			[]any{"SADD", "k:1:2", "x"}, []any{"SADD", "k:1:2", "x"}, []any{"SREM", "k:1:2", "x"}},
		{"zset", ScanOptions{Key: "k:<id>:z", Value: "zset"}, map[string]mapping.ColumnSpec{"id": {}, "m": {From: "$member"}}, "m id",
			[]any{"ZADD", "k:1:z", "7", "x"}, []any{"ZADD", "k:1:z", "8", "x"}, []any{"ZREM", "k:1:z", "x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t)
			j := &scanJob{store: g.store, table: newScanTable(c.key, "v"), options: c.options, columns: c.columns}
			do := func(command []any) { g.Do(command[0].(string), command[1:]...) }
			do(c.there)
			j.must(t)
			do(c.gone)
			j.observe = at(string(flushtest.StepStaleRead), func() { do(c.again) })
			j.must(t)
			if j.table.Count("rows") != 1 {
				t.Errorf("the row is gone: %v", j.table.texts())
			}
			j.observe = nil
			do(c.gone)
			j.must(t)
			if j.table.Count("rows") != 0 {
				t.Errorf("the row is there still: %v", j.table.texts())
			}
		})
	}
}

// If a deposed leader continues in the middle of its sweep, it must delete nothing.
func TestASweepOfADeposedLeaderDeletesNothing(t *testing.T) {
	g := newRig(t)
	g.Do("SET", "session:1", "x")
	j := sessions(g.store)
	j.must(t)
	g.Do("DEL", "session:1")
	j.observe = at(string(flushtest.StepRechecked), func() {
		g.Do("SET", "session:1", "again")
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

// The cursor of a scan is not valid in another process.
func TestAPassThatRedisDoesNotSurviveSweepsNothing(t *testing.T) {
	g := newRig(t)
	for i := range 100 {
		g.Do("SET", fmt.Sprintf("session:%d", i), i)
	}
	j := sessions(g.store)
	j.options.PageRows = 10
	j.must(t)
	g.Do("DEL", "session:7")
	j.observe = at(redistest.Before("GET"), func() { g.redis.Restart() })
	err := j.run(t.Context())
	if len(j.table.texts()) != 100 {
		t.Errorf("%d rows of 100 are left; run: %v, notes: %q", len(j.table.texts()), err, j.notes)
	}
	if err == nil && len(j.notes) == 0 {
		t.Error("nobody was told that nothing was swept")
	}
}

// The data of a master that fails over is not valid either, on the same connection.
func TestAPassDuringAFailoverSweepsNothing(t *testing.T) {
	for name, commands := range map[string][]string{
		"it is a replica now":          {"127.0.0.1 1"},
		"it is a master of other data": {"127.0.0.1 1", "NO ONE"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			for i := range 100 {
				g.Do("SET", fmt.Sprintf("session:%d", i), i)
			}
			j := sessions(g.store)
			j.must(t)
			g.Do("DEL", "session:7")
			j.observe = at(redistest.After("SCAN"), func() {
				for _, to := range commands {
					host, port, _ := strings.Cut(to, " ")
					g.Do("REPLICAOF", host, port)
				}
			})
			if err := j.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(j.notes) != 1 || !strings.Contains(j.notes[0], "session:<id>: skipped deleting vanished rows") ||
				len(j.table.texts()) != 100 {
				t.Errorf("notes %q, %d rows of 100", j.notes, len(j.table.texts()))
			}
			g.Do("REPLICAOF", "NO", "ONE")
			j.observe = nil
			j.must(t)
			if n := len(j.table.texts()); n != 99 {
				t.Errorf("%d rows after a complete pass", n)
			}
		})
	}
}
