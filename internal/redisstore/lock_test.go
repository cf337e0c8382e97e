package redisstore_test

import (
	"context"
	"testing"
	"time"

	"baton/internal/redisstore"
	"baton/internal/testsupport"
	"baton/internal/testsupport/locktest"
)

// open connects to a private Redis.
func open(t *testing.T, r *testsupport.Redis) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(redisstore.Options{URL: r.URL(), ClientName: "baton-test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newLock(t *testing.T, s *redisstore.Store, key, node string, ttl time.Duration) *redisstore.Lock {
	t.Helper()
	l, err := redisstore.NewLock(s, key, node, ttl, redisstore.Presence{Version: "test", Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Leave(context.Background()) })
	return l
}

func TestRedisLockConforms(t *testing.T) {
	r := testsupport.StartRedis(t)
	locktest.Run(t, func(t *testing.T) locktest.Bench {
		const ttl = 400 * time.Millisecond
		s := open(t, r)
		key := "lock:" + t.Name()
		flush := func() {
			if _, err := r.Conn().Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
		}
		return locktest.Bench{
			TTL: ttl,
			A:   newLock(t, s, key, "a", ttl), B: newLock(t, s, key, "b", ttl), C: newLock(t, s, key, "c", ttl),
			Flush: flush, Sleep: time.Sleep,
			StepDown: func(to, reason string) {
				if _, _, err := redisstore.NewElection(s, key).StepDown(t.Context(), to, reason); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}
