package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisstore"
	"baton/internal/testsupport"
)

// accident loses a lock that a leader still trusts. It returns the Redis that the
// nodes speak to afterwards. before runs while an earlier term lasts.
type accident struct {
	name   string
	before func(t *testing.T, r *testsupport.Redis) *testsupport.Redis
	happen func(t *testing.T, r, other *testsupport.Redis) *testsupport.Redis
}

func accidents() []accident {
	command := func(t *testing.T, r *testsupport.Redis, name string, args ...any) {
		t.Helper()
		if _, err := r.Conn().Do(name, args...); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*testing.T, *testsupport.Redis) *testsupport.Redis { return nil }
	return []accident{
		{"FLUSHALL", nothing, func(t *testing.T, r, _ *testsupport.Redis) *testsupport.Redis {
			command(t, r, "FLUSHALL")
			return r
		}},
		{"restarted empty", nothing, func(_ *testing.T, r, _ *testsupport.Redis) *testsupport.Redis {
			r.Restart()
			return r
		}},
		{"restarted from an old snapshot", func(t *testing.T, r *testsupport.Redis) *testsupport.Redis {
			command(t, r, "SAVE")
			return nil
		}, func(_ *testing.T, r, _ *testsupport.Redis) *testsupport.Redis {
			r.Restart()
			return r
		}},
		{"failed over to a replica that lacks the lock", func(t *testing.T, r *testsupport.Redis) *testsupport.Redis {
			replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(r))
			command(t, replica, "REPLICAOF", "NO", "ONE") // it hears of nothing more
			return replica
		}, func(_ *testing.T, r, replica *testsupport.Redis) *testsupport.Redis {
			r.Kill()
			return replica
		}},
	}
}

// Where Redis has lost a lock that a leader still trusts, no new owner wins before
// that trust must have ended, and none waits for longer than one lease; the leader
// itself goes on, and then there is nothing to wait for.
func TestALostLockMakesNewOwnersWaitAndItsLeaderGoOn(t *testing.T) {
	for design, options := range designs {
		for _, a := range accidents() {
			for _, survives := range []bool{false, true} {
				name := design + "/" + a.name + "/the leader is gone"
				if survives {
					name = design + "/" + a.name + "/the leader goes on"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					loseLock(t, options, a, survives)
				})
			}
		}
	}
}

func loseLock(t *testing.T, o redisstore.LockOptions, a accident, survives bool) {
	const ttl = 800 * time.Millisecond
	r := testsupport.StartRedis(t)
	o.Key, o.TTL = "baton", ttl
	node := func(r *testsupport.Redis, id string) *redisstore.Lock {
		o.NodeID = id
		return designedLock(t, open(t, r), o)
	}
	ask := func(l *redisstore.Lock, owner string, floor int64) elector.Answer {
		t.Helper()
		answer, err := l.Acquire(t.Context(), elector.Candidate{Owner: owner, Floor: floor})
		if err != nil {
			t.Fatalf("acquire by %s: %v", owner, err)
		}
		return answer
	}
	first := node(r, "a")
	old := ask(first, "o1", 0)
	other := a.before(t, r)
	if err := first.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
	leader := ask(node(r, "b"), "o2", 0)
	if leader.Outcome != elector.Won || leader.Epoch <= old.Epoch {
		t.Fatalf("the second term: %+v after epoch %d", leader, old.Epoch)
	}

	now := a.happen(t, r, other)
	lost := time.Now()
	b, c := node(now, "b"), node(now, "c")
	if survives {
		if _, err := b.Renew(t.Context(), "o2", leader.Epoch); err != nil {
			t.Fatalf("the leader's renewal: %v", err)
		}
		if held := ask(c, "o3", leader.Epoch); held.Outcome != elector.Held || held.Holder != "b" || held.Epoch != leader.Epoch {
			t.Fatalf("another node after the leader's renewal: %+v; want it held by b under epoch %d", held, leader.Epoch)
		}
		if err := b.Release(t.Context(), "o2", elector.Handover{Event: "released"}); err != nil {
			t.Fatal(err)
		}
		if won := ask(c, "o3", leader.Epoch); won.Outcome != elector.Won || won.Epoch <= leader.Epoch {
			t.Fatalf("after its release: %+v; want it won at once, above %d", won, leader.Epoch)
		}
		return
	}
	for {
		answer := ask(c, "o3", leader.Epoch)
		took := time.Since(lost)
		if answer.Outcome == elector.Won { // Redis counts in whole milliseconds
			if took < ttl-2*time.Millisecond || answer.Epoch <= leader.Epoch {
				t.Errorf("won after %v under epoch %d; the leader trusts for %v, under %d", took, answer.Epoch, ttl, leader.Epoch)
			}
			break
		}
		if answer.Left > ttl || took > 2*ttl {
			t.Fatalf("after %v: %+v; want it won after one lease", took, answer)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := b.Renew(t.Context(), "o2", leader.Epoch); !errors.Is(err, elector.ErrLost) {
		t.Errorf("a late renewal of the former leader: %v, want ErrLost", err)
	}
}

// A restart that loses nothing costs nothing: the leader confirms that it is there.
func TestARestartThatKeepsTheLockCostsNoTerm(t *testing.T) {
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t, testsupport.RedisAOF())
			o.Key, o.TTL = "baton", 30*time.Second
			o.NodeID = "a"
			a := designedLock(t, open(t, r), o)
			o.NodeID = "b"
			b := designedLock(t, open(t, r), o)
			won, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
			if err != nil || won.Outcome != elector.Won {
				t.Fatalf("acquire: %+v, %v", won, err)
			}
			r.Restart()
			_, _ = b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}) // its connection is gone
			if held, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil || held.Outcome != elector.Held {
				t.Fatalf("another node: %+v, %v", held, err)
			}
			_, _ = a.Renew(t.Context(), "o1", won.Epoch)
			if _, err := a.Renew(t.Context(), "o1", won.Epoch); err != nil {
				t.Fatal(err)
			}
			if err := a.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
				t.Fatal(err)
			}
			next, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2", Floor: won.Epoch})
			if err != nil || next.Outcome != elector.Won || next.Epoch <= won.Epoch {
				t.Errorf("after the release: %+v, %v; want it won at once, above %d", next, err, won.Epoch)
			}
		})
	}
}

// Nothing is written for a client that is not baton, and nothing of its is touched.
func TestAForeignLockIsLeftAlone(t *testing.T) {
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			conn := r.Conn()
			take := func() {
				t.Helper()
				args := []any{"baton", "somebody", "PX", 60_000}
				name := "SET"
				if o.Format == redisstore.Redisson {
					name, args = "HSET", []any{"baton", "3a9d0d9c:27", 2}
				}
				if _, err := conn.Do(name, args...); err != nil {
					t.Fatal(err)
				}
			}
			o.Key, o.TTL, o.NodeID = "baton", 5*time.Second, "a"
			lock := designedLock(t, open(t, r), o)
			won, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
			if err != nil || won.Outcome != elector.Won {
				t.Fatalf("acquire: %+v, %v", won, err)
			}
			if _, err := conn.Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
			take()
			if _, err := lock.Renew(t.Context(), "o1", won.Epoch); !errors.Is(err, elector.ErrLost) {
				t.Errorf("renew: %v, want ErrLost", err)
			}
			if err := lock.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
				t.Error(err)
			}
			held, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o2", Floor: won.Epoch})
			if err != nil || held.Outcome != elector.Held || held.Holder != "" || held.Epoch != 0 {
				t.Errorf("acquire: %+v, %v; want it held by somebody unknown", held, err)
			}
			if n, err := redis.Int(conn.Do("EXISTS", "baton")); err != nil || n != 1 {
				t.Errorf("the foreign lock is gone: %v", err)
			}
		})
	}
}
