package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// A failover may choose the replica that does not have the lock.
func TestALockThatOneOfTwoReplicasHasDoesNotCount(t *testing.T) {
	t.Parallel()
	master := testsupport.StartRedis(t)
	testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
	lock := designedLock(t, open(t, master), redislock.LockOptions{Key: "baton", NodeID: "a", TTL: 10 * time.Second, WaitReplicas: 2})
	end := time.Now().Add(time.Minute)
	for i := 0; ; i++ { // a replica sends no acknowledgement in its first second
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		a, err := lock.Acquire(ctx, elector.Candidate{Owner: fmt.Sprint("o", i)})
		cancel()
		switch {
		case err == nil && a.Outcome == elector.Won:
			t.Fatalf("%+v: it counts although one replica does not have it", a)
		case err != nil && strings.Contains(err.Error(), "1 of the 2 replicas"):
			return
		case time.Now().After(end):
			t.Fatalf("%+v, %v; want it refused since one replica alone has it", a, err)
		}
	}
}
