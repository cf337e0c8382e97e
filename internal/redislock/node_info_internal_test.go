package redislock

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock/lua"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// A standby that only polls, and a leader that only renews, must write their heartbeats from time to time. The standby must then notice a
// term that no hint has announced.
func TestANodeThatOnlyPollsOrRenewsTellsThatItIsThere(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: r.URL(), Timeout: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for key, interpreter := range map[string]script.Interpreter{"lua": nil, "setnx": lua.Compile} {
		node := func(id string) *Lock {
			l, err := NewLock(store, LockOptions{Key: key, NodeID: id, TTL: 10 * time.Second, Interpreter: interpreter,
				NodeInfo: NodeInfo{Priority: 7}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			return l
		}
		leader, standby := node("leader"), node("standby")
		ask := func(l *Lock, owner string, polling bool) elector.Answer {
			t.Helper()
			a, err := l.Acquire(ctx, elector.Candidate{Owner: owner, Polling: polling})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		election := NewElection(store, key, script.String)
		told := func(id string) Node {
			t.Helper()
			p, err := election.State(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range p.Nodes {
				if n.ID == id {
					return n
				}
			}
			return Node{}
		}
		epoch := ask(leader, "a", false).Epoch
		ask(standby, "b", false)
		for id, again := range map[string]func(){
			"leader": func() {
				if _, err := leader.Renew(ctx, "a", epoch); err != nil {
					t.Fatal(err)
				}
			},
			"standby": func() { ask(standby, "b", true) },
		} {
			again() // the first renewal on a connection also writes the entry
			before := told(id)
			time.Sleep(5 * time.Millisecond)
			if again(); !reflect.DeepEqual(told(id), before) {
				t.Errorf("%s: %s tells all the time", key, id)
			}
			map[string]*Lock{"leader": leader, "standby": standby}[id].written.Store(nil)
			if again(); told(id).SeenMS <= before.SeenMS || told(id).State != before.State {
				t.Errorf("%s: %s told %+v, then %+v", key, id, before, told(id))
			}
		}

		if err := leader.Release(ctx, "a", elector.Handover{Event: "released"}); err != nil {
			t.Fatal(err)
		}
		next := ask(node("next"), "c", false).Epoch
		if a := ask(standby, "b", true); a.Holder != "leader" {
			t.Fatalf("%s: a mere look tells of %+v", key, a)
		}
		standby.written.Store(nil)
		if a := ask(standby, "b", true); a.Holder != "next" || a.Epoch != next {
			t.Errorf("%s: told of %+v, want the term %d of next", key, a, next)
		}
	}
}

// Other nodes wait for a node of a higher priority, but not if that node is in its cool-down.
func TestWhoeverStandsAsideKeepsNobodyWaitingForItsPriority(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: r.URL(), Timeout: time.Second})
	node := func(id string, priority int) *Lock {
		l, err := NewLock(store, LockOptions{Key: "k", NodeID: id, TTL: 10 * time.Second, NodeInfo: NodeInfo{Priority: priority}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	aside, leader, next := node("aside", 7), node("leader", 0), node("next", 0)
	ask := func(l *Lock, c elector.Candidate) elector.Answer {
		t.Helper()
		a, err := l.Acquire(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ask(leader, elector.Candidate{Owner: "a"})
	for _, polling := range []bool{false, true} {
		aside.written.Store(nil)
		ask(aside, elector.Candidate{Owner: "b", Observer: true, Polling: polling})
	}
	if err := leader.Release(t.Context(), "a", elector.Handover{Event: "released"}); err != nil {
		t.Fatal(err)
	}
	if a := ask(next, elector.Candidate{Owner: "c"}); a.Outcome != elector.Won {
		t.Errorf("the free lock is not won: %+v", a)
	}
}

// If a node's data changes during a request, the next request must write the change.
func TestWhatChangesDuringARequestIsTold(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: r.URL(), Timeout: time.Second})
	node := func(id string) *Lock {
		l, err := NewLock(store, LockOptions{Key: "k", NodeID: id, TTL: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	leader, standby := node("leader"), node("standby")
	won, err := leader.Acquire(t.Context(), elector.Candidate{Owner: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for l, ask := range map[*Lock]func() error{
		leader: func() error { _, err := leader.Renew(t.Context(), "a", won.Epoch); return err },
		standby: func() error {
			_, err := standby.Acquire(t.Context(), elector.Candidate{Owner: "b", Polling: true})
			return err
		},
	} {
		news := func() { l.SetNodeInfo(NodeInfo{Ending: "the end of report"}) }
		asked := l.scripted.scripts
		then := *asked
		then.acquire, then.renew = answered{asked.acquire, news}, answered{asked.renew, news}
		for _, l.scripted.scripts = range []*lockScripts{&then, asked} {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		}
		p, err := NewElection(store, "k", script.String).State(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range p.Nodes {
			if n.ID == l.nodeID && n.Ending != "the end of report" {
				t.Errorf("%s told %+v", l.nodeID, n)
			}
		}
	}
}

// answered is a step that calls a function after each answer.
type answered struct {
	step
	then func()
}

func (a answered) DoContext(ctx context.Context, conn redis.Conn, keysAndArgs ...any) (any, error) {
	defer a.then()
	return a.step.DoContext(ctx, conn, keysAndArgs...)
}

// A lease that ended in time, while a request was on its way, has not vanished. So the node that asked must win at once.
func TestALeaseThatEndsWhileARequestIsOnItsWayHasNotVanished(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: r.URL(), Timeout: 10 * time.Second})
	for key, interpreter := range map[string]script.Interpreter{"lua": nil, "setnx": lua.Compile} {
		node := func(id string) *Lock {
			l, err := NewLock(store, LockOptions{Key: key, NodeID: id, TTL: time.Minute, Interpreter: interpreter})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			return l
		}
		leader, standby := node("leader"), node("standby")
		for _, l := range []*Lock{leader, standby} {
			if _, err := l.Acquire(t.Context(), elector.Candidate{Owner: l.nodeID}); err != nil {
				t.Fatal(err)
			}
		}
		// By the standby's knowledge the lease ends soon, and it has ended when Redis gets the request.
		standby.until = heartbeat.Boottime().Add(2 * (clockTolerance + time.Minute/100))
		late := *standby.scripted.scripts
		late.acquire = &delayed{step: late.acquire, arrive: func() {
			for standby.until > heartbeat.Boottime() {
				time.Sleep(time.Millisecond)
			}
			r.Client(t).Do("DEL", key)
		}}
		standby.scripted.scripts = &late
		if a, err := standby.Acquire(t.Context(), elector.Candidate{Owner: "next"}); err != nil || a.Outcome != elector.Won {
			t.Errorf("%s: %+v, %v", key, a, err)
		}
	}
}

// delayed is a step that holds back the first request until arrive returns.
type delayed struct {
	step
	arrive func()
}

func (d *delayed) DoContext(ctx context.Context, conn redis.Conn, keysAndArgs ...any) (any, error) {
	d.arrive()
	d.arrive = func() {}
	return d.step.DoContext(ctx, conn, keysAndArgs...)
}
