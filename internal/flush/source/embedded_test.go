package source

import (
	"errors"
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

// The demo has its own Redis-compatible server. The scripts and sources must work on it.
func TestSourcesWorkOnTheEmbeddedServer(t *testing.T) {
	m := miniredis.RunT(t)
	c, err := redis.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := &rig{Client: testsupport.Client{T: t, Conn: c}, store: openStore(t, "redis://"+m.Addr()+"/0")}
	for _, zset := range []bool{false, true} {
		db := newDatabase()
		counts := g.fillCounters("views:3", 600)
		rows := map[string]string{}
		for i := range 150 {
			id := fmt.Sprint(i)
			g.change(zset, id, "name", i)
			rows[id] = id + "|name|" + id
		}
		g.remove(zset, "7")
		delete(rows, "7")
		for _, src := range []flush.Source{
			g.counters(CountersOptions{PartRows: 100, MemoryBudget: 3 << 10}),
			g.hashes(IndexedOptions{PageRows: 25, MemoryBudget: 2 << 10}),
		} {
			observe, _ := crashAt(24, nil)
			if _, err := db.flush(t.Context(), src, observe); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			db.drain(t, src)
		}
		same(t, "counts", counts, db.counts())
		same(t, "rows", rows, db.rows())
		g.nothingLeft()
	}
}

func TestListsAndStreamsWorkOnTheEmbeddedServer(t *testing.T) {
	m := miniredis.RunT(t)
	c, err := redis.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := &rig{Client: testsupport.Client{T: t, Conn: c}, store: openStore(t, "redis://"+m.Addr()+"/0")}
	bothQueues(t, g, func(t *testing.T, fresh func() *queue) {
		q, db := fresh(), newDatabase()
		for range 3 {
			if err := q.add(g.Conn, 200); err != nil {
				t.Fatal(err)
			}
			observe, _ := crashAt(24, nil)
			if _, err := db.flush(t.Context(), q.source(g.store, 100, observe), observe); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			src := q.source(g.store, 50, nil)
			db.drain(t, src)
			if n, err := flush.Backlog(t.Context(), []flush.Source{src}); n != 0 || err != nil {
				t.Errorf("backlog %d, %v", n, err)
			}
			done := waits(t.Context(), src.(flush.Waiter))
			if err := q.add(g.Conn, 1); err != nil {
				t.Fatal(err)
			}
			if err := within(t, done); err != nil {
				t.Errorf("wait: %v", err)
			}
			db.drain(t, src)
		}
		q.check(t, "in the end", db)
	})
}
