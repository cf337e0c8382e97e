package redisstore

import (
	"errors"
	"fmt"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
)

// The demo brings a Redis-compatible server of its own, which the scripts and
// sources must get on with.
func TestSourcesWorkOnTheEmbeddedServer(t *testing.T) {
	m := miniredis.RunT(t)
	c, err := redis.Dial("tcp", m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := &rig{t: t, conn: c, store: openStore(t, "redis://"+m.Addr()+"/0")}
	for _, zset := range []bool{false, true} {
		db := newDatabase()
		counts := g.fillCounters("views:3", 2000)
		rows := map[string]string{}
		for i := range 500 {
			id := fmt.Sprint(i)
			g.change(zset, id, "name", i)
			rows[id] = id + "|name|" + id
		}
		g.remove(zset, "7")
		delete(rows, "7")
		for _, src := range []flush.Source{
			g.counters(CountersOptions{PartRows: 100, MemoryBudget: 8 << 10}),
			g.hashes(HashesOptions{PageRows: 25, MemoryBudget: 4 << 10}),
		} {
			observe, _ := crashAt(14, nil)
			if _, err := db.flushOnce(t.Context(), src, observe); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			db.drain(t, src)
		}
		same(t, "counts", counts, db.counts)
		same(t, "rows", rows, db.rows)
		g.nothingLeft()
	}
}
