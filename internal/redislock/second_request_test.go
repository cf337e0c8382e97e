package redislock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/heartbeat"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// Redis has lost the lock, and asks the leader for a proof. The host was suspended meanwhile, so that the trust window has ended, but the
// deadline of the attempt has not. Another node may lead by now, so the leader must not send the proof.
func TestARenewalSendsNoProofPastTheTrustWindow(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	c := r.Client(t)
	for _, suspended := range []bool{false, true} {
		c.Do("FLUSHALL")
		lock := designedLock(t, open(t, r), redislock.LockOptions{Key: "baton", NodeID: "a", TTL: time.Hour})
		e := electorate{t, r, time.Hour, lock, nil, nil}
		epoch := e.ask(lock, "o1", 0).Epoch
		c.Do("HSET", "{baton}:term", "run_id", "another")
		c.Do("DEL", "baton")

		var now atomic.Int64
		clock := func() heartbeat.Instant { return heartbeat.Instant(now.Load()) }
		timing := heartbeat.Timing{
			TTL: time.Hour, Interval: time.Millisecond, Timeout: time.Minute, Margin: time.Second, Drain: time.Second,
		}
		ctx, cancel := context.WithCancel(t.Context())
		var answer error
		err := heartbeat.Keep(ctx, heartbeat.NewWindow(clock, timing, 0), func(ctx context.Context) error {
			if suspended {
				now.Store(int64(time.Hour)) // Keep has looked at the window before
			}
			_, answer = lock.Renew(ctx, "o1", epoch)
			cancel()
			return answer
		}, heartbeat.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if past := errors.Is(answer, heartbeat.ErrExpired); past != suspended || past == (answer == nil) {
			t.Errorf("suspended: %v; the renewal: %v", suspended, answer)
		}
		if restored := c.Num("EXISTS", "baton") == 1; restored == suspended {
			t.Errorf("suspended: %v; the lock is restored: %v", suspended, restored)
		}
	}
}
