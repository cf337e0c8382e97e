package source

import (
	"testing"

	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// startWithUser starts a Redis whose only user with any rights, but for the test's,
// is the documented one.
func startWithUser(t testing.TB) (*testsupport.Redis, redisconn.Options) {
	t.Helper()
	r, url := testsupport.StartRedisWithUser(t)
	return r, redisconn.Options{URL: url, Username: "baton", ClientName: "baton:test",
		Password: func() (string, error) { return "PASSWORD", nil }}
}

func TestTheDocumentedUserCanFlush(t *testing.T) {
	t.Parallel()
	r, o := startWithUser(t)
	store, err := redisconn.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	conn := r.Conn()
	if _, err := conn.Do("SELECT", 1); err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, redis: r, store: store, conn: conn}
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
