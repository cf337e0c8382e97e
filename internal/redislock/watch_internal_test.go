package redislock

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// If other connections have failed, the hints may come from another server now. The subscription must move soon, because a standby that
// believes that it receives hints polls less often.
func TestAWatchMovesOnSoonAfterOtherConnectionsHave(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	store, err := redisconn.Open(redisconn.Options{URL: r.URL(), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hints := make(chan elector.Hint, 8)
	var listening atomic.Int32
	var wg sync.WaitGroup
	wg.Go(func() { WatchAll(ctx, store, Watched{LockKey: "k", Hints: hints, Listening: &listening}) })
	t.Cleanup(func() { cancel(); wg.Wait(); _ = store.Close() })
	await := func(want elector.Hint) {
		t.Helper()
		select {
		case h := <-hints:
			if h != want {
				t.Fatalf("hint %v, want %v", h, want)
			}
		case <-time.After(2 * outdatedInterval):
			t.Fatalf("no hint %v within %v", want, 2*outdatedInterval)
		}
	}
	await(elector.HintSubscribed)
	c, err := store.Conn(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id, err := redis.DoContext(c, ctx, "CLIENT", "ID")
	if err != nil {
		t.Fatal(err)
	}
	r.Client(t).Do("CLIENT", "KILL", "ID", id)
	if _, err := redis.DoContext(c, ctx, "PING"); err == nil {
		t.Fatal("a connection that is cut answers")
	}
	await(elector.HintInterrupted)
	await(elector.HintSubscribed)
	if n := listening.Load(); n != 1 {
		t.Errorf("%d subscriptions are counted", n)
	}
}
