package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// A caller that waits for the end of a watch must not wait for Redis.
func TestAWatchEndsAtOnceWhateverRedisDoes(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := redistest.Open(t, redisconn.Options{URL: r.URL(), Timeout: time.Hour}) // no time limit ends a watch
	watch := func() (end func(when string), hints chan elector.Hint) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		hints = make(chan elector.Hint, 1)
		go func() {
			defer close(done)
			redislock.WatchAll(ctx, s, redislock.Watched{LockKey: "baton", Hints: hints})
		}()
		return func(when string) {
			t.Helper()
			cancel()
			testsupport.Receive(t, "the watch ends "+when, done)
		}, hints
	}
	subscribed, hints := watch()
	<-hints
	frozen, hints := watch()
	<-hints
	subscribed("with Redis well")
	r.Freeze()
	defer r.Thaw()
	dialling, _ := watch()
	frozen("with Redis frozen")
	dialling("while it subscribes")
}

func TestHintsThatNobodyTakesHoldNothingUp(t *testing.T) {
	r := testsupport.StartRedis(t)
	s, conn := open(t, r), r.Conn()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		redislock.WatchAll(ctx, s, redislock.Watched{LockKey: "baton", Hints: make(chan elector.Hint)})
	}()
	for told := 0; told < 100; {
		n, err := redis.Int(conn.Do("PUBLISH", "{baton}:wake", "released"))
		if err != nil {
			t.Fatal(err)
		}
		told += n
	}
	cancel()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the watch waits for somebody to take a hint")
	}
}

// If an outer command already holds all locks of a command, the command has no locks to watch.
func TestAWatchOfNoLocksWaitsForItsEnd(t *testing.T) {
	s := open(t, testsupport.StartRedis(t))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	redislock.WatchAll(ctx, s)
	if ctx.Err() == nil {
		t.Error("it ended before its context")
	}
}
