package redislock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// After a lock was broken, no new holder may win while the old holder may still act.
func TestABrokenLockIsNobodysUntilItsHolderCannotTrustItAnyMore(t *testing.T) {
	t.Parallel()
	for name, design := range designs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = shortLease
			s := open(t, testsupport.StartRedis(t))
			design.Key, design.TTL = "nightly", ttl
			node := func(id string) *redislock.Lock {
				design.NodeID = id
				return designedLock(t, s, design)
			}
			a, b := node("a"), node("b")
			election := redislock.NewElection(s, "nightly", design.Format)
			if _, err := election.Break(t.Context(), "test"); !errors.Is(err, redislock.ErrNotHeld) {
				t.Errorf("a free lock was broken: %v", err)
			}
			granted := time.Now() // the lease was granted at this time at the latest
			epoch := acquire(t, a, "o1", 0).Epoch
			hints := make(chan elector.Hint, 8)
			go redislock.WatchAll(t.Context(), s, redislock.Watched{LockKey: "nightly", Hints: hints})
			<-hints // the subscription works

			broken, err := election.Break(t.Context(), "its host is on fire, says alice")
			if err != nil || broken.Owner != "o1" || broken.NodeID != "a" || broken.Epoch != epoch || broken.Left <= 0 ||
				broken.Left > ttl {
				t.Fatalf("%+v, %v", broken, err)
			}
			if h := <-hints; h != elector.HintControl {
				t.Errorf("the holder was told %v, not to ask at once", h)
			}
			if _, err := a.Renew(t.Context(), "o1", epoch); !errors.Is(err, elector.ErrLost) {
				t.Errorf("the old holder's renewal: %v, want ErrLost", err)
			}
			for _, c := range []struct {
				lock  *redislock.Lock
				owner string
			}{{b, "o2"}, {a, "o1"}, {a, "o3"}} {
				if got := acquire(t, c.lock, c.owner, 0); got.Outcome != elector.Wait || got.Left <= 0 || got.Left > ttl {
					t.Errorf("%s asks for a broken lock: %+v, want to wait", c.owner, got)
				}
			}
			var won elector.Answer
			for won = acquire(t, b, "o2", 0); won.Outcome != elector.Won; won = acquire(t, b, "o2", 0) {
				if time.Since(granted) > time.Minute {
					t.Fatalf("the lock is never free again: %+v", won)
				}
				time.Sleep(5 * time.Millisecond)
			}
			if waited := time.Since(granted); waited < ttl-2*time.Millisecond || won.Epoch <= epoch+1 {
				t.Errorf("the next term began after %v with epoch %d; want a lease of %v, and above %d", waited, won.Epoch, ttl, epoch+1)
			}
			p, err := election.State(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			var told bool
			for _, e := range p.Events {
				told = told || e.Event == "broken" && e.NodeID == "a" && e.Epoch == epoch && strings.Contains(e.Reason, "says alice")
			}
			if !told {
				t.Errorf("the history does not tell: %+v", p.Events)
			}
		})
	}
}

func acquire(t *testing.T, l *redislock.Lock, owner string, floor int64) elector.Answer {
	t.Helper()
	a, err := l.Acquire(t.Context(), elector.Candidate{Owner: owner, Floor: floor})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Break must delete an epoch that keeps every node from leading, so that the next epoch is valid. The earlier leader may still trust its
// lease.
func TestBreakingALockForgetsAnEpochThatNobodyCanFollow(t *testing.T) {
	t.Parallel()
	for name, design := range designs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			s, conn := open(t, r), r.Conn()
			const ttl = shortLease
			design.Key, design.TTL, design.NodeID = "nightly", ttl, "a"
			a := designedLock(t, s, design)
			epoch := acquire(t, a, "o1", 0).Epoch
			if err := a.Release(t.Context(), "o1", elector.Handover{Event: "stepped_down"}); err != nil {
				t.Fatal(err)
			}
			for _, forged := range []any{int64(9007199254740989), "abc"} {
				if _, err := conn.Do("HSET", "{nightly}:term", "epoch", forged); err != nil {
					t.Fatal(err)
				}
				broken, err := redislock.NewElection(s, "nightly", design.Format).Break(t.Context(), "test")
				if err != nil || !broken.Forgotten || broken.Owner != "" || broken.Left != ttl.Truncate(time.Millisecond) {
					t.Fatalf("%v: %+v, %v", forged, broken, err)
				}
				began := time.Now()
				// A node that has led under this epoch, or has seen it, still knows the epoch.
				floor := int64(9007199254740989)
				won := acquire(t, a, "o2", floor)
				if won.Outcome != elector.Wait || won.Left <= 0 {
					t.Errorf("%v: a node asks at once: %+v, want to wait for one lease", forged, won)
				}
				for ; won.Outcome != elector.Won; won = acquire(t, a, "o2", floor) {
					if time.Since(began) > time.Minute {
						t.Fatalf("%v: nobody can lead: %+v", forged, won)
					}
					time.Sleep(5 * time.Millisecond)
				}
				if won.Epoch <= epoch || won.Epoch > time.Now().Add(time.Hour).UnixMilli() {
					t.Errorf("%v: the next epoch is %d, after %d", forged, won.Epoch, epoch)
				}
				epoch = won.Epoch
				if err := a.Release(t.Context(), "o2", elector.Handover{Event: "stepped_down"}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestAForeignLockCanBeBroken(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := open(t, r)
	election := redislock.NewElection(s, "nightly", script.String)
	lock := newLock(t, s, "nightly", "a", time.Second)
	r.Client(t).Do("SET", "nightly", "a shell script")
	broken, err := election.Break(t.Context(), "test")
	if want := (redislock.Broken{Owner: "a shell script"}); err != nil || broken != want {
		t.Errorf("%+v, %v", broken, err)
	}
	if got := acquire(t, lock, "o1", 0); got.Outcome != elector.Won {
		t.Errorf("a lock that had no expiry: %+v", got)
	}
	if err := lock.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
	r.Client(t).Do("SET", "nightly", "a shell script", "PX", 300)
	if broken, err := election.Break(t.Context(), "test"); err != nil || broken.Left <= 0 || broken.Left > 300*time.Millisecond {
		t.Errorf("%+v, %v", broken, err)
	}
	if got := acquire(t, lock, "o2", 0); got.Outcome != elector.Wait {
		t.Errorf("while a foreign client may trust its lock: %+v", got)
	}
}

func TestTheIndexOfLocksStaysSmall(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := open(t, r)
	now := time.Now()
	for name, ago := range map[string]time.Duration{"ancient": 31 * 24 * time.Hour, "old": 29 * 24 * time.Hour, "new": 0} {
		if err := redislock.NoteLocks(t.Context(), s, now.Add(-ago), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := redislock.NoteLocks(t.Context(), s, now.Add(-time.Hour), "old"); err != nil {
		t.Fatal(err)
	}
	if names, err := redislock.NotedLocks(t.Context(), s); err != nil || strings.Join(names, " ") != "new old" {
		t.Errorf("%q, %v", names, err)
	}
	conn := r.Conn()
	for i := range 10_005 {
		_ = conn.Send("ZADD", "baton:locks", now.UnixMilli()-int64(i)-1, i)
	}
	if _, err := conn.Do(""); err != nil {
		t.Fatal(err)
	}
	if err := redislock.NoteLocks(t.Context(), s, now, "newest"); err != nil {
		t.Fatal(err)
	}
	if names, err := redislock.NotedLocks(t.Context(), s); err != nil || len(names) != 10_000 ||
		names[0] != "newest" && names[1] != "newest" {
		t.Errorf("%d names, %v", len(names), err)
	}
}
