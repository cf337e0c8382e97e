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

var (
	// What the leader keeps between its soft stop and the end of its lease: the
	// margin, and the default drain of this ttl.
	outageReserve = 270*time.Millisecond + ttl/5
	// The least that lies between two renewals: the default interval of this ttl, less 10 %.
	outageRenewal = ttl / 5 * 9 / 10
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
	seconds, _ := effort(t, "OUTAGE_SECONDS", 8)
	for _, c := range []struct {
		name   string
		lasts  time.Duration
		within time.Duration // of Redis' return, somebody leads
		begin  func(*testsupport.Redis, *testsupport.Proxy)
		finish func(*testsupport.Redis, *testsupport.Proxy)
	}{
		{
			"killed and restarted", 3 * ttl, 2 * ttl,
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Kill() },
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Restart() },
		},
		{
			"hung for three leases", 3 * ttl, ttl,
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Freeze() },
			func(r *testsupport.Redis, _ *testsupport.Proxy) { r.Thaw() },
		},
		{
			"refusing connections", time.Duration(seconds) * time.Second, ttl,
			func(_ *testsupport.Redis, p *testsupport.Proxy) { p.Block() },
			func(_ *testsupport.Redis, p *testsupport.Proxy) { p.Unblock() },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := testsupport.StartRedis(t)
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
			leaseEnds := renewedLease(t, nodes, server.Conn())
			before := map[string][2]int{}
			for _, n := range nodes.Nodes {
				before[n.ID] = [2]int{len(n.Lines(redisLost)), len(n.Lines(redisBack))}
			}
			began := time.Now()
			c.begin(server, proxy)
			if time.Until(leaseEnds) < ttl-outageRenewal { // a busy machine: it may have been renewed since
				leaseEnds = time.Now().Add(ttl)
			}
			stopsInTime(t, nodes, leader, leaseEnds)
			time.Sleep(time.Until(began.Add(c.lasts)))
			c.finish(server, proxy)
			back := testsupport.StartStopwatch(t)
			nodes.AwaitLeader(soon)
			took := back.Took()
			t.Logf("a leader %v after Redis' return", took.Round(time.Millisecond))
			if took > c.within+grace() {
				t.Errorf("a leader came %v after Redis' return, want it within %v", took, c.within)
			}
			for _, n := range nodes.Nodes {
				was := before[n.ID]
				nodes.Await(soon, n.ID+" to have Redis back", func() bool { return len(n.Lines(redisBack)) > was[1] })
				if lost, back := len(n.Lines(redisLost))-was[0], len(n.Lines(redisBack))-was[1]; lost != 1 || back != 1 {
					t.Errorf("%s told of the loss %d times and of the return %d times; want once each", n.ID, lost, back)
				}
			}
		})
	}
}

// A Redis that keeps its data and is back before the lease ends is a hiccup: the
// term goes on.
func TestOutageThatIsShortAndLosesNothingEndsNoTerm(t *testing.T) {
	t.Parallel()
	// What the kernel has survives a restart, too, and a busy disk stalls no server.
	server := testsupport.StartRedis(t, testsupport.RedisAOF(), testsupport.RedisArgs("--appendfsync", "no"))
	nodes := cluster.Start(t, cluster.Options{TTL: ttl, LockKey: lockKey, RedisURL: server.URL()})
	leader := nodes.AwaitLeader(soon)
	renewedLease(t, nodes, server.Conn())
	server.Restart()
	watched := time.Now()
	for time.Since(watched) < 2*ttl {
		if now := nodes.Leader(); now != nil && now != leader {
			t.Fatalf("%s leads after %s", now.ID, leader.ID)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, n := range nodes.Nodes {
		if terms := len(n.Lines("leading")); (terms == 1) != (n == leader) || terms > 1 {
			t.Errorf("%s began %d terms", n.ID, terms)
		}
		nodes.Await(soon, n.ID+" to tell of a return for each loss", func() bool { return len(n.Lines(redisLost)) == len(n.Lines(redisBack)) })
		if lost := len(n.Lines(redisLost)); lost > 4 { // more than once: a busy machine may starve the server for a moment
			t.Errorf("%s told of the loss %d times, want it once", n.ID, lost)
		}
	}
}

// renewedLease waits for a renewal, so that the next one is some time away, and
// returns when the lease ends that it brought.
func renewedLease(t *testing.T, nodes *cluster.Cluster, conn redis.Conn) time.Time {
	t.Helper()
	var ends time.Time
	nodes.Await(soon, "a renewal", func() bool {
		left, err := redis.Int64(conn.Do("PTTL", lockKey))
		if err != nil {
			t.Fatal(err)
		}
		ends = time.Now().Add(time.Duration(left) * time.Millisecond)
		return time.Duration(left)*time.Millisecond > ttl-20*time.Millisecond
	})
	return ends
}

// stopsInTime watches the leader end its term without Redis: it stops to say that
// it leads before the soft stop has passed, and its work has ended before its
// lease has.
func stopsInTime(t *testing.T, nodes *cluster.Cluster, leader *cluster.Node, leaseEnds time.Time) {
	t.Helper()
	clock := testsupport.StartStopwatch(t)
	nodes.Await(soon, "the leader to stop", func() bool { return leader.Answer("/-/leader") == http.StatusServiceUnavailable })
	stopped := time.Now()
	if late := stopped.Sub(leaseEnds.Add(-outageReserve)); late > testsupport.Paced(100*time.Millisecond)+clock.Still() {
		t.Errorf("the leader said so until %v before its lease ended; that should be %v", leaseEnds.Sub(stopped), outageReserve)
	}
	nodes.Await(soon, "the term's end in the log", func() bool { return len(leader.Lines("no longer leading")) == 1 })
	end := leader.Lines("no longer leading")[0]
	if end.Text("event") != "expired" || end.Level != "warn" {
		t.Errorf("the term ended as %q, level %s; want expired, as a warning", end.Text("event"), end.Level)
	}
	if !end.Time.Before(leaseEnds.Add(clock.Still())) {
		t.Errorf("the term ended %v after its lease", end.Time.Sub(leaseEnds))
	}
	for _, n := range nodes.Nodes {
		if code := n.Answer("/-/healthy"); code != http.StatusOK {
			t.Errorf("%s is not healthy while Redis is away: %s", n.ID, fmt.Sprint(code))
		}
	}
}
