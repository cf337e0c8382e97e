package redislock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// With wait_replicas a lock that no replica has is not a lock: the master may be
// isolated, and another may have been chosen.
func TestALockThatNoReplicaHasDoesNotCount(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			master := testsupport.StartRedis(t)
			replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
			o.Key, o.NodeID, o.TTL, o.WaitReplicas = "baton", "a", 10*time.Second, 1
			lock := designedLock(t, open(t, master), o)
			patience := testsupport.Paced(500 * time.Millisecond)
			attempt := func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), patience)
			}
			acquire := func(owner string) (elector.Answer, error) {
				ctx, cancel := attempt()
				defer cancel()
				return lock.Acquire(ctx, elector.Candidate{Owner: owner})
			}
			won, err := acquire("o1")
			for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
				won, err = acquire("o1") // a replica acknowledges nothing in its first second
			}
			if err != nil || won.Outcome != elector.Won {
				t.Fatalf("acquire with a replica: %+v, %v", won, err)
			}
			renew := func() error {
				ctx, cancel := attempt()
				defer cancel()
				_, err := lock.Renew(ctx, "o1", won.Epoch)
				return err
			}
			if err := renew(); err != nil {
				t.Errorf("renew with a replica: %v", err)
			}
			replica.Freeze()
			if err := renew(); err == nil || !strings.Contains(err.Error(), "0 of the 1 replicas") {
				t.Errorf("renew while the replica hangs: %v; want it not to count", err)
			}
			if err := lock.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
				t.Fatal(err)
			}
			if _, err := acquire("o2"); err == nil || !strings.Contains(err.Error(), "0 of the 1 replicas") {
				t.Errorf("acquire while the replica hangs: %v; want it not to count", err)
			}
			if p, err := redislock.NewElection(open(t, master), "baton", o.Format).Picture(t.Context(), 1); err != nil || p.Owner != "" {
				t.Errorf("after that the lock has owner %q, %v; want it given back", p.Owner, err)
			}
			replica.Thaw()
			if again, err := acquire("o2"); err != nil || again.Outcome != elector.Won {
				t.Errorf("acquire after the replica is back: %+v, %v", again, err)
			}
		})
	}
}
