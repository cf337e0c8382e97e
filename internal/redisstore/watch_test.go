package redisstore_test

import (
	"context"
	"testing"
	"time"

	"baton/internal/elector"
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
		go func() { defer close(done); s.Watch(ctx, "baton", hints) }()
		return func() time.Duration {
			began := time.Now()
			cancel()
			<-done
			return time.Since(began)
		}, hints
	}
	subscribed, hints := watch()
	<-hints
	frozen, hints := watch()
	<-hints
	if took := subscribed(); took > time.Second {
		t.Errorf("ended %v after it was told, with Redis well", took)
	}
	r.Freeze()
	defer r.Thaw()
	dialling, _ := watch()
	time.Sleep(50 * time.Millisecond)
	if took := frozen(); took > time.Second {
		t.Errorf("ended %v after it was told, with Redis frozen", took)
	}
	if took := dialling(); took > time.Second {
		t.Errorf("ended %v after it was told, while it subscribed", took)
	}
}

func TestHintsThatNobodyTakesAreDropped(t *testing.T) {
	r := testsupport.StartRedis(t)
	s, conn := open(t, r), r.Conn()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	hints := make(chan elector.Hint) // nobody receives until the flood is over
	go func() { defer close(done); s.Watch(ctx, "baton", hints) }()
	for listeners := int64(0); listeners == 0; {
		n, err := conn.Do("PUBLISH", "{baton}:wake", "released")
		if err != nil {
			t.Fatal(err)
		}
		listeners = n.(int64)
	}
	for range 1000 {
		if _, err := conn.Do("PUBLISH", "{baton}:wake", "released"); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(10 * time.Second)
	for { // once it has caught up, news come through
		if _, err := conn.Do("PUBLISH", "{baton}:wake", "control"); err != nil {
			t.Fatal(err)
		}
		select {
		case h := <-hints:
			if h == elector.HintControl {
				cancel()
				<-done
				return
			}
		case <-deadline:
			t.Fatal("no hint has come since the flood")
		case <-time.After(10 * time.Millisecond):
		}
	}
}
