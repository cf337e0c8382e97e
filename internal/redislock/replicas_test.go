package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// With wait_replicas a lock that no replica has does not count, because the master may be isolated, and a failover may have chosen
// another master.
func TestALockThatNoReplicaHasDoesNotCount(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			master := testsupport.StartRedis(t)
			replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(master))
			o.Key, o.NodeID, o.TTL, o.WaitReplicas = "baton", "a", time.Minute, 1
			lock := designedLock(t, open(t, master), o)
			acquire := func(ctx context.Context, owner string) (elector.Answer, error) {
				return lock.Acquire(ctx, elector.Candidate{Owner: owner})
			}
			won, err := acquire(t.Context(), "o1")
			for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
				won, err = acquire(t.Context(), "o1") // a replica sends no acknowledgement in its first second
			}
			if err != nil || won.Outcome != elector.Won {
				t.Fatalf("acquire with a replica: %+v, %v", won, err)
			}
			if _, err := lock.Renew(t.Context(), "o1", won.Epoch); err != nil {
				t.Errorf("renew with a replica: %v", err)
			}
			replica.Freeze()
			// Half of the time limit is for the replicas. If a busy machine uses up the other half, there is no answer, and the test
			// tries again with more time. Any other error would occur with every time limit.
			tooFew := func(what string, ask func(ctx context.Context) error) {
				var err error
				for patience := 500 * time.Millisecond; patience <= 8*time.Second; patience *= 2 {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					err = ask(ctx)
					cancel()
					if err != nil && strings.Contains(err.Error(), "0 of the 1 replicas") {
						return
					}
				}
				t.Errorf("%s while the replica hangs: %v; want it not to count", what, err)
			}
			tooFew("renew", func(ctx context.Context) error { _, err := lock.Renew(ctx, "o1", won.Epoch); return err })
			if err := lock.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
				t.Fatal(err)
			}
			tooFew("acquire", func(ctx context.Context) error {
				_, err := acquire(ctx, "o2")
				if errors.Is(err, elector.ErrSpent) {
					return errors.New("not given back in time")
				}
				return err
			})
			if p, err := redislock.NewElection(open(t, master), "baton", o.Format).State(t.Context(), 1); err != nil || p.Owner != "" {
				t.Errorf("after that the lock has owner %q, %v; want it given back", p.Owner, err)
			}
			replica.Thaw()
			if again, err := acquire(t.Context(), "o2"); err != nil || again.Outcome != elector.Won {
				t.Errorf("acquire after the replica is back: %+v, %v", again, err)
			}
		})
	}
}
