package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// Whoever waits for the end of a watch must not wait for Redis.
func TestAWatchEndsAtOnceWhateverRedisDoes(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := open(t, r)
	watch := func() (end func() time.Duration, hints chan elector.Hint) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		hints = make(chan elector.Hint, 1)
		go func() {
			defer close(done)
			redislock.WatchAll(ctx, s, redislock.Watched{LockKey: "baton", Hints: hints})
		}()
		return func() time.Duration {
			began := time.Now()
			cancel()
			<-done
			return time.Since(began)
		}, hints
	}
	atOnce := testsupport.Paced(time.Second)
	subscribed, hints := watch()
	<-hints
	frozen, hints := watch()
	<-hints
	if took := subscribed(); took > atOnce {
		t.Errorf("ended %v after it was told, with Redis well", took)
	}
	r.Freeze()
	defer r.Thaw()
	dialling, _ := watch()
	time.Sleep(50 * time.Millisecond)
	if took := frozen(); took > atOnce {
		t.Errorf("ended %v after it was told, with Redis frozen", took)
	}
	if took := dialling(); took > atOnce {
		t.Errorf("ended %v after it was told, while it subscribed", took)
	}
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

// A command inside another one that holds all of its locks has none to watch.
func TestAWatchOfNoLocksWaitsForItsEnd(t *testing.T) {
	s := open(t, testsupport.StartRedis(t))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	redislock.WatchAll(ctx, s)
	if ctx.Err() == nil {
		t.Error("it ended before its context")
	}
}
