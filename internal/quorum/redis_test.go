package quorum_test

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
	"baton/internal/quorum"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
	"baton/internal/testsupport/locktest"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(8)
	testsupport.Main(m)
}

// servers are real Redis masters. No master knows of the others.
type servers []*testsupport.Redis

func startServers(t *testing.T, n int, opts ...testsupport.RedisOption) servers {
	t.Helper()
	var all servers
	for range n {
		all = append(all, testsupport.StartRedis(t, opts...))
	}
	return all
}

// locks returns one node's views of the locks on all masters.
func (s servers) locks(t *testing.T, key, id string, ttl time.Duration) []elector.Lock {
	t.Helper()
	var locks []elector.Lock
	for _, r := range s {
		store, err := redisconn.Open(redisconn.Options{URL: r.URL(), ClientName: "baton-test"})
		if err != nil {
			t.Fatal(err)
		}
		l, err := redislock.NewLock(store, redislock.LockOptions{Key: key, NodeID: id, TTL: ttl, NodeInfo: redislock.NodeInfo{Version: "test"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(); _ = store.Close() })
		locks = append(locks, l)
	}
	return locks
}

func TestQuorumOfRedisConforms(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d masters", n), func(t *testing.T) {
			t.Parallel()
			s := startServers(t, n)
			locktest.RunLive(t, func(t *testing.T, ttl time.Duration) locktest.Harness {
				key := fmt.Sprint("lock:", t.Name(), ttl)
				open := func(id string) elector.Lock {
					// Two cores may run all tests at the same time, so no request counts as slow before it has taken the length of a lease.
					return newLock(t, id, s.locks(t, key, id, ttl), quorum.Options{TTL: ttl, Timeout: ttl})
				}
				return locktest.Harness{
					TTL: ttl, A: open("a"), B: open("b"), C: open("c"), Sleep: time.Sleep,
					Flush: func() { s.each(t, "FLUSHALL") },
					StepDown: func(to, reason string) error {
						for _, r := range s {
							store, err := redisconn.Open(redisconn.Options{URL: r.URL()})
							if err != nil {
								return err
							}
							_, _, err = redislock.NewElection(store, key, script.String).StepDown(t.Context(), to, reason)
							if err = errors.Join(err, store.Close()); err != nil {
								return err
							}
						}
						return nil
					},
				}
			})
		})
	}
}

func (s servers) each(t *testing.T, command string, args ...any) {
	t.Helper()
	for _, r := range s {
		r.Client(t).Do(command, args...)
	}
}

// liveTiming returns the timing of the nodes in the tests below.
func liveTiming() heartbeat.Timing {
	const ttl = 15 * time.Second // a busy machine renews in time, and the tests below wait for its end
	return heartbeat.Timing{TTL: ttl, Interval: time.Second, Timeout: 2 * time.Second, Margin: heartbeat.DefaultMargin(ttl), Drain: time.Second}
}

// witness records which node acts, and under which epoch.
type witness struct {
	t    *testing.T
	live heartbeat.Timing

	mu     sync.Mutex
	acting map[string]int64
	last   int64
	terms  int
	ended  []string
}

func (w *witness) enter(id string, epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.acting) > 0 || epoch <= w.last {
		w.t.Errorf("%s acts under epoch %d after %d, while these act: %v", id, epoch, w.last, w.acting)
	}
	w.acting[id], w.last = epoch, epoch
	w.terms++
}

func (w *witness) leave(id, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.acting, id)
	w.ended = append(w.ended, id+": "+why)
}

// leader returns the acting node, or "" if there is none, and the number of terms so far.
func (w *witness) leader() (id string, terms int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id = range w.acting {
		break
	}
	return id, w.terms
}

func (w *witness) await(what string, reached func() bool) {
	w.t.Helper()
	testsupport.AwaitNoError(w.t, what, func() error {
		if reached() {
			return nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return fmt.Errorf("terms ended: %v", w.ended)
	})
}

// stays fails the test if the leader changes within d.
func (w *witness) stays(during string, d time.Duration) {
	w.t.Helper()
	before, terms := w.leader()
	time.Sleep(d)
	if after, now := w.leader(); after != before || now != terms {
		w.t.Errorf("%s the lead went from %q to %q in %d terms: %v", during, before, after, now-terms, w.ended)
	}
}

// elect starts three electors on the servers, and returns when one of them leads.
func elect(t *testing.T, s servers) *witness {
	t.Helper()
	live := liveTiming()
	w := &witness{t: t, live: live, acting: map[string]int64{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var owners atomic.Int64
	for _, id := range []string{"a", "b", "c"} {
		lock := newLock(t, id, s.locks(t, "baton", id, live.TTL), quorum.Options{TTL: live.TTL, Margin: live.Margin})
		e, err := elector.New(lock, func(ctx context.Context, term *elector.Term) error {
			w.enter(id, term.Epoch())
			<-ctx.Done()
			w.leave(id, context.Cause(ctx).Error())
			return nil
		}, elector.Config{
			NodeID: id, Timing: live, PollInterval: live.Interval,
			NewOwner: func() (string, error) { return fmt.Sprintf("%s-owner-%d", id, owners.Add(1)), nil },
			Die:      func(reason string) { t.Errorf("%s: %s", id, reason) },
			Observe: func(ev elector.Event) {
				if ev.Kind == elector.EventStoreLost {
					t.Logf("%s: %v", id, ev.Err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = e.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	w.await("a first leader", func() bool { id, _ := w.leader(); return id != "" })
	w.everywhere(s)
	return w
}

// everywhere waits until all masters have granted the leader its lock. A master that was too slow to grant it also counts as broken, in
// addition to the masters that a test breaks.
func (w *witness) everywhere(s servers) {
	w.t.Helper()
	var conns []redis.Conn
	for _, r := range s {
		conns = append(conns, r.Conn())
	}
	w.await("every master to be the leader's", func() bool {
		owners := map[string]bool{}
		for _, c := range conns {
			owner, err := redis.String(c.Do("GET", "baton"))
			if err != nil && !errors.Is(err, redis.ErrNil) {
				w.t.Fatal(err)
			}
			owners[owner] = true
		}
		return len(owners) == 1 && !owners[""]
	})
}

func TestALeaderGoesOnWhileAMinorityOfMastersIsBroken(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5)
	w := elect(t, s)
	more := w.live.TTL * 9 / 8 // longer than a lease

	s[0].Kill()
	s[3].Kill()
	w.stays("while two masters are dead", more)
	s[0].Restart() // empty
	s[3].Restart()
	w.stays("after they are back, empty", w.live.TTL/2)
	w.everywhere(s)

	s[1].Freeze()
	s[4].Freeze()
	w.stays("while two masters hang", more)
	s[1].Thaw()
	s[4].Thaw()
	w.stays("after they go on", w.live.TTL/2)

	for i := range s {
		w.everywhere(s)
		s[i].Restart()
		w.stays(fmt.Sprintf("after master %d was restarted empty", i+1), 2*w.live.Interval+w.live.Timeout)
	}
}

func TestClocksOfAMinorityOfMastersMaySayWhatTheyLike(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5, testsupport.RedisClock())
	w := elect(t, s)
	s[0].StepClock(time.Hour)
	s[4].StepClock(-time.Hour)
	w.stays("with two clocks an hour off", w.live.TTL*6/5)
	w.everywhere(s)
	s[0].StepClock(-time.Hour)
	s[4].StepClock(time.Hour)
	w.stays("with the same two clocks off the other way", w.live.TTL*6/5)
	_, terms := w.leader()
	// A new leader under these clocks would have to wait, because its predecessor's leases last an hour on master 1.
	s.each(t, "SET", "baton", "thief", "PX", w.live.TTL.Milliseconds())
	w.await("the next term", func() bool { id, now := w.leader(); return id != "" && now > terms })
	w.stays("in the next term", w.live.TTL/2)
}

func TestWithoutAMajorityOfMastersNoNodeLeads(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5)
	w := elect(t, s)
	for _, c := range []struct {
		what       string
		take, give func(*testsupport.Redis)
	}{
		{"killed and restarted empty", (*testsupport.Redis).Kill, (*testsupport.Redis).Restart},
		{"hung", (*testsupport.Redis).Freeze, (*testsupport.Redis).Thaw},
	} {
		gone := time.Now()
		for _, r := range s[1:4] {
			c.take(r)
		}
		w.await("the leader to stop with three of five masters "+c.what, func() bool { id, _ := w.leader(); return id == "" })
		t.Logf("%s: the leader stopped after %v", c.what, time.Since(gone))
		time.Sleep(w.live.TTL / 2)
		if id, _ := w.leader(); id != "" {
			t.Errorf("%s leads with two of five masters", id)
		}
		back := time.Now()
		for _, r := range s[1:4] {
			c.give(r)
		}
		w.await("a leader after the masters are back", func() bool { id, _ := w.leader(); return id != "" })
		t.Logf("%s: somebody leads %v after they are back", c.what, time.Since(back))
		w.stays("after that", w.live.TTL/2)
	}
	if len(w.ended) == 0 || !strings.Contains(w.ended[0], "trust window closed") {
		t.Errorf("terms ended: %v", w.ended)
	}
}
