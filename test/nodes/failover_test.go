package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/text"
)

const (
	lockKey     = "baton"
	countersJob = `
- name: views
  schedule: "@every 1s"
  flush:
    from: {type: counters, key: "views"}
    to: {database: main, table: articles, key: [id]}
    columns: {id: $field, views: $value}
`
)

// times are the measurements of one kind of failover.
type times struct {
	what  string
	limit time.Duration
	all   []time.Duration
}

func (m *times) add(d time.Duration) { m.all = append(m.all, d) }

// at is the nearest-rank percentile.
func (m *times) at(percent int) time.Duration {
	rank := (len(m.all)*percent + 99) / 100
	return m.all[max(rank, 1)-1]
}

// report prints the figures and fails the test where they are above the limit.
func (m *times) report(t *testing.T) {
	t.Helper()
	slices.Sort(m.all)
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond)) }
	fmt.Printf("%-52s %2d rounds  min %5s  p50 %5s  p95 %5s  max %5s  limit %5s ms\n", m.what, len(m.all),
		ms(m.all[0]), ms(m.at(50)), ms(m.at(95)), ms(m.all[len(m.all)-1]), ms(m.limit))
	if p95 := m.at(95); p95 > m.limit {
		t.Errorf("%s: p95 is %v, above %v", m.what, p95, m.limit)
	}
}

// failover is a cluster whose job has a slot every second, and the Redis behind it.
type failover struct {
	*cluster.Cluster
	t      *testing.T
	server *testsupport.Redis
	conn   redis.Conn
}

func newFailover(t *testing.T, db *testsupport.Database, lease time.Duration) failover {
	t.Helper()
	server := testsupport.StartRedis(t)
	db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
	c := cluster.Start(t, cluster.Options{
		TTL: lease, LockKey: lockKey, RedisURL: server.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db), JobsYAML: countersJob,
	})
	return failover{Cluster: c, t: t, server: server, conn: server.Conn()}
}

// settled waits until a leader has run its job and the others stand by.
func (f failover) settled() *cluster.Node {
	f.t.Helper()
	leader := f.AwaitLeader(soon)
	f.Await(soon, "every node to stand by and the leader's job to run", func() bool {
		s, ok := leader.Status()
		if !ok || len(s.Nodes) != len(f.Nodes) || s.Jobs[0].LastRun == nil || s.Leader == nil {
			return false
		}
		// The term's epoch as the leader knows it: a master of a quorum may know a higher one.
		return len(leader.Lines("leading")) > 0 && s.Jobs[0].LastRun.NodeID == leader.ID && s.Jobs[0].LastRun.Epoch >= epoch(leader)
	})
	return leader
}

// term returns the node that leads after a term, and when its term began, by its own log. The
// log's clock ticks in milliseconds: the time is rounded up.
func (f failover) term(ended int64) (successor *cluster.Node, began time.Time) {
	f.t.Helper()
	f.Await(soon, "a successor", func() bool {
		for _, n := range f.Nodes {
			if lines := n.Lines("leading"); len(lines) > 0 && lines[len(lines)-1].Int("epoch") > ended {
				successor, began = n, lines[len(lines)-1].Time.Add(time.Millisecond)
			}
		}
		return successor != nil
	})
	return successor, began
}

// epoch is that of a node's last term.
func epoch(n *cluster.Node) int64 {
	terms := n.Lines("leading")
	return terms[len(terms)-1].Int("epoch")
}

// ended fails the test unless the history says how the term before the last one ended. It goes by the
// node: a master of a quorum may write another epoch than the term has.
func (f failover) ended(successor *cluster.Node, how string) {
	f.t.Helper()
	// A node whose Redis does not answer soon tells what it knew last.
	var events []cluster.Event
	f.Await(soon, "the history to have the term of "+successor.ID, func() bool {
		s, _ := successor.Status()
		events = s.Events
		return len(events) >= 2 && events[0].Event == "won" && events[0].NodeID == successor.ID
	})
	if events[1].Event != how {
		f.t.Errorf("%s leads, and the history is %+v; want that the term before it was %s", successor.ID, events, how)
	}
}

// firstRun returns when the first run of a successor's term was started: its slot
// was claimed in Redis, and its work begins. It goes by the term, not by the time: a
// run may start in the millisecond in which the term began.
func (f failover) firstRun(successor *cluster.Node) time.Time {
	f.t.Helper()
	var started time.Time
	f.Await(soon, "the successor's first run", func() bool {
		runs, err := redis.Values(f.conn.Do("XRANGE", "{"+lockKey+"}:job:views:runs", "-", "+"))
		if err != nil {
			f.t.Fatal(err)
		}
		term := epoch(successor)
		for _, run := range runs {
			fields, err := redis.StringMap(run.([]any)[1], nil)
			if err != nil {
				f.t.Fatal(err)
			}
			if fields["state"] == "missed" {
				continue
			}
			ms, errStarted := strconv.ParseInt(fields["started"], 10, 64)
			of, errEpoch := strconv.ParseInt(fields["epoch"], 10, 64)
			if err := errors.Join(errStarted, errEpoch); err != nil {
				f.t.Fatalf("run %v: %v", fields, err)
			}
			if fields["node"] == successor.ID && of >= term {
				started = time.UnixMilli(ms).Add(time.Millisecond)
				return true
			}
		}
		return false
	})
	return started
}

// justRenewed waits until the lease has just been renewed: the worst moment to die.
func (f failover) justRenewed() {
	f.t.Helper()
	f.Await(soon, "a renewal", func() bool { return f.leaseLeft() > aMeasuredLease-10*time.Millisecond })
}

// leaseLeft is what is left of the lease.
func (f failover) leaseLeft() time.Duration {
	f.t.Helper()
	left, err := redis.Int64(f.conn.Do("PTTL", lockKey))
	if err != nil {
		f.t.Fatal(err)
	}
	return time.Duration(left) * time.Millisecond
}

// quiet waits until no run is going on and the next slot is some time away.
func (f failover) quiet() {
	f.t.Helper()
	f.Await(soon, "the middle between two slots", func() bool {
		at := time.Now().UnixMilli() % 1000
		fields, err := redis.Strings(f.conn.Do("HKEYS", "{"+lockKey+"}:job:views"))
		running := slices.ContainsFunc(fields, func(name string) bool { return strings.HasPrefix(name, "run:") })
		return err == nil && !running && at > 300 && at < 600
	})
}

// A leader that crashes is followed within what is left of its lease. FAILOVER_ROUNDS measures
// it just after a renewal.
func TestFailoverAfterACrash(t *testing.T) {
	rounds, strict := effort(t, "FAILOVER_ROUNDS", 1)
	if !strict {
		t.Parallel()
		failoverAfterACrash(t)
		return
	}
	f := newFailover(t, testsupport.SQLite(t), aMeasuredLease)
	limit := aMeasuredLease + 100*time.Millisecond
	leads := times{what: "SIGKILL just after a renewal → successor leads", limit: limit}
	runs := times{what: "SIGKILL just after a renewal → its first run starts", limit: limit}
	for range rounds {
		leader := f.settled()
		f.justRenewed()
		last, killed := epoch(leader), time.Now()
		leader.Kill()
		successor, began := f.term(last)
		leads.add(began.Sub(killed))
		runs.add(f.firstRun(successor).Sub(killed))
		leader.Start()
	}
	leads.report(t)
	runs.report(t)
}

func failoverAfterACrash(t *testing.T) {
	clock, f := startPulse(t), newFailover(t, testsupport.SQLite(t), ttl)
	leader := f.settled()
	last := epoch(leader)
	leader.Kill()
	left, since := f.leaseLeft(), clock.beats()
	successor, _ := f.term(last)
	clock.within(float64(left)/float64(ttl), since, "SIGKILL → successor leads")
	f.ended(successor, "expired")
	f.firstRun(successor)
}

// A leader that is terminated releases its lock. FAILOVER_ROUNDS measures it.
func TestFailoverAfterATermination(t *testing.T) {
	rounds, strict := effort(t, "FAILOVER_ROUNDS", 1)
	lease := aMeasuredLease
	if !strict {
		t.Parallel()
		lease = untilReleased
	}
	f := newFailover(t, testsupport.SQLite(t), lease)
	m := times{what: "SIGTERM with nothing running → successor leads", limit: 50 * time.Millisecond}
	for range rounds {
		leader := f.settled()
		if strict {
			f.quiet()
		}
		last, asked := epoch(leader), time.Now()
		leader.Signal(syscall.SIGTERM)
		successor, began := f.term(last)
		m.add(began.Sub(asked))
		f.ended(successor, "released")
		if code := leader.Wait(soon); code != 0 {
			t.Errorf("%s ended with code %d", leader.ID, code)
		}
		leader.Start()
	}
	if strict {
		m.report(t)
	}
}

// A leader that is told to step down releases its lock. FAILOVER_ROUNDS measures it.
func TestFailoverByStepDown(t *testing.T) {
	rounds, strict := effort(t, "FAILOVER_ROUNDS", 1)
	lease := aMeasuredLease
	if !strict {
		t.Parallel()
		lease = untilReleased
	}
	f := newFailover(t, testsupport.SQLite(t), lease)
	m := times{what: "stepdown with nothing running → successor leads", limit: 50 * time.Millisecond}
	for range rounds {
		f.settled()
		if strict {
			f.quiet()
		}
		m.add(f.stepDown())
	}
	if strict {
		m.report(t)
	}
}

// stepDown orders it, and returns the time from the order to the next term as the
// command tells it.
func (f failover) stepDown() time.Duration {
	f.t.Helper()
	last := epoch(f.AwaitLeader(soon))
	out := f.Command("stepdown", "-o", "json")
	if out.Code != 0 {
		f.t.Fatalf("baton stepdown: code %d: %s", out.Code, out.Stderr)
	}
	var handover struct {
		From string       `json:"from"`
		To   string       `json:"to"`
		Took text.Seconds `json:"took_seconds"`
	}
	if err := json.Unmarshal([]byte(out.Stdout), &handover); err != nil {
		f.t.Fatalf("baton stepdown: %v: %s", err, out.Stdout)
	}
	if handover.To == handover.From {
		f.t.Errorf("%s stepped down in favour of itself", handover.From)
	}
	successor, _ := f.term(last)
	f.ended(successor, "stepped_down")
	return handover.Took.Duration() + time.Millisecond
}

// A run that waits for a database has to be cancelled there, rolled back and recorded before
// the lock may go. FAILOVER_ROUNDS measures it.
func TestFailoverByStepDownDuringAFlush(t *testing.T) {
	rounds, strict := effort(t, "FAILOVER_ROUNDS", 1)
	lease := aMeasuredLease
	if !strict {
		t.Parallel()
		lease = untilReleased
	}
	db := testsupport.Postgres(t)
	f := newFailover(t, db, lease)
	handover := times{what: "stepdown during a flush → successor leads, less drain", limit: 50 * time.Millisecond}
	drain := times{what: "  of which to drain", limit: 500 * time.Millisecond}
	for range rounds {
		leader := f.settled()
		unlock := lockTable(t, db, "articles")
		f.increment("a")
		f.Await(soon, "a flush that waits for the table", func() bool { return waitsForTable(t, db) })
		took := f.stepDown() // the table is locked: only a statement that was cancelled has ended by now
		drained := lastTime(leader, "no longer leading").Sub(lastTime(leader, "stepping down: ending the jobs"))
		unlock()
		drain.add(drained)
		handover.add(took - drained)
	}
	if strict {
		handover.report(t)
		drain.report(t)
	}
}

func (f failover) increment(field string) {
	f.t.Helper()
	if _, err := f.conn.Do("HINCRBY", "views", field, 1); err != nil {
		f.t.Fatal(err)
	}
}

// lastTime is when the node last logged the message.
func lastTime(n *cluster.Node, message string) time.Time {
	lines := n.Lines(message)
	if len(lines) == 0 {
		return time.Time{}
	}
	return lines[len(lines)-1].Time
}
