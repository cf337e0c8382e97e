// Package scale holds the tests of many nodes against one Redis.
package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

const (
	standbys = 1000
	ttl      = time.Minute
)

// timing gives a thousand nodes that share one process, and a busy machine, time to answer. A real node gives up earlier;
// but where one of these did, its siblings of the same store would all connect anew, time after time.
var timing = heartbeat.Timing{
	TTL: ttl, Interval: 5 * time.Second, Timeout: 10 * time.Second, Margin: heartbeat.DefaultMargin(ttl), Drain: 2 * time.Second,
}

// crowd is the nodes of one election, and who leads.
type crowd struct {
	redis *testsupport.Redis
	store *redisconn.Store
	won   chan string // node ids, as they begin to lead
	wg    sync.WaitGroup
	// listening is not 0 while the subscription stands.
	listening atomic.Int32

	mu      sync.Mutex
	leading map[string]bool
}

// join adds a node with a connection of its own, as a process has one for its lock.
// The hints come by one subscription for all.
func (c *crowd) join(ctx context.Context, t *testing.T, id string, hints <-chan elector.Hint) {
	lock, err := redislock.NewLock(c.store, redislock.LockOptions{Key: "baton", NodeID: id, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	lead := func(ctx context.Context, _ *elector.Term) error {
		c.mu.Lock()
		c.leading[id] = true
		if len(c.leading) > 1 {
			t.Errorf("%v lead at once", c.leading)
		}
		c.mu.Unlock()
		c.won <- id
		<-ctx.Done()
		c.mu.Lock()
		delete(c.leading, id)
		c.mu.Unlock()
		return nil
	}
	terms := 0
	e, err := elector.New(lock, lead, elector.Config{
		NodeID: id, Timing: timing, PollInterval: 2 * time.Second, Hints: hints, Hinted: func() bool { return c.listening.Load() > 0 },
		NewOwner: func() (string, error) { terms++; return fmt.Sprintf("%s-%d", id, terms), nil },
		Die:      func(reason string) { t.Error(id, reason) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.wg.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
		lock.Close()
	})
}

// work is what Redis has done so far.
type work struct {
	used               time.Duration // of a processor
	commands, renewals int64         // all of them; those of the lease
}

func (c *crowd) work(t *testing.T) (w work) {
	t.Helper()
	conn := c.redis.Conn()
	defer conn.Close()
	info, err := redis.String(conn.Do("INFO", "everything"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_cpu_sys", "used_cpu_user":
			var seconds float64
			if _, err := fmt.Sscan(value, &seconds); err != nil {
				t.Fatal(err)
			}
			w.used += time.Duration(seconds * float64(time.Second))
		case "total_commands_processed":
			if _, err := fmt.Sscan(value, &w.commands); err != nil {
				t.Fatal(err)
			}
		case "cmdstat_pexpire":
			if _, err := fmt.Sscanf(value, "calls=%d,", &w.renewals); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// heartbeat waits for the leader's next renewal, and returns the work that there was by then.
func (c *crowd) heartbeat(t *testing.T, since work) work {
	t.Helper()
	now := since
	testsupport.Await(t, "the leader to renew", func() bool { now = c.work(t); return now.renewals > since.renewals })
	return now
}

func (c *crowd) awaitLeader(t *testing.T) string {
	t.Helper()
	return testsupport.Receive(t, "a node to lead", c.won)
}

// A thousand standbys hand over, and leave Redis nearly idle.
func TestAThousandStandbysOnOneRedis(t *testing.T) {
	c := &crowd{redis: testsupport.StartRedis(t), won: make(chan string, standbys), leading: map[string]bool{}}
	var err error
	if c.store, err = redisconn.Open(redisconn.Options{URL: c.redis.URL(), ClientName: "baton-crowd"}); err != nil {
		t.Fatal(err)
	}
	defer c.store.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer c.wg.Wait()
	defer stop()

	// One subscription wakes all of them at the same moment: the worst that a
	// release can do to Redis.
	hints := make(chan elector.Hint, 16)
	each := make([]chan elector.Hint, standbys+1)
	c.wg.Go(func() {
		redislock.WatchAll(ctx, c.store, redislock.Watched{LockKey: "baton", Hints: hints, Listening: &c.listening})
	})
	leader := ""
	for i := range each {
		each[i] = make(chan elector.Hint, 4)
		c.join(ctx, t, fmt.Sprint("n", i), each[i])
		if i == 0 {
			leader = c.awaitLeader(t)
		}
	}
	c.wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case h := <-hints:
				for _, one := range each {
					select {
					case one <- h:
					default:
					}
				}
			}
		}
	})
	election := redislock.NewElection(c.store, "baton", script.String)
	for present := 0; present <= standbys; { // as long as it goes on
		testsupport.Await(t, fmt.Sprintf("more than %d nodes to be there", present), func() bool {
			p, err := election.State(ctx, 1)
			if err != nil || len(p.Nodes) <= present {
				return false
			}
			present = len(p.Nodes)
			return true
		})
	}

	// Every standby polls often until it knows that the subscription will wake it. On a
	// busy machine that takes its time; then Redis is left nearly idle.
	most := standbys * int64(timing.Interval/time.Second) // one a second
	for end, before := time.Now().Add(3*time.Minute), c.heartbeat(t, c.work(t)); ; {
		after := c.heartbeat(t, before)
		commands := after.commands - before.commands
		t.Logf("idle: from one heartbeat to the next Redis uses a core for %v, and runs %d commands", after.used-before.used, commands)
		if commands <= most { // the share of a core depends on what else the machine does
			break
		}
		if time.Now().After(end) {
			t.Errorf("after three minutes Redis still runs %d commands with each heartbeat while nothing happens, want at most %d", commands, most)
			break
		}
		before = after
	}

	for range 3 {
		if _, _, err := election.StepDown(ctx, "", "handover in a crowd"); err != nil && !errors.Is(err, redislock.ErrNoLeader) {
			t.Fatal(err)
		}
		next := c.awaitLeader(t)
		t.Logf("handover from %s to %s among %d nodes", leader, next, standbys+1)
		leader = next
	}
}
