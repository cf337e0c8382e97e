package source

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

// The slot of a list or a stream moves to another node in the middle of a flush, and
// whoever waits for work is told by the new one.
func TestListsAndStreamsOfAClusterAreExactWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	for _, kind := range []string{"list", "stream"} {
		t.Run(kind, func(t *testing.T) {
			q := &queue{kind: kind, g: &rig{Client: testsupport.Client{T: t}, store: g.store},
				counts: map[string]int64{}, rows: map[string]string{}}
			key := map[string]string{"list": "orders", "stream": "events"}[kind]
			add := func(n int) {
				t.Helper()
				c, err := g.store.Conn(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if err := q.add(c, n); err != nil {
					t.Fatal(err)
				}
			}
			db := newDatabase()
			flushAll := func(src flush.Source) {
				t.Helper()
				for more, tries := true, 0; more; tries++ {
					var err error
					if more, err = db.flush(t.Context(), src, nil); err != nil {
						more = true
						if tries > 50 {
							t.Fatal(err)
						}
						time.Sleep(20 * time.Millisecond)
					}
				}
			}
			for _, at := range []int{3, 6, 9} {
				add(120)
				var steps atomic.Int64 // an aborted request may still be on its way when the flush has ended
				flushAll(q.source(g.store, 50, locked(func(string) error {
					if steps.Add(1) == int64(at) {
						return g.moveAway(key)
					}
					return nil
				})))
				src := q.source(g.store, 50, nil)
				flushAll(src)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				done := waits(ctx, src.(flush.Waiter))
				g.awaitBlocked(key)
				add(1)
				if err := within(t, done); err != nil {
					t.Errorf("wait: %v", err)
				}
				cancel()
				flushAll(src)
			}
			same(t, "sums", q.counts, db.counts())
			same(t, "rows", q.rows, db.rows())
			if n, err := redis.Int(g.do("EXISTS", "{orders}:baton:stage", "{orders}:baton:meta"), nil); n != 0 || err != nil {
				t.Errorf("%d keys left behind, %v", n, err)
			}
		})
	}
}

// awaitBlocked waits until the key's node has a blocked client.
func (g *clusterRig) awaitBlocked(key string) {
	g.t.Helper()
	r := &rig{Client: testsupport.Client{T: g.t, Conn: g.cluster.Owner(key).Conn()}}
	r.blocked(1)
}
