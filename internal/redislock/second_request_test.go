package redislock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
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

		answer := renewedBy(t, lock, epoch, suspended)
		if past := errors.Is(answer, heartbeat.ErrExpired); past != suspended || past == (answer == nil) {
			t.Errorf("suspended: %v; the renewal: %v", suspended, answer)
		}
		if restored := c.Num("EXISTS", "baton") == 1; restored == suspended {
			t.Errorf("suspended: %v; the lock is restored: %v", suspended, restored)
		}
	}
}

// While a Cluster moves the slot, it refuses the script of the renewal, and the leader renews only the lock key. That second request has
// the same limit.
func TestARenewalExtendsNoLockPastTheTrustWindow(t *testing.T) {
	t.Parallel()
	cluster := testsupport.StartCluster(t)
	const key, left = "{moved}lock", 10 * time.Minute
	lock := designedLock(t, openWith(t, redisconn.Options{Cluster: cluster.Addresses()[:1]}),
		redislock.LockOptions{Key: key, NodeID: "a", TTL: time.Hour})
	won, err := acquireOnce(t, lock, "o1")
	if err != nil || won.Outcome != elector.Won {
		t.Fatalf("%+v, %v", won, err)
	}
	from := cluster.Owner(key)
	c := from.Client(t)
	cluster.BeginMove(key, anotherMaster(t, cluster, from)) // the script names a key that the old node does not have
	for _, suspended := range []bool{false, true} {
		c.Do("PEXPIRE", key, left.Milliseconds())
		answer := renewedBy(t, lock, won.Epoch, suspended)
		if past := errors.Is(answer, heartbeat.ErrExpired); past != suspended || past == (answer == nil) {
			t.Errorf("suspended: %v; the renewal: %v", suspended, answer)
		}
		if extended := c.Num("PTTL", key) > left.Milliseconds(); extended == suspended {
			t.Errorf("suspended: %v; the lock is extended: %v", suspended, extended)
		}
	}
}

// renewedBy renews the lock of owner o1 in its trust window, and returns the answer. If the host is suspended, the window ends after the
// decision to renew, but the deadline of the attempt does not.
func renewedBy(t *testing.T, lock *redislock.Lock, epoch int64, suspended bool) (answer error) {
	t.Helper()
	var now atomic.Int64
	clock := func() heartbeat.Instant { return heartbeat.Instant(now.Load()) }
	timing := heartbeat.Timing{
		TTL: time.Hour, Interval: time.Millisecond, Timeout: time.Minute, Margin: time.Second, Drain: time.Second,
	}
	ctx, cancel := context.WithCancel(t.Context())
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
	return answer
}
