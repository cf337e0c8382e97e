package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

func secret(pw string) func() (string, error) { return func() (string, error) { return pw, nil } }

func sentinelOptions(s *testsupport.Sentinel) redisconn.Options {
	return redisconn.Options{
		Sentinel: &redisconn.SentinelOptions{Master: s.Name(), Addresses: s.Addresses(), Password: secret("watchman")},
		Password: secret("treasure"), Database: 3, Timeout: 2 * time.Second,
	}
}

// Each dial asks the Sentinels for the master, and any Sentinel may answer. The replica that takes over has the lock, so the term
// continues.
func TestALeaderOutlivesTheFailoverBySentinel(t *testing.T) {
	t.Parallel()
	sentinel := testsupport.StartSentinel(t, testsupport.RedisPassword("treasure"), testsupport.SentinelPassword("watchman"))
	s := openWith(t, sentinelOptions(sentinel))
	o := redislock.LockOptions{Key: "baton", NodeID: "a", TTL: 15 * time.Second}
	a := campaign(t, s, o)
	term := a.term(t)
	idle(t, s, 3)
	testsupport.AwaitNoError(t, "the node watches", func() error { return a.heard(0) })
	hints := a.hints.Load()

	first := sentinel.Master()
	first.Kill()
	second := sentinel.AwaitMaster(first)
	testsupport.AwaitNoError(t, "the lease is renewed at the new master", func() error { return fresh(second, o) })
	a.stillLeads(t, term, "after the master was killed")
	testsupport.AwaitNoError(t, "the node watches again", func() error { return a.heard(hints) })
	testsupport.AwaitNoError(t, "all Sentinels to name the new master", func() error { return named(sentinel, second) })
	if _, err := redisDo(t, s, "SET", "x", "1"); err != nil {
		t.Errorf("the cut idle connections are still used: %v", err)
	}

	// Now the master hangs, and so does the Sentinel that is asked first.
	first.Restart()
	sentinel.AwaitReplica(first)
	idle(t, s, 3)
	sentinel.Sentinels()[0].Freeze()
	defer sentinel.Sentinels()[0].Thaw()
	second.Freeze()
	third := sentinel.AwaitMaster(second)
	testsupport.AwaitNoError(t, "the lease is renewed at the third master", func() error { return fresh(third, o) })
	a.stillLeads(t, term, "after the master hung")
	asked := &dialled{}
	watched := sentinelOptions(sentinel)
	watched.Dial, watched.Timeout = asked.dial, time.Minute
	again := openWith(t, watched)
	if _, err := redisDo(t, again, "SET", "x", "2"); err != nil {
		t.Errorf("with a hanging sentinel: %v", err)
	}
	hanging := sentinel.Sentinels()[0].Addr()
	if first := asked.first(); first != hanging {
		t.Errorf("the first dial asked %s first, not the hanging %s", first, hanging)
	}
	c, err := again.Dial(t.Context(), "x")
	if err != nil {
		t.Errorf("the next dial: %v", err)
	} else {
		_ = c.Close()
	}
	if first := asked.first(); first == hanging {
		t.Error("the next dial asked the hanging sentinel first, not the one that answered last")
	}
	second.Thaw() // this server is a master for a moment, until the Sentinels make it a replica
	sentinel.AwaitReplica(second)
	a.stillLeads(t, term, "after the old master came back")
}

// dialled records the addresses that a store dials.
type dialled struct {
	mu  sync.Mutex
	all []string
}

func (d *dialled) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.all = append(d.all, address)
	d.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// first returns the first address since the last call, or "".
func (d *dialled) first() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.all
	d.all = nil
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// named returns nil if each Sentinel names this master, because one Sentinel may learn of a failover later than the others.
func named(s *testsupport.Sentinel, master *testsupport.Redis) error {
	for _, r := range s.Sentinels() {
		at, err := redis.Strings(r.Conn().Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name()))
		if err == nil && net.JoinHostPort(at[0], at[1]) != master.Addr() {
			err = fmt.Errorf("%s names %q", r.Addr(), at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// heard returns nil if the candidate has received more hints than the given number.
func (c *candidate) heard(after int64) error {
	if c.hints.Load() <= after {
		return errors.New("no hint since")
	}
	return nil
}

// fresh returns nil if the lease was renewed on r a moment ago.
func fresh(r *testsupport.Redis, o redislock.LockOptions) error {
	c, err := redis.Dial("tcp", r.Addr(), redis.DialPassword("treasure"), redis.DialDatabase(3), redis.DialReadTimeout(time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	left, err := redis.Int64(c.Do("PTTL", o.Key))
	if err == nil && left < o.TTL.Milliseconds()*3/4 {
		err = errors.New("the lease is old")
	}
	return err
}

func TestASentinelThatCannotHelpIsExplained(t *testing.T) {
	t.Parallel()
	sentinel := testsupport.StartSentinel(t, testsupport.RedisPassword("treasure"), testsupport.SentinelPassword("watchman"))
	replica := sentinel.Replicas()[0]
	// A Sentinel with an outdated view names a replica as the master.
	must(t, sentinel.Sentinels()[0], "SENTINEL", "MONITOR", "behind", "127.0.0.1", port(replica), 3)
	for name, c := range map[string]struct {
		change  func(*redisconn.Options)
		refused bool
		want    []string
	}{
		"unknown master": {func(o *redisconn.Options) { o.Sentinel.Master = "nobody" }, false,
			[]string{"know no master called \"nobody\"", "redis.sentinel.master", sentinel.Addresses()[2]}},
		"no sentinel there": {func(o *redisconn.Options) { o.Sentinel.Addresses = []string{"127.0.0.1:1", "127.0.0.1:2"} }, false,
			[]string{"no sentinel answers", "127.0.0.1:1", "127.0.0.1:2", "connection refused"}},
		"the wrong password": {func(o *redisconn.Options) { o.Sentinel.Password = secret("wrong") }, false,
			[]string{"redis.sentinel.username", "WRONGPASS"}},
		"no password": {func(o *redisconn.Options) { o.Sentinel.Password = nil }, false,
			[]string{"redis.sentinel.username", "NOAUTH"}},
		"redis' password": {func(o *redisconn.Options) { o.Password = secret("wrong") }, true,
			[]string{"check redis.username and redis.password_file", "WRONGPASS", "as sentinel"}},
		"a replica for a master": {func(o *redisconn.Options) {
			o.Sentinel.Master, o.Sentinel.Addresses = "behind", sentinel.Addresses()[:1]
		}, true, []string{replica.Addr(), `says "slave"`, "failover"}},
	} {
		o := sentinelOptions(sentinel)
		o.Sentinel = &redisconn.SentinelOptions{Master: o.Sentinel.Master, Addresses: o.Sentinel.Addresses, Password: o.Sentinel.Password}
		c.change(&o)
		lock := newLock(t, openWith(t, o), "baton", "b", time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, err := lock.Acquire(ctx, elector.Candidate{Owner: "o1"})
		cancel()
		if err == nil || errors.Is(err, elector.ErrRefused) != c.refused && c.refused {
			t.Errorf("%s: %v; want it refused", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q in it", name, err, want)
			}
		}
		if strings.Contains(err.Error(), "treasure") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q", name, err)
		}
	}
}

// If an operator demotes a master, the server closes no connection. A caller must not read old data over an idle connection to this
// server.
func TestAnIdleConnectionToADemotedMasterIsNotUsed(t *testing.T) {
	t.Parallel()
	sentinel := testsupport.StartSentinel(t, testsupport.RedisPassword("treasure"), testsupport.SentinelPassword("watchman"))
	s := openWith(t, sentinelOptions(sentinel))
	master := sentinel.Master()
	replica := sentinel.Replicas()[0]
	idle(t, s, 1)
	for _, r := range sentinel.Sentinels() {
		r.Freeze()
		t.Cleanup(r.Thaw)
	}
	must(t, master, "REPLICAOF", "127.0.0.1", port(replica))
	time.Sleep(1100 * time.Millisecond)
	if _, err := redisDo(t, s, "GET", "x"); err == nil {
		t.Error("a replica was read")
	}
}
