package source

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush"
	"baton/internal/testsupport"
)

// The slot of a list or a stream moves to another node in the middle of a flush. A source that waits must be notified by the new node.
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

// Large entries can also be read when they are on the new node, and the slot is still moving.
func TestAStreamOfLargeEntriesIsReadWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	g := newClusterRig(t)
	large := strings.Repeat("x", largeAnchor+1)
	for i := range 6 {
		g.do("XADD", "events", fmt.Sprintf("%d-0", i+1), "n", large)
	}
	g.do("HSET", eventsPositions, "another", "0-0 0") // so that the scripts find both keys there
	move := g.begin("events")
	if err := move.MoveKeys("events", eventsPositions); err != nil {
		t.Fatal(err)
	}
	src, err := NewStream(g.store, StreamOptions{Job: "events", Key: "events", Inputs: []string{"$id", "n"}, BatchBytes: 2 * largeAnchor})
	if err != nil {
		t.Fatal(err)
	}
	db := newDatabase()
	if _, err := db.flush(t.Context(), src, nil); err != nil || len(db.rows()) != 6 {
		t.Errorf("%d rows, %v", len(db.rows()), err)
	}
	if err := move.Finish(); err != nil {
		t.Error(err)
	}
}

// awaitBlocked waits until the key's node has a blocked client.
func (g *clusterRig) awaitBlocked(key string) {
	g.t.Helper()
	r := &rig{Client: testsupport.Client{T: g.t, Conn: g.cluster.Owner(key).Conn()}}
	r.blocked(1)
}
