package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// rlock acts like a Java service. It implements the protocol of Redisson's RLock from Redisson's documentation, independent of baton's
// code. A hash has one field, uuid:threadId, with the hold count. Each further lock by the same thread increases the count. The last
// unlock deletes the hash and publishes 0.
type rlock struct {
	conn redis.Conn
	name string
	id   string // uuid:threadId
	ttl  time.Duration
}

var (
	rlockTry = redis.NewScript(1, `
		local free = redis.call('EXISTS', KEYS[1]) == 0
		if free or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
			redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
			redis.call('PEXPIRE', KEYS[1], ARGV[2])
			return -3
		end
		return redis.call('PTTL', KEYS[1])`)
	rlockUnlock = redis.NewScript(2, `
		if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
			return -1
		end
		local holds = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
		if holds > 0 then
			redis.call('PEXPIRE', KEYS[1], ARGV[2])
			return holds
		end
		redis.call('DEL', KEYS[1])
		redis.call('PUBLISH', KEYS[2], '0')
		return 0`)
)

func newRLock(r *testsupport.Redis, name string, thread int, ttl time.Duration) *rlock {
	return &rlock{conn: r.Conn(), name: name, id: fmt.Sprintf("b983c153-7421-469a-addb-44fb92259a1b:%d", thread), ttl: ttl}
}

func (l *rlock) tryLock() (bool, error) {
	left, err := redis.Int(rlockTry.Do(l.conn, l.name, l.id, l.ttl.Milliseconds()))
	return left == -3, err
}

func (l *rlock) unlock() (int, error) {
	return redis.Int(rlockUnlock.Do(l.conn, l.name, "redisson_lock__channel:{"+l.name+"}", l.id, l.ttl.Milliseconds()))
}

func TestAnRLockAndATermExcludeEachOther(t *testing.T) {
	r := testsupport.StartRedis(t)
	const ttl = 5 * time.Second
	java := newRLock(r, "baton", 1, ttl) // with the same thread number that baton uses
	lock := designedLock(t, open(t, r), redislock.LockOptions{Key: "baton", NodeID: "a", TTL: ttl, Format: script.Redisson})
	tries := func(want bool) {
		t.Helper()
		if got, err := java.tryLock(); err != nil || got != want {
			t.Fatalf("tryLock: %v, %v; want %v", got, err, want)
		}
	}
	unlocks := func(want int) {
		t.Helper()
		if got, err := java.unlock(); err != nil || got != want {
			t.Fatalf("unlock: %v, %v; want %v", got, err, want)
		}
	}
	asks := func(want elector.Outcome) elector.Answer {
		t.Helper()
		a, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"})
		if err != nil || a.Outcome != want {
			t.Fatalf("acquire: %+v, %v; want outcome %v", a, err, want)
		}
		return a
	}

	tries(true)
	tries(true) // the lock is reentrant
	asks(elector.Held)
	unlocks(1)
	asks(elector.Held) // the lock is still held once
	unlocks(0)
	first := asks(elector.Won)
	tries(false)
	asks(elector.Won) // a repetition after a lost reply does not increase the hold count
	if _, err := lock.Renew(t.Context(), "o1", first.Epoch); err != nil {
		t.Fatal(err)
	}
	unlocks(-1) // the lock does not belong to this thread
	if err := lock.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
	tries(true)
	if _, err := lock.Renew(t.Context(), "o1", first.Epoch); !errors.Is(err, elector.ErrLost) {
		t.Errorf("renew while Java holds it: %v, want ErrLost", err)
	}
	if err := lock.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
	asks(elector.Held)
}

// A waiting RLock sleeps until it receives 0 on the channel.
func TestAReleaseWakesWaitingRLocks(t *testing.T) {
	for key, channel := range map[string]string{"baton": "redisson_lock__channel:{baton}",
		"{shop}:lock": "redisson_lock__channel:{shop}:lock"} {
		r := testsupport.StartRedis(t)
		sub := redis.PubSubConn{Conn: r.Conn()}
		if err := sub.Subscribe(channel); err != nil {
			t.Fatal(err)
		}
		if _, ok := sub.ReceiveWithTimeout(5 * time.Second).(redis.Subscription); !ok {
			t.Fatal("not subscribed")
		}
		lock := designedLock(t, open(t, r), redislock.LockOptions{Key: key, NodeID: "a", TTL: 5 * time.Second, Format: script.Redisson})
		if _, err := lock.Acquire(t.Context(), elector.Candidate{Owner: "o1"}); err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context(), "o1", elector.Handover{Event: "released"}); err != nil {
			t.Fatal(err)
		}
		if m, ok := sub.ReceiveWithTimeout(5 * time.Second).(redis.Message); !ok || string(m.Data) != "0" {
			t.Errorf("%s: got %v, want the message 0", channel, m)
		}
	}
}

// An unlock by Java must wake a standby of baton, and one subscription must serve many locks.
func TestAnUnlockWakesStandbys(t *testing.T) {
	r := testsupport.StartRedis(t)
	s := open(t, r)
	heard := [3]chan elector.Hint{make(chan elector.Hint, 8), make(chan elector.Hint, 8), make(chan elector.Hint, 8)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		redislock.WatchAll(ctx, s, redislock.Watched{LockKey: "java", Format: script.Redisson, Hints: heard[0]},
			redislock.Watched{LockKey: "plain", Hints: heard[1]}, redislock.Watched{LockKey: "{tag}:java", Format: script.Redisson,
				Hints: heard[2]})
	}()
	defer func() { cancel(); <-done }()
	next := func(i int, want elector.Hint) {
		t.Helper()
		select {
		case h := <-heard[i]:
			if h != want {
				t.Fatalf("lock %d: hint %v, want %v", i, h, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("lock %d: nothing was heard", i)
		}
	}
	for i, n := range []int{2, 1, 2} { // one hint for each channel of the lock
		for range n {
			next(i, elector.HintSubscribed)
		}
	}
	java := newRLock(r, "java", 7, time.Minute)
	if got, err := java.tryLock(); err != nil || !got {
		t.Fatalf("tryLock: %v, %v", got, err)
	}
	if n, err := java.unlock(); err != nil || n != 0 {
		t.Fatalf("unlock: %d, %v", n, err)
	}
	next(0, elector.HintReleased)
	for i, channel := range map[int]string{1: "{plain}:wake", 2: "redisson_lock__channel:{tag}:java"} {
		r.Client(t).Do("PUBLISH", channel, map[int]string{1: "control", 2: "0"}[i])
		next(i, map[int]elector.Hint{1: elector.HintControl, 2: elector.HintReleased}[i])
	}
	if len(heard[0])+len(heard[1])+len(heard[2]) > 0 {
		t.Error("a hint of one lock reached another")
	}
}

// Three Java threads and three nodes contend for the lock, and only one of them may hold it at a time.
func TestRLocksAndTermsNeverHoldAtOnce(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	const ttl = 5 * time.Second
	var inside, java, terms atomic.Int64
	const enough = 30 // how often each of them must hold the lock
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	going := func() bool { return ctx.Err() == nil && (java.Load() < enough || terms.Load() < enough) }
	alone := func(who string) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%s is in with %d others", who, n-1)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
		inside.Add(-1)
	}
	var wg sync.WaitGroup
	for i := range 3 {
		l := newRLock(r, "baton", i+1, ttl)
		wg.Go(func() {
			for going() {
				got, err := l.tryLock()
				if err != nil {
					t.Error(err)
					return
				}
				if got {
					alone("an RLock")
					java.Add(1)
					if n, err := l.unlock(); err != nil || n != 0 {
						t.Errorf("unlock: %d, %v", n, err)
					}
				}
				time.Sleep(time.Millisecond)
			}
		})
		lock := designedLock(t, open(t, r), redislock.LockOptions{Key: "baton", NodeID: fmt.Sprint("n", i), TTL: ttl,
			Format: script.Redisson})
		wg.Go(func() {
			for n := 0; going(); n++ {
				owner := fmt.Sprintf("owner-%d-%d", i, n)
				a, err := lock.Acquire(t.Context(), elector.Candidate{Owner: owner})
				if err != nil {
					t.Error(err)
					return
				}
				if a.Outcome == elector.Won {
					alone("a term")
					terms.Add(1)
					if err := lock.Release(t.Context(), owner, elector.Handover{Event: "released"}); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	wg.Wait()
	if java.Load() < enough || terms.Load() < enough {
		t.Errorf("%d times an RLock, %d terms: too few to show anything", java.Load(), terms.Load())
	}
}
