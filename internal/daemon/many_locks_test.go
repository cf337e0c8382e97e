package daemon

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/config"
	"baton/internal/testsupport"
)

// withLocks returns a configuration with n jobs, each under its own lock, in addition to the node's own lock.
func withLocks(url string, n int) config.Config {
	c := configFor(url)
	for i := range n {
		c.Jobs = append(c.Jobs, config.Job{Name: fmt.Sprintf("job-%d", i), Lock: fmt.Sprintf("lock-%d", i), Schedule: "@yearly", Command: config.Command{"true"}})
	}
	return c.WithDefaults()
}

func (r *running) leadsAll(locks int) {
	r.t.Helper()
	await(r.t, "the daemon to lead all locks", func() bool {
		return r.logs.FilterMessage("leading").Len()-r.logs.FilterMessage("no longer leading").Len() == locks
	})
}

func TestManyLocksListenOnOneConnectionAndTellOfAnOutageOnce(t *testing.T) {
	t.Parallel()
	const locks = 20
	server := testsupport.StartRedis(t)
	proxy := server.Proxy()
	r := start(t, withLocks(server.URLThrough(proxy), locks), nil)
	r.leadsAll(locks + 1)
	conn, listeners := server.Conn(), 0
	await(t, "the node to listen", func() bool {
		list, err := redis.String(conn.Do("CLIENT", "LIST", "TYPE", "PUBSUB"))
		if err != nil {
			t.Fatal(err)
		}
		listeners = strings.Count(list, "\n")
		return listeners > 0
	})
	if listeners != 1 {
		t.Errorf("a node with %d locks listens on %d connections; want 1", locks+1, listeners)
	}
	lost := func() int { return r.logs.FilterMessage("redis unavailable, retrying").Len() }
	back := func() int { return r.logs.FilterMessage("redis available again").Len() }
	await(t, "what a busy machine tells at the start to be over", func() bool { return lost() == back() })
	before := lost()
	proxy.Block()
	await(t, "the loss to be told", func() bool { return lost() > before })
	time.Sleep(4 * time.Second) // so that all elections notice, and no lock is lost
	proxy.Unblock()
	await(t, "the return to be told", func() bool { return back() > before })
	if n := lost() - before; n != 1 {
		t.Errorf("one outage was told %d times", n)
	}
	r.endsWell()
}

// The memory of a lock and of its job must not grow with the number of locks. The memory for the beginning of a term soon becomes
// garbage, but later on a busy machine, so the test waits for this.
func TestALockTakesLittleMemory(t *testing.T) {
	server := testsupport.StartRedis(t)
	const few, many, most = 20, 120, 400 << 10
	lead := func(locks int, measure func()) {
		r := start(t, withLocks(server.URL(), locks), nil)
		r.leadsAll(locks + 1)
		measure()
		r.endsWell()
	}
	var small int64
	lead(few, func() { small = inUse() })
	lead(many, func() {
		await(t, "each lock and its job to take little memory", func() bool {
			each := (inUse() - small) / (many - few)
			t.Logf("%d KB for each lock and its job, want at most %d", each>>10, most>>10)
			return each <= most
		})
	})
}

// inUse returns the number of bytes in use by heap and stacks.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
