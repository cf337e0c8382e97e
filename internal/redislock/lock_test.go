package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/redislock/lua"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
	"baton/internal/testsupport/locktest"
)

// open returns a store for a private Redis. Its time limit for commands is long enough for a busy machine.
func open(t *testing.T, r *testsupport.Redis) *redisconn.Store {
	t.Helper()
	return redistest.Open(t, redisconn.Options{URL: r.URL(), ClientName: "baton-test", Timeout: time.Minute})
}

func newLock(t *testing.T, s *redisconn.Store, key, node string, ttl time.Duration) *redislock.Lock {
	t.Helper()
	return designedLock(t, s, redislock.LockOptions{Key: key, NodeID: node, TTL: ttl, NodeInfo: redislock.NodeInfo{Version: "test",
		Address: "127.0.0.1:1"}})
}

func designedLock(t *testing.T, s *redisconn.Store, o redislock.LockOptions) *redislock.Lock {
	t.Helper()
	l, err := redislock.NewLock(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Leave(context.Background()) })
	return l
}

// designs contains the options of each kind of lock in one Redis.
var designs = map[string]redislock.LockOptions{
	"scripts":         {},
	"without scripts": {Interpreter: lua.Compile},
	"redisson":        {Format: script.Redisson},
}

func TestRedisLockConforms(t *testing.T) {
	t.Parallel()
	for name, design := range designs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			locktest.RunLive(t, func(t *testing.T, ttl time.Duration) locktest.Harness {
				s := open(t, r)
				o := design
				o.Key, o.TTL = fmt.Sprint("lock:", t.Name(), ttl), ttl
				node := func(id string) *redislock.Lock {
					o.NodeID = id
					return designedLock(t, s, o)
				}
				return locktest.Harness{
					TTL: ttl, A: node("a"), B: node("b"), C: node("c"), Sleep: time.Sleep,
					Flush: func() {
						r.Client(t).Do("FLUSHALL")
					},
					StepDown: func(to, reason string) error {
						_, _, err := redislock.NewElection(s, o.Key, o.Format).StepDown(t.Context(), to, reason)
						return err
					},
				}
			})
		})
	}
}

// An epoch that a user has written into Redis or into a database must not stop the epochs from rising. A node that cannot read its own
// epoch must also not hold the lock.
func TestAnEpochThatCannotRiseIsRefusedBeforeAnythingIsTaken(t *testing.T) {
	const tooHigh = 1<<53 - 1
	r := testsupport.StartRedis(t)
	lock, conn := newLock(t, open(t, r), "baton", "a", 5*time.Second), r.Conn()
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, elector.ErrEpoch) || !errors.Is(err, elector.ErrRefused) || !strings.Contains(err.Error(), "baton fence reset") {
			t.Errorf("%s: %v; want a refusal that says what to do", what, err)
		}
	}
	for _, epoch := range []string{"abc", "", "-5", "nan", "inf", "9007199254740991", "9223372036854775807"} {
		if _, err := conn.Do("HSET", "{baton}:term", "epoch", epoch); err != nil {
			t.Fatal(err)
		}
		_, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
		refused("acquire after epoch "+epoch, err)
		if owner, err := redis.String(conn.Do("GET", "baton")); !errors.Is(err, redis.ErrNil) {
			t.Fatalf("after epoch %q: %q holds the lock, %v", epoch, owner, err)
		}
	}
	if _, err := conn.Do("DEL", "{baton}:term"); err != nil {
		t.Fatal(err)
	}
	_, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1", Floor: tooHigh})
	refused("acquire above a floor", err)
	won, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
	if err != nil || won.Outcome != elector.Won {
		t.Fatalf("acquire: %+v, %v", won, err)
	}
	for _, floor := range []int64{won.Epoch + 31*24*time.Hour.Milliseconds(), tooHigh, math.MaxInt64} {
		_, err = lock.Raise(t.Context(), "o1", floor)
		refused("raise", err)
	}
	if again, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"}); err != nil || again.Epoch != won.Epoch {
		t.Errorf("after a refused raise: %+v, %v; want epoch %d", again, err, won.Epoch)
	}
	floor := won.Epoch + 29*24*time.Hour.Milliseconds()
	if raised, err := lock.Raise(t.Context(), "o1", floor); err != nil || raised != floor+1 {
		t.Errorf("the highest epoch: %d, %v", raised, err)
	}
}

// Epochs follow a clock. An epoch that is a month ahead of the clock was written by a user, or the clock is wrong. No term may continue
// from such an epoch, and the leader corrects it.
func TestAnEpochFarAheadOfTheClockIsNotCountedOnFrom(t *testing.T) {
	t.Parallel()
	for name, design := range designs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testsupport.StartRedis(t)
			s, conn := open(t, r), r.Conn()
			design.Key, design.TTL = "baton", 10*time.Second
			node := func(id string) *redislock.Lock {
				design.NodeID = id
				return designedLock(t, s, design)
			}
			a, b := node("a"), node("b")
			far := time.Now().Add(31 * 24 * time.Hour).UnixMilli()
			write := func(fields ...any) {
				t.Helper()
				if _, err := conn.Do("HSET", append([]any{"{baton}:term"}, fields...)...); err != nil {
					t.Fatal(err)
				}
			}
			picture := func() redislock.ElectionState {
				t.Helper()
				p, err := redislock.NewElection(s, "baton", design.Format).State(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			epoch := acquire(t, a, "o1", 0).Epoch
			write("epoch", far)
			if !picture().Forged {
				t.Error("nobody is told")
			}
			if got := acquire(t, b, "o2", 0); got.Outcome != elector.Held || got.Epoch != 0 {
				t.Errorf("a standby is told of %+v; want of no epoch", got)
			}
			if _, err := a.Acquire(t.Context(), elector.Candidate{Owner: "o1"}); !errors.Is(err, elector.ErrEpoch) {
				t.Errorf("the owner asks again: %v, want ErrEpoch", err)
			}
			if _, err := a.Raise(t.Context(), "o1", epoch+1); !errors.Is(err, elector.ErrEpoch) {
				t.Errorf("raise: %v, want ErrEpoch", err)
			}
			if _, err := a.Renew(t.Context(), "o1", epoch); err != nil {
				t.Fatal(err)
			}
			if p := picture(); p.Epoch != epoch || p.Forged {
				t.Errorf("after a renewal: %+v, want epoch %d", p, epoch)
			}
			if err := a.Release(t.Context(), "o1", elector.Handover{Event: "stepped_down"}); err != nil {
				t.Fatal(err)
			}
			for _, fields := range [][]any{{"epoch", far}, {"epoch", epoch, "floor", far}} {
				write(fields...)
				if _, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); !errors.Is(err, elector.ErrEpoch) {
					t.Errorf("after %v: %v, want ErrEpoch", fields, err)
				}
			}
			// If a node also knows a similar epoch, Redis' clock is wrong.
			if got := acquire(t, b, "o2", far-1); got.Outcome != elector.Won || got.Epoch != far+1 {
				t.Errorf("a node that knows of such epochs: %+v, want epoch %d", got, far+1)
			}
		})
	}
}

// The hash of the term may be evicted or deleted while the lock exists. The owner must continue, and its successor must get a higher
// epoch.
func TestAnElectionSurvivesTheLossOfItsTermHash(t *testing.T) {
	r := testsupport.StartRedis(t)
	s, conn := open(t, r), r.Conn()
	a, b := newLock(t, s, "baton", "a", 5*time.Second), newLock(t, s, "baton", "b", 5*time.Second)
	epoch := func(l *redislock.Lock, owner string) int64 {
		t.Helper()
		won, err := l.Acquire(t.Context(), elector.Candidate{Owner: owner})
		if err != nil || won.Outcome != elector.Won {
			t.Fatalf("acquire by %s: %+v, %v", owner, won, err)
		}
		time.Sleep(2 * time.Millisecond) // an empty store begins with its clock, in milliseconds
		return won.Epoch
	}
	lose := func() {
		t.Helper()
		if _, err := conn.Do("DEL", "{baton}:term"); err != nil {
			t.Fatal(err)
		}
	}
	first := epoch(a, "o1")
	lose()
	if order, err := a.Renew(t.Context(), "o1", first); err != nil || order.StepDown {
		t.Errorf("renew: %+v, %v", order, err)
	}
	if held, err := b.Acquire(t.Context(), elector.Candidate{Owner: "o2"}); err != nil || held.Outcome != elector.Held {
		t.Errorf("acquire by another: %+v, %v", held, err)
	}
	again := epoch(a, "o1")
	lose()
	if err := a.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
		t.Error(err)
	}
	if next := epoch(b, "o2"); again < first || next <= again {
		t.Errorf("epochs %d, %d, %d; want them not to fall, and the successor's to rise", first, again, next)
	}
}

// The run_id identifies an incarnation of Redis.
func TestATermNotesWhichRedisItBeganIn(t *testing.T) {
	r := testsupport.StartRedis(t)
	conn := r.Conn()
	if _, err := newLock(t, open(t, r), "baton", "a", time.Second).Acquire(t.Context(), elector.Candidate{Owner: "o1"}); err != nil {
		t.Fatal(err)
	}
	id, err := redis.String(conn.Do("HGET", "{baton}:term", "run_id"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := redis.String(conn.Do("INFO", "server")); err != nil || len(id) != 40 || !strings.Contains(info, "run_id:"+id+"\r\n") {
		t.Errorf("run_id %q is not the server's, %v", id, err)
	}
}

func TestAnOrderToAnotherOwnerIsNotOurs(t *testing.T) {
	r := testsupport.StartRedis(t)
	lock := newLock(t, open(t, r), "baton", "a", 5*time.Second)
	if _, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"}); err != nil {
		t.Fatal(err)
	}
	r.Client(t).Do("HSET", "{baton}:control", "stepdown_owner", "o0")
	if order, err := lock.Renew(t.Context(), "o1", 1); err != nil || order.StepDown {
		t.Errorf("renew: %+v, %v", order, err)
	}
}
