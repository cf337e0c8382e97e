package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// The test brings a real server into each state in which it refuses requests. The request is not executed, its connection and the idle
// connections are not used again, and everything continues by itself when the state ends.
func TestARefusalIsNotAppliedAndDropsTheConnections(t *testing.T) {
	t.Parallel()
	for code, begin := range map[string]func(t *testing.T) (r *testsupport.Redis, trouble, end func()){
		"READONLY": func(t *testing.T) (*testsupport.Redis, func(), func()) {
			master := testsupport.StartRedis(t)
			r := testsupport.StartRedis(t)
			return r, func() { must(t, r, "REPLICAOF", "127.0.0.1", port(master)) }, func() { must(t, r, "REPLICAOF", "NO", "ONE") }
		},
		"LOADING": func(t *testing.T) (*testsupport.Redis, func(), func()) {
			r := testsupport.StartRedis(t)
			return r, func() { r.RestartLoading(2 * time.Second) }, r.AwaitLoaded
		},
		"MASTERDOWN": func(t *testing.T) (*testsupport.Redis, func(), func()) {
			master := testsupport.StartRedis(t)
			r := testsupport.StartRedis(t, testsupport.RedisHidesStaleData())
			return r, func() {
					must(t, r, "REPLICAOF", "127.0.0.1", port(master))
					master.Kill()
					testsupport.AwaitNoError(t, "the replica misses its master", func() error {
						_, err := r.Conn().Do("GET", "x")
						if err == nil || !strings.HasPrefix(err.Error(), "MASTERDOWN") {
							return errors.New("GET is answered")
						}
						return nil
					})
				}, func() {
					must(t, r, "REPLICAOF", "NO", "ONE")
				}
		},
		"NOREPLICAS": func(t *testing.T) (*testsupport.Redis, func(), func()) {
			r := testsupport.StartRedis(t)
			return r, func() { must(t, r, "CONFIG", "SET", "min-replicas-to-write", 1) },
				func() { must(t, r, "CONFIG", "SET", "min-replicas-to-write", 0) }
		},
		"MISCONF": func(t *testing.T) (*testsupport.Redis, func(), func()) {
			r := testsupport.StartRedis(t)
			return r, r.FailSaves, r.HealSaves
		},
		"CLUSTERDOWN": func(t *testing.T) (*testsupport.Redis, func(), func()) {
			r := testsupport.StartRedis(t, testsupport.RedisClusterNode())
			serve := func() {
				must(t, r, "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
				awaitClusterState(t, r, "ok")
			}
			serve()
			return r, func() {
				must(t, r, "CLUSTER", "DELSLOTSRANGE", 0, 16383)
				awaitClusterState(t, r, "fail")
			}, serve
		},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			r, trouble, end := begin(t)
			s := open(t, r)
			before := idle(t, s, 3)
			lock := newLock(t, s, "baton", "a", 10*time.Second)

			trouble()
			for range 2 { // the first request uses an earlier connection, if the server still runs
				_, err := acquireOnce(t, lock, "o1")
				if !errors.Is(err, elector.ErrRefused) || !strings.Contains(err.Error(), code) {
					t.Fatalf("acquire in the state of %s: %v; want it refused", code, err)
				}
			}
			if _, err := redisDo(t, s, "SET", "other", "x"); err == nil {
				t.Errorf("write in the state of %s: done; want it refused", code)
			}
			for id := range idle(t, s, 3) {
				if code != "LOADING" && before[id] { // a restarted server numbers its connections from 1 again
					t.Errorf("connection %d of before is still used", id)
				}
			}
			end()
			if a, err := acquireOnce(t, lock, "o1"); err != nil || a.Outcome != elector.Won {
				t.Errorf("acquire afterwards: %+v, %v", a, err)
			}
			if _, err := redisDo(t, s, "SET", "other", "x"); err != nil {
				t.Errorf("write afterwards: %v", err)
			}
		})
	}
}

// A connection that was cut causes one failure, and not a failure for each idle connection.
func TestOneCutConnectionIsTheLastToFail(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	p := r.Proxy()
	s := openWith(t, redisconn.Options{URL: r.URLThrough(p)})
	idle(t, s, 4)
	p.Cut()
	var failed int
	for range 4 {
		if _, err := redisDo(t, s, "SET", "x", "1"); err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d of 4 commands failed, want the first alone", failed)
	}
}

// A restarted server does not know the scripts. (Trust in the lease then counts from the first request, before the answer NOSCRIPT, which
// is earlier than necessary.)
func TestForgottenScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	lock := newLock(t, open(t, r), "baton", "a", 10*time.Second)
	a, err := acquireOnce(t, lock, "o1")
	if err != nil {
		t.Fatal(err)
	}
	must(t, r, "SCRIPT", "FLUSH")
	if _, err := lock.Renew(t.Context(), "o1", a.Epoch); err != nil {
		t.Errorf("renew: %v", err)
	}
}

func must(t *testing.T, r *testsupport.Redis, name string, args ...any) {
	t.Helper()
	if _, err := r.Conn().Do(name, args...); err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
}

func acquireOnce(t *testing.T, lock elector.Lock, owner string) (elector.Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return lock.Acquire(ctx, elector.Candidate{Owner: owner})
}

// redisDo runs a command on a pooled connection to the server of its first argument.
func redisDo(t *testing.T, s *redisconn.Store, name string, args ...any) (any, error) {
	t.Helper()
	key, _ := args[0].(string)
	c, err := s.Conn(t.Context(), key)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return redis.DoContext(c, t.Context(), name, args...)
}

// idle uses n pooled connections at once, gives them back, and returns their ids.
func idle(t *testing.T, s *redisconn.Store, n int) map[int64]bool {
	t.Helper()
	ids := map[int64]bool{}
	var conns []redis.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range n {
		c, err := s.Conn(t.Context(), "baton")
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		id, err := redis.Int64(c.Do("CLIENT", "ID"))
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = true
	}
	return ids
}

func awaitClusterState(t *testing.T, r *testsupport.Redis, want string) {
	t.Helper()
	testsupport.AwaitNoError(t, "the node's state is "+want, func() error {
		info, err := redis.String(r.Conn().Do("CLUSTER", "INFO"))
		if err == nil && !strings.Contains(info, "cluster_state:"+want) {
			err = errors.New(info)
		}
		return err
	})
}

func port(r *testsupport.Redis) string {
	_, p, _ := strings.Cut(r.Addr(), ":")
	return p
}

func openWith(t *testing.T, o redisconn.Options) *redisconn.Store {
	t.Helper()
	if o.ClientName == "" {
		o.ClientName = "baton-test"
	}
	return redistest.Open(t, o)
}
