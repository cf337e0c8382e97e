package source

import (
	"testing"

	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestTheDocumentedUserCanFlush(t *testing.T) {
	t.Parallel()
	r, o := redistest.StartWithUser(t)
	store := redistest.Open(t, o)
	conn := r.Conn()
	if _, err := conn.Do("SELECT", 1); err != nil {
		t.Fatal(err)
	}
	g := &rig{Client: testsupport.Client{T: t, Conn: conn}, redis: r, store: store}
	db := newDatabase()
	want := g.fillCounters("views:3", 100)
	db.drain(t, g.counters(CountersOptions{}))
	same(t, "counts", want, db.counts())
	for _, zset := range []bool{false, true} {
		g.change(zset, "1", "one", 1)
		g.remove(zset, "2")
		db.drain(t, g.hashes(IndexedOptions{}))
	}
	same(t, "rows", map[string]string{"1": "1|one|1"}, db.rows())
	if _, err := g.counters(CountersOptions{}).Backlog(t.Context()); err != nil {
		t.Error(err)
	}
}
