package nodes

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

const (
	redisLost = "redis unavailable, retrying"
	redisBack = "redis available again"
)

// An outage is survived by every process: the leader stops before its lease can
// have ended, and when Redis is back one node leads within one lease; within two if
// Redis has restarted, since nobody may win in the first.
func TestOutageOfRedis(t *testing.T) {
	t.Parallel()
	seconds, _ := effort(t, "OUTAGE_SECONDS", int(ttl/time.Second))
	lasts := max(ttl, time.Duration(seconds)*time.Second)
	for _, c := range []struct {
		name   string
		within float64 // leases after Redis' return, somebody leads
		begin  func(*testsupport.Redis, *testsupport.Proxy)
		finish func(*testsupport.Redis, *testsupport.Proxy)
	}{
		{
			"killed and restarted", 2,
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Kill() },
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Restart() },
		},
		{
			"hung until the lease has ended", 1,
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Freeze() },
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Thaw() },
		},
		{
			"refusing connections", 1,
			func(_ *testsupport.Redis, p *testsupport.Proxy) { p.Block() },
			func(_ *testsupport.Redis, p *testsupport.Proxy) { p.Unblock() },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock, server := startPulse(t), testsupport.StartRedis(t)
			proxy := server.Proxy()
			nodes := cluster.Start(t, cluster.Options{TTL: ttl, LockKey: lockKey, RedisURL: server.URLThrough(proxy)})
			leader := nodes.AwaitLeader(soon)
			for _, n := range nodes.Nodes {
				nodes.Await(soon, n.ID+" to know the leader", func() bool { return n == leader || len(n.Lines("standing by")) > 0 })
			}

			// On a starved machine Redis may have been lost for a moment already.
			for _, n := range nodes.Nodes {
				nodes.Await(soon, n.ID+" to have Redis", func() bool { return len(n.Lines(redisLost)) == len(n.Lines(redisBack)) })
			}
			before := map[string][2]int{}
			for _, n := range nodes.Nodes {
				before[n.ID] = [2]int{len(n.Lines(redisLost)), len(n.Lines(redisBack))}
			}
			began := clock.beats()
			c.begin(server, proxy)
			stopsByItself(t, nodes, leader)
			for _, n := range nodes.Nodes {
				nodes.Await(soon, n.ID+" to tell of the loss", func() bool { return len(n.Lines(redisLost)) > before[n.ID][0] })
			}
			nodes.Await(soon+lasts, "a lease to pass", func() bool { return clock.beats()-began > int(lasts/beat) })
			for _, n := range nodes.Nodes { // every attempt of these seconds has failed
				was := before[n.ID]
				if lost, back := len(n.Lines(redisLost))-was[0], len(n.Lines(redisBack))-was[1]; lost != 1 || back != 0 {
					t.Errorf("without Redis %s told of the loss %d times and of a return %d times; want of the loss, once", n.ID, lost, back)
				}
			}
			ended := clock.beats()
			c.finish(server, proxy)
			nodes.AwaitLeader(soon)
			clock.within(c.within, ended, "Redis is back → a node leads")
			for _, n := range nodes.Nodes {
				// On a starved machine it may have lost Redis once more since, and have it back.
				nodes.Await(soon, n.ID+" to tell of a return for each loss", func() bool {
					lost, back := len(n.Lines(redisLost)), len(n.Lines(redisBack))
					return back > before[n.ID][1] && back == lost
				})
				if back := len(n.Lines(redisBack)) - before[n.ID][1]; back > 4 {
					t.Errorf("%s told of the return %d times; want it once", n.ID, back)
				}
			}
		})
	}
}

// A leader that does not reach Redis has stopped before Redis lets its lock go.
func TestALeaderStopsBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	proxy, direct := server.Proxy(), server.Conn()
	nodes := cluster.Start(t, cluster.Options{
		TTL: ttl, LockKey: lockKey, RedisURL: server.URLThrough(proxy),
		ElectionYAML: "heartbeat_interval: 1s\ndrain: 5s", // also if a busy machine stops it for some seconds
	})
	leader := nodes.AwaitLeader(soon)
	proxy.Hang()
	nodes.Await(soon, "the lease to end", func() bool {
		left, err := redis.Int64(direct.Do("PTTL", lockKey))
		if err != nil {
			t.Fatal(err)
		}
		// In this order: what is still so after the lock was seen to be gone, is so for too long.
		if gone := left < 0; gone && (leader.Leading() || len(leader.Lines("no longer leading")) == 0) {
			t.Fatal("the lock is gone, and its leader has not ended its term")
		}
		return left < 0
	})
	proxy.Unhang()
	nodes.AwaitLeader(soon)
}

// A Redis that keeps its data and is back before the lease ends is a hiccup: the
// term goes on.
func TestOutageThatIsShortAndLosesNothingEndsNoTerm(t *testing.T) {
	t.Parallel()
	// What the kernel has survives a restart, too, and a busy disk stalls no server.
	server := testsupport.StartRedis(t, testsupport.RedisAOF(), testsupport.RedisArgs("--appendfsync", "no"))
	const lease = 3 * ttl // a busy machine needs seconds for the restart
	nodes := cluster.Start(t, cluster.Options{TTL: lease, LockKey: lockKey, RedisURL: server.URL()})
	leader := nodes.AwaitLeader(soon)
	listed(t, nodes)
	last := epoch(leader)
	server.Restart()
	for _, n := range nodes.Nodes {
		nodes.Await(soon, n.ID+" to tell of a return for each loss", func() bool { return len(n.Lines(redisLost)) == len(n.Lines(redisBack)) })
		if lost := len(n.Lines(redisLost)); lost > 4 { // more than once: a busy machine may starve the server for a moment
			t.Errorf("%s told of the loss %d times, want it once", n.ID, lost)
		}
	}
	// The lease that there was before is over once it could have been renewed so often.
	conn := server.Conn()
	nodes.Await(2*soon, "renewals of a whole lease", func() bool {
		if now := nodes.Leader(); now != nil && now != leader {
			t.Fatalf("%s leads after %s", now.ID, leader.ID)
		}
		return calls(t, conn, "pexpire") > int(lease/beat)
	})
	for _, n := range nodes.Nodes {
		if terms := len(n.Lines("leading")); (terms == 1) != (n == leader) || terms > 1 {
			t.Errorf("%s began %d terms", n.ID, terms)
		}
	}
	if now := nodes.AwaitLeader(soon); now != leader || epoch(leader) != last {
		t.Errorf("%s leads, and the term was the %d of %s", now.ID, last, leader.ID)
	}
}

// stopsByItself watches the leader end its term without Redis.
func stopsByItself(t *testing.T, nodes *cluster.Cluster, leader *cluster.Node) {
	t.Helper()
	nodes.Await(soon, "the leader to stop", func() bool { return leader.Answer("/-/leader") == http.StatusServiceUnavailable })
	nodes.Await(soon, "the term's end in the log", func() bool { return len(leader.Lines("no longer leading")) == 1 })
	if end := leader.Lines("no longer leading")[0]; end.Text("event") != "expired" || end.Level != "warn" {
		t.Errorf("the term ended as %q, level %s; want expired, as a warning", end.Text("event"), end.Level)
	}
	for _, n := range nodes.Nodes {
		if code := n.Answer("/-/healthy"); code != http.StatusOK {
			t.Errorf("%s is not healthy while Redis is away: %s", n.ID, fmt.Sprint(code))
		}
	}
}
