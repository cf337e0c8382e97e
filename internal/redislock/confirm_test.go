package redislock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/testsupport"

	"github.com/gomodule/redigo/redis"
)

// The first renewal after a restart must confirm the lock, also on a shared connection.
func TestTheFirstRenewalOnANewSharedConnectionConfirms(t *testing.T) {
	r := testsupport.StartRedis(t, testsupport.RedisAOF())
	s := open(t, r)
	shared := redisconn.NewShared(s)
	t.Cleanup(shared.Close)
	a := designedLock(t, s, redislock.LockOptions{Key: "baton", NodeID: "a", TTL: 30 * time.Second, Shared: shared})
	won, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Renew(t.Context(), "o1", won.Epoch); err != nil {
		t.Fatal(err)
	}
	r.Restart()
	for try := 0; ; try++ {
		_, err := a.Renew(t.Context(), "o1", won.Epoch)
		if err == nil {
			break
		}
		if try > 3 || errors.Is(err, elector.ErrLost) {
			t.Fatal(err)
		}
	}
	info, err := redis.String(r.Conn().Do("INFO", "server"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := redis.String(r.Conn().Do("HGET", "{baton}:term", "run_id"))
	if err != nil || !strings.Contains(info, "run_id:"+run) {
		t.Errorf("the term is of incarnation %q (%v), which is not the one that has renewed it", run, err)
	}
}
