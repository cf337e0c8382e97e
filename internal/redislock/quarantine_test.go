package redislock_test

import (
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// accident describes how a lock is lost that a leader still trusts. It returns the Redis that the nodes use afterwards. The function
// before runs during an earlier term.
type accident struct {
	name   string
	before func(t *testing.T, r *testsupport.Redis) *testsupport.Redis
	happen func(t *testing.T, r, other *testsupport.Redis) *testsupport.Redis
}

func accidents() []accident {
	command := func(t *testing.T, r *testsupport.Redis, name string, args ...any) {
		t.Helper()
		r.Client(t).Do(name, args...)
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
			command(t, replica, "REPLICAOF", "NO", "ONE") // the replica gets no more changes
			return replica
		}, func(_ *testing.T, r, replica *testsupport.Redis) *testsupport.Redis {
			r.Kill()
			return replica
		}},
		{"made a replica of one that lagged, and master again", func(t *testing.T, r *testsupport.Redis) *testsupport.Redis {
			replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(r))
			command(t, replica, "REPLICAOF", "NO", "ONE")
			return replica
		}, func(_ *testing.T, r, replica *testsupport.Redis) *testsupport.Redis {
			r.TakeDataOf(replica) // the process of the server stays the same
			return r
		}},
	}
}

// If Redis has lost a lock that a leader still trusts, no new owner may win before the leader's trust must have ended, and no new owner
// may wait longer than one lease. If the leader itself continues, no owner needs to wait after its term.
func TestALostLockMakesNewOwnersWaitAndItsLeaderGoOn(t *testing.T) {
	t.Parallel()
	for _, a := range accidents() {
		for _, survives := range []bool{false, true} {
			name := a.name + "/the leader is gone"
			if survives {
				name = a.name + "/the leader goes on"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				loseLocks(t, a, survives)
			})
		}
	}
}

// lostLock is a lock of one design, which is lost together with the locks of the other designs.
type lostLock struct {
	t           *testing.T
	design      string
	first       *redislock.Lock
	old, leader elector.Answer
	b, c        *redislock.Lock // the locks of nodes that come after the loss
	end         time.Time       // the end of c's wait, which lasts one lease from the first answer on
}

func (l *lostLock) ask(lock *redislock.Lock, owner string, floor int64) elector.Answer {
	l.t.Helper()
	answer, err := lock.Acquire(l.t.Context(), elector.Candidate{Owner: owner, Floor: floor})
	if err != nil {
		l.t.Fatalf("%s: acquire by %s: %v", l.design, owner, err)
	}
	return answer
}

func (l *lostLock) release(lock *redislock.Lock, owner string) {
	l.t.Helper()
	if err := lock.Release(l.t.Context(), owner, elector.Handover{Event: "released"}); err != nil {
		l.t.Fatalf("%s: %v", l.design, err)
	}
}

// loseLocks makes one accident happen to a lock of each design.
func loseLocks(t *testing.T, a accident, survives bool) {
	const ttl = shortLease
	r := testsupport.StartRedis(t)
	node := func(r *testsupport.Redis, design, id string) *redislock.Lock {
		o := designs[design]
		o.Key, o.TTL, o.NodeID = "baton of "+design, ttl, id
		return designedLock(t, open(t, r), o)
	}
	var locks []*lostLock
	for design := range designs {
		l := &lostLock{t: t, design: design, first: node(r, design, "a")}
		l.old = l.ask(l.first, "o1", 0)
		locks = append(locks, l)
	}
	other := a.before(t, r)
	for _, l := range locks {
		if _, err := l.first.Renew(t.Context(), "o1", l.old.Epoch); err != nil { // a leader renews all the time
			t.Fatalf("%s: renew: %v", l.design, err)
		}
		l.release(l.first, "o1")
		l.leader = l.ask(node(r, l.design, "b"), "o2", 0)
		if l.leader.Outcome != elector.Won || l.leader.Epoch <= l.old.Epoch {
			t.Fatalf("%s: the second term: %+v after epoch %d", l.design, l.leader, l.old.Epoch)
		}
	}
	now := a.happen(t, r, other)
	lost := time.Now()
	for _, l := range locks {
		l.b, l.c = node(now, l.design, "b"), node(now, l.design, "c")
		if survives {
			l.goesOn()
		}
	}
	for !survives && len(locks) > 0 {
		locks = slices.DeleteFunc(locks, func(l *lostLock) bool { return l.waited(lost, ttl) })
		time.Sleep(10 * time.Millisecond)
	}
}

// goesOn fails the test unless the earlier leader can renew the lock, and another node wins only after the leader has released it.
func (l *lostLock) goesOn() {
	l.t.Helper()
	if _, err := l.b.Renew(l.t.Context(), "o2", l.leader.Epoch); err != nil {
		l.t.Fatalf("%s: the leader's renewal: %v", l.design, err)
	}
	if held := l.ask(l.c, "o3", l.leader.Epoch); held.Outcome != elector.Held || held.Holder != "b" || held.Epoch != l.leader.Epoch {
		l.t.Fatalf("%s: another node after the leader's renewal: %+v; want it held by b under epoch %d", l.design, held, l.leader.Epoch)
	}
	l.release(l.b, "o2")
	if won := l.ask(l.c, "o3", l.leader.Epoch); won.Outcome != elector.Won || won.Epoch <= l.leader.Epoch {
		l.t.Fatalf("%s: after its release: %+v; want it won at once, above %d", l.design, won, l.leader.Epoch)
	}
}

// waited asks for a lock whose leader is gone, and reports whether the lock is won. It fails the test if the lock is won earlier or later
// than after one lease.
func (l *lostLock) waited(lost time.Time, ttl time.Duration) bool {
	l.t.Helper()
	sent := time.Now()
	answer := l.ask(l.c, "o3", l.leader.Epoch)
	took := time.Since(lost)
	if answer.Outcome != elector.Won {
		if l.end.IsZero() {
			l.end = time.Now().Add(ttl)
		}
		// The tolerance is needed because Redis counts in whole milliseconds.
		if answer.Left > ttl || sent.After(l.end.Add(2*time.Millisecond)) {
			l.t.Fatalf("%s: after %v: %+v; want it won after one lease", l.design, took, answer)
		}
		return false
	}
	if took < ttl-2*time.Millisecond || answer.Epoch <= l.leader.Epoch {
		l.t.Errorf("%s: won after %v under epoch %d; the leader trusts for %v, under %d", l.design, took, answer.Epoch, ttl, l.leader.Epoch)
	}
	if _, err := l.b.Renew(l.t.Context(), "o2", l.leader.Epoch); !errors.Is(err, elector.ErrLost) {
		l.t.Errorf("%s: a late renewal of the former leader: %v, want ErrLost", l.design, err)
	}
	return true
}

// A master changes its replid when its first replica connects, and when the time of its backlog is over. The leader renews nevertheless,
// and no node has to wait after the leader has released the lock.
func TestAReplicaThatComesAndGoesCostsNoQuarantine(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			o.Key, o.TTL = "baton", 30*time.Second
			o.NodeID = "a"
			a := designedLock(t, open(t, r), o)
			o.NodeID = "b"
			b := designedLock(t, open(t, r), o)
			won, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
			if err != nil || won.Outcome != elector.Won {
				t.Fatalf("acquire: %+v, %v", won, err)
			}
			renew := func() {
				t.Helper()
				if _, err := a.Renew(t.Context(), "o1", won.Epoch); err != nil {
					t.Fatal(err)
				}
			}
			replid := func() string {
				t.Helper()
				info, err := redis.String(r.Conn().Do("INFO", "replication"))
				if err != nil {
					t.Fatal(err)
				}
				return regexp.MustCompile(`master_replid:\w+`).FindString(info)
			}
			before := replid()
			replica := testsupport.StartRedis(t, testsupport.RedisReplicaOf(r))
			attached := replid()
			renew()
			r.Client(t).Do("CONFIG", "SET", "repl-backlog-ttl", "1")
			replica.Client(t).Do("REPLICAOF", "NO", "ONE")
			testsupport.Await(t, "the backlog to be freed", func() bool { return replid() != attached })
			if before == attached {
				t.Error("this Redis keeps its replid when a replica comes: the test shows nothing")
			}
			renew()
			if err := a.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
				t.Fatal(err)
			}
			next, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2", Floor: won.Epoch})
			if err != nil || next.Outcome != elector.Won || next.Epoch != won.Epoch+1 {
				t.Errorf("after the release: %+v, %v; want it won at once, with epoch %d", next, err, won.Epoch+1)
			}
		})
	}
}

// A restart without a loss of data must end no term, because the leader confirms its lock.
func TestARestartThatKeepsTheLockCostsNoTerm(t *testing.T) {
	t.Parallel()
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
			_, _ = b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}) // the connection of b has ended, so this attempt may fail
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

// baton must write nothing for the lock of a foreign client, and must not change that lock.
func TestAForeignLockIsLeftAlone(t *testing.T) {
	t.Parallel()
	for design, o := range designs {
		t.Run(design, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			conn := r.Conn()
			take := func() {
				t.Helper()
				args := []any{"baton", "somebody", "PX", 60_000}
				name := "SET"
				if o.Format == script.Redisson {
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
