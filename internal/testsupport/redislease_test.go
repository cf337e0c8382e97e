package testsupport

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// newLeases returns leases for this test alone.
func newLeases(t *testing.T) *redisLeases {
	l := &redisLeases{servers: map[string][]*RedisDaemon{}}
	t.Cleanup(func() {
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// tenant is a test that has leased a server until it calls end.
type tenant struct {
	*RedisDaemon
	t   *testing.T
	c   redis.Conn
	end func()
}

func (l *redisLeases) tenant(t *testing.T, opts ...RedisOption) tenant {
	t.Helper()
	r, end, err := l.lease(opts)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return tenant{RedisDaemon: r, t: t, c: c, end: func() {
		t.Helper()
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}}
}

func (r tenant) must(command string, args ...any) any {
	r.t.Helper()
	reply, err := r.c.Do(command, args...)
	if err != nil {
		r.t.Fatalf("%s %v: %v", command, args, err)
	}
	return reply
}

func TestARedisThatWasLeftAsItWasServesTheNextTestEmpty(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	first := l.tenant(t, RedisPassword("secret"), RedisClock())
	pid, addr := first.Pid(), first.Addr()
	settings, err := redis.StringMap(first.must("CONFIG", "GET", "*"), nil)
	if err != nil {
		t.Fatal(err)
	}
	first.must("SET", "a", 1)
	first.must("SELECT", 3)
	first.must("SET", "b", 1)
	script, err := redis.String(first.must("SCRIPT", "LOAD", "return 1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	first.must("ACL", "SETUSER", "app", "on", "nopass", "+@all")
	first.must("CONFIG", "SET", "maxmemory", "1mb", "slowlog-log-slower-than", 0)
	first.must("SUBSCRIBE", "c")
	if err := first.StepClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	first.end()

	next := l.tenant(t, RedisPassword("secret"), RedisClock())
	if next.Pid() != pid || next.Addr() == addr {
		t.Fatalf("process %d at %s, then process %d at %s; want the same one elsewhere", pid, addr, next.Pid(), next.Addr())
	}
	if _, err := redis.Dial("tcp", addr); err == nil {
		t.Error("somebody answers where the first test had it")
	}
	if reply, err := redis.ReceiveWithTimeout(first.c, 5*time.Second); err == nil {
		t.Errorf("a connection of the first test receives %v", reply)
	}
	if keyspace, _ := redis.String(next.must("INFO", "keyspace"), nil); strings.Contains(keyspace, "db") {
		t.Errorf("it has keys: %s", keyspace)
	}
	if there, _ := redis.Ints(next.must("SCRIPT", "EXISTS", script), nil); !slices.Equal(there, []int{0}) {
		t.Error("it knows the first test's script")
	}
	if users, _ := redis.Strings(next.must("ACL", "USERS"), nil); !slices.Equal(users, []string{"default"}) {
		t.Errorf("its users are %q", users)
	}
	now, _ := redis.StringMap(next.must("CONFIG", "GET", "*"), nil)
	if now["port"] = settings["port"]; !maps.Equal(now, settings) {
		t.Error("its settings are the first test's")
	}
	if n, _ := redis.Int(next.must("SLOWLOG", "LEN"), nil); n != 0 {
		t.Errorf("its log of slow commands has %d entries", n)
	}
	clock, err := redis.Int64s(next.must("TIME"), nil)
	if err != nil || time.Since(time.Unix(clock[0], 0)).Abs() > time.Minute {
		t.Errorf("its clock says %v, %v", clock, err)
	}
}

func TestAMarkedRedisServesNobodyElse(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	for what, mark := range map[string]func(tenant){
		"killed": func(r tenant) {
			if err := r.Kill(); err != nil {
				t.Fatal(err)
			}
		},
		"restarted": func(r tenant) {
			if err := r.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		"frozen": func(r tenant) {
			if err := r.Freeze(); err != nil {
				t.Fatal(err)
			}
		},
		"a replica":           func(r tenant) { r.must("REPLICAOF", "127.0.0.1", 1); r.must("REPLICAOF", "NO", "ONE") },
		"saved":               func(r tenant) { r.must("SAVE") },
		"appending to a file": func(r tenant) { r.must("CONFIG", "SET", "appendonly", "yes") },
		"with a function": func(r tenant) {
			r.must("FUNCTION", "LOAD", "#!lua name=f\nredis.register_function('f', function() end)")
		},
		"without its statistics":    func(r tenant) { r.must("SAVE"); r.must("CONFIG", "RESETSTAT") },
		"with a narrower default":   func(r tenant) { r.must("ACL", "SETUSER", "default", "-get") },
		"with an unknown password":  func(r tenant) { r.must("CONFIG", "SET", "requirepass", "x") },
		"marked by a script of its": func(r tenant) { r.must("EVAL", "redis.call('SWAPDB', 0, 1)", 0) },
	} {
		r := l.tenant(t)
		mark(r)
		r.end()
		if n := len(l.servers); n > 0 {
			for kind, idle := range l.servers {
				if len(idle) > 0 {
					t.Errorf("a Redis that was %s waits for the next test: %s", what, kind)
					l.take(kind)
				}
			}
		}
		if !r.proc.Exited() {
			t.Errorf("a Redis that was %s still runs", what)
		}
	}
	master := l.tenant(t)
	replica, err := RunRedis("", RedisReplicaOf(master.RedisDaemon))
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.Stop(); err != nil {
		t.Fatal(err)
	}
	master.end()
	if !master.proc.Exited() {
		t.Error("a Redis that had a replica still runs")
	}
	special := l.tenant(t, RedisArgs("--maxmemory", "1mb"))
	special.end()
	if !special.proc.Exited() {
		t.Error("a Redis that was started in a way of its own still runs")
	}
}

func TestAClusterWhoseSlotsHaveSettledServesTheNextTestEmpty(t *testing.T) {
	t.Parallel()
	l := newLeases(t)
	lease := func() (*RedisClusterDaemon, func() error) {
		t.Helper()
		c, end, err := l.leaseCluster(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c, end
	}
	owner := func(c *RedisClusterDaemon, key string) *RedisDaemon {
		t.Helper()
		r, err := c.AwaitOwner(key, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, end := lease()
	from, to := owner(first, "a"), owner(first, "b")
	if from == to {
		t.Fatal("two masters were wanted")
	}
	if _, err := from.do("SET", "a", 1); err != nil {
		t.Fatal(err)
	}
	if err := first.MoveSlot("a", to); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	next, end := lease()
	if next != first {
		t.Fatal("the next test has another Cluster")
	}
	for _, r := range next.Nodes() {
		if n, err := redis.Int(r.do("DBSIZE")); n != 0 || err != nil {
			t.Errorf("%s has %d keys, %v", r.Addr(), n, err)
		}
	}
	if owner(next, "a") != to {
		t.Error("the slot is not where it was moved to")
	}
	if _, err := next.BeginMove("a", from); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if l.takeCluster() != nil {
		t.Error("a Cluster with a slot on its way waits for the next test")
	}
}
