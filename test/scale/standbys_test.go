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

// cpu is what Redis has used so far, and how many commands it has run.
func (c *crowd) cpu(t *testing.T) (used time.Duration, commands int64) {
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
			used += time.Duration(seconds * float64(time.Second))
		case "total_commands_processed":
			if _, err := fmt.Sscan(value, &commands); err != nil {
				t.Fatal(err)
			}
		}
	}
	return used, commands
}

func (c *crowd) awaitLeader(t *testing.T) string {
	t.Helper()
	select {
	case id := <-c.won:
		return id
	case <-time.After(2 * ttl):
		t.Fatal("no node leads")
		return ""
	}
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
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		p, err := election.Picture(ctx, 1)
		if err == nil && len(p.Nodes) > standbys {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after two minutes %d nodes are there, %v", len(p.Nodes), err)
		}
	}

	// Every standby polls often until it knows that the subscription will wake it. On a
	// busy machine that takes its time; then Redis is left nearly idle.
	const idle = 5 * time.Second
	for end := time.Now().Add(3 * time.Minute); ; {
		before, commandsBefore := c.cpu(t)
		time.Sleep(idle)
		after, commandsAfter := c.cpu(t)
		share := float64(after-before) / float64(idle)
		rate := (commandsAfter - commandsBefore) / int64(idle/time.Second)
		t.Logf("idle: Redis uses %.1f %% of a core, and runs %d commands a second", share*100, rate)
		if rate <= standbys { // the share of a core depends on what else the machine does
			break
		}
		if time.Now().After(end) {
			t.Errorf("after three minutes Redis still runs %d commands a second while nothing happens, want at most one for each standby", rate)
			break
		}
	}

	for range 3 {
		asked := time.Now()
		if _, _, err := election.StepDown(ctx, "", "handover in a crowd"); err != nil && !errors.Is(err, redislock.ErrNoLeader) {
			t.Fatal(err)
		}
		next := c.awaitLeader(t)
		t.Logf("handover from %s to %s among %d nodes: %v", leader, next, standbys+1, time.Since(asked).Round(time.Millisecond))
		leader = next
	}
}
