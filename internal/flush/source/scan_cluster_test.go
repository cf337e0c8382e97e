package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// In a Cluster the keys are on all masters. While slots move, a pass reports that it may have missed keys, and deletes nothing. Afterwards
// passes work as before.
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
		for range 50 { // until the nodes agree which of them has the slot
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
	for round := range max(2, testsupport.Often(3)) {
		key := fmt.Sprintf("session:%d", 10+round)
		move := g.begin(key)
		vanish(20 + round)
		before := len(j.table.texts())
		// The slot is half moved: the key is at its new master, which does not own the slot yet.
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

		// A slot moves from one master to another in the middle of a pass.
		vanish(30 + round)
		j.observe = at(redistest.After("SCAN"), func() {
			if err := g.moveAway(fmt.Sprintf("session:%d", 40+round)); err != nil {
				t.Error(err)
			}
		})
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
		columns: map[string]mapping.ColumnSpec{"id": {}, "m": {From: "$member"}, "v": {From: "$score"}}}
	h := &scanJob{store: g.store, table: newScanTable("id", "v"), options: ScanOptions{Key: "h:<id>"},
		columns: map[string]mapping.ColumnSpec{"id": {}, "v": {}}}
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
