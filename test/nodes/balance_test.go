package nodes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// spreadTTL is a lease that no node loses, however busy the machine is: each of six locks would tell of it.
const spreadTTL = 3 * ttl

// spread is a cluster whose jobs have a lock each, and the Redis behind it.
type spread struct {
	*cluster.Cluster
	t     *testing.T
	conn  redis.Conn
	locks []string
}

// startSpread starts three nodes with six jobs: one of them goes on all the time, some
// run often, and some rarely.
func startSpread(t *testing.T) spread {
	t.Helper()
	server := testsupport.StartRedis(t)
	s := spread{t: t, conn: server.Conn()}
	var jobs strings.Builder
	for i, work := range []string{
		`schedule: "@always", command: [sleep, "1000"]`,
		`schedule: "@every 2s", command: [sleep, "0.2"]`,
		`schedule: "@every 3s", command: [sleep, "0.5"]`,
		`schedule: "@every 5s", command: [sleep, "0.1"]`,
		`schedule: "@hourly", command: ["true"]`,
		`schedule: "@hourly", command: ["true"]`,
	} {
		lock := fmt.Sprintf("lock-%d", i+1)
		s.locks = append(s.locks, lock)
		if i == 0 { // the node's own lock has a job, too
			fmt.Fprintf(&jobs, "- {name: job-1, %s}\n", work)
			continue
		}
		fmt.Fprintf(&jobs, "- {name: job-%d, lock: %s, %s}\n", i+1, lock, work)
	}
	s.Cluster = cluster.Start(t, cluster.Options{
		TTL: spreadTTL, LockKey: s.locks[0], RedisURL: server.URL(), JobsYAML: jobs.String(), LogLevel: "debug",
	})
	return s
}

// leaders is who leads each lock, by Redis; "" where nobody does.
func (s spread) leaders() map[string]string {
	s.t.Helper()
	leaders := map[string]string{}
	for _, lock := range s.locks {
		owner, err := redis.String(s.conn.Do("GET", lock))
		if err != nil && !errors.Is(err, redis.ErrNil) {
			s.t.Fatal(err)
		}
		term, err := redis.StringMap(s.conn.Do("HGETALL", "{"+lock+"}:term"))
		if err != nil {
			s.t.Fatal(err)
		}
		if owner != "" && owner == term["owner"] {
			leaders[lock] = term["node_id"]
		}
	}
	return leaders
}

// awaitEach waits until each of these nodes leads so many, and nobody else any.
func (s spread) awaitEach(within time.Duration, each int, nodes ...string) {
	s.t.Helper()
	want := map[string]int{}
	for _, id := range nodes {
		want[id] = each
	}
	var got map[string]int
	s.Await(within, fmt.Sprintf("each of %v to lead %d", nodes, each), func() bool {
		got = map[string]int{}
		for _, id := range s.leaders() {
			got[id]++
		}
		return maps.Equal(got, want)
	})
}

// Several locks are spread over the nodes without anybody handing them out, again after
// a crash, and again when the crashed node is back.
func TestLocksAreSpreadOverTheNodes(t *testing.T) {
	t.Parallel()
	s := startSpread(t)
	s.awaitEach(soon, 2, "n1", "n2", "n3")

	victim := s.Nodes[1]
	victim.Kill()
	s.awaitEach(spreadTTL+soon, 3, "n1", "n3")

	victim.Start()
	s.awaitEach(soon, 2, "n1", "n2", "n3")

	before := s.leaders()
	s.awaitRenewals(func() {
		if now := s.leaders(); !maps.Equal(now, before) {
			t.Fatalf("locks move although they are spread: %v, before %v", now, before)
		}
	})
	for _, lock := range s.locks {
		s.checkHistory(lock, victim.ID)
	}
	s.checkRuns(victim.ID)
	s.checkOrder(s.locks[5])
}

// checkOrder makes sure that what an operator orders is not undone: the node that has
// stepped down gets no lock to make up for it.
func (s spread) checkOrder(lock string) {
	s.t.Helper()
	emptied := s.leaders()[lock]
	if out := s.Command("stepdown", "--lock-key", lock); out.Code != 0 {
		s.t.Fatalf("stepdown: %+v", out)
	}
	s.awaitRenewals(func() {
		led := 0
		for _, id := range s.leaders() {
			if id == emptied {
				led++
			}
		}
		if led > 1 {
			s.t.Fatalf("%s stepped down by order, and was given a lock to spread the work: %v", emptied, s.leaders())
		}
	})
}

// awaitRenewals looks until the locks have been renewed as often as in two leases.
func (s spread) awaitRenewals(look func()) {
	s.t.Helper()
	began := calls(s.t, s.conn, "pexpire")
	rounds := int(2 * ttl / beat)
	s.Await(soon, "renewals of two leases", func() bool {
		look()
		return calls(s.t, s.conn, "pexpire") >= began+rounds*len(s.locks)
	})
}

// checkHistory makes sure by the events of a lock that no two nodes led it at once: after
// a win the next one comes only once that term has ended.
func (s spread) checkHistory(lock, victim string) {
	s.t.Helper()
	entries, err := redis.Values(s.conn.Do("XRANGE", "{"+lock+"}:events", "-", "+"))
	if err != nil {
		s.t.Fatal(err)
	}
	leader, last, wins := "", "", 0
	for _, entry := range entries {
		e, err := redis.StringMap(entry.([]any)[1], nil)
		if err != nil {
			s.t.Fatal(err)
		}
		switch e["event"] {
		case "won":
			if leader != "" {
				s.t.Errorf("%s: %s wins epoch %s while %s leads", lock, e["node_id"], e["epoch"], leader)
			}
			if e["epoch"] <= last && len(e["epoch"]) <= len(last) {
				s.t.Errorf("%s: epoch %s after %s", lock, e["epoch"], last)
			}
			leader, last = e["node_id"], e["epoch"]
			wins++
		case "expired":
			if e["node_id"] != victim {
				s.t.Errorf("%s: the lease of %s ran out, which has not crashed", lock, e["node_id"])
			}
			leader = ""
		case "stepped_down":
			if e["code"] != "balance" {
				s.t.Errorf("%s: %s stepped down: %s", lock, e["node_id"], e["reason"])
			}
			leader = ""
		default:
			s.t.Errorf("%s: an event that nobody has asked for: %v", lock, e)
		}
	}
	if wins == 0 || leader == "" {
		s.t.Errorf("%s: %d wins, led by %q", lock, wins, leader)
	}
}

// checkRuns makes sure that balance has ended no run but those that go on always, and
// that the only runs that were lost are the victim's.
func (s spread) checkRuns(victim string) {
	s.t.Helper()
	runs := 0
	for i, lock := range s.locks[1:] {
		entries, err := redis.Values(s.conn.Do("XRANGE", fmt.Sprintf("{%s}:job:job-%d:runs", lock, i+2), "-", "+"))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, entry := range entries {
			run, err := redis.StringMap(entry.([]any)[1], nil)
			if err != nil {
				s.t.Fatal(err)
			}
			ok := []string{"succeeded", "missed", ""}
			if run["node"] == victim {
				ok = append(ok, "lost")
			}
			if !slices.Contains(ok, run["state"]) {
				s.t.Errorf("job-%d: a run ended %s: %v", i+2, run["state"], run)
			}
			if run["state"] == "succeeded" {
				runs++
			}
		}
	}
	if runs == 0 {
		s.t.Error("no run has succeeded: nothing could be cancelled")
	}
}
