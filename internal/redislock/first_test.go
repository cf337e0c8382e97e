package redislock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// readContext is a context that calls read when its values are read. A shared connection reads them directly before it queues a command.
type readContext struct {
	context.Context
	read func()
}

func (c readContext) Value(key any) any {
	defer c.read()
	return c.Context.Value(key)
}

// A renewal on a shared connection is executed before the commands of the same round trip that other callers have sent earlier.
func TestARenewalGoesBeforeTheOtherCommandsOfItsRoundTrip(t *testing.T) {
	t.Parallel()
	const others = 20
	r := testsupport.StartRedis(t)
	s, c := open(t, r), r.Client(t)
	shared := redisconn.NewShared(s)
	lock := designedLock(t, s, redislock.LockOptions{Key: "baton", NodeID: "a", TTL: time.Hour, Shared: shared})
	a, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
	if err != nil || a.Outcome != elector.Won {
		t.Fatalf("acquire the lock: %+v, %v", a, err)
	}
	// If the processors are busy, the round trip may leave before the renewal is queued.
	testsupport.AwaitNoError(t, "a renewal in the round trip of commands that were queued before it", func() error {
		c.Do("PEXPIRE", "baton", time.Minute.Milliseconds())
		var queued, answered sync.WaitGroup
		var mu sync.Mutex
		before := 0 // commands that Redis executed before the renewal
		queued.Add(others)
		for range others {
			ctx := readContext{t.Context(), sync.OnceFunc(queued.Done)}
			answered.Go(func() {
				rest, err := redis.Int64(redis.DoContext(shared.Conn(), ctx, "PTTL", "baton"))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if rest <= time.Minute.Milliseconds() {
					before++
				}
			})
		}
		queued.Wait()
		if _, err := lock.Renew(t.Context(), "o1", a.Epoch); err != nil {
			t.Error(err)
		}
		answered.Wait()
		if before > 0 {
			return fmt.Errorf("%d of %d commands went before the renewal", before, others)
		}
		return nil
	})
}
