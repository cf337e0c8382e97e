package quorum_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/testsupport/fakelock"
)

var timing = heartbeat.Timing{
	TTL: 10 * time.Second, Interval: 2 * time.Second, Timeout: time.Second,
	Margin: 350 * time.Millisecond, Drain: 2 * time.Second,
}

const poll = 2 * time.Second

// node is an elector on a quorum, inside a synctest bubble.
type node struct {
	*elector.Elector
	id   string
	stop func()
	died atomic.Int64
	mu   sync.Mutex
	told map[elector.EventKind]int
}

func start(t *testing.T, id string, lock elector.Lock, hints <-chan elector.Hint, lead elector.LeadFunc) *node {
	t.Helper()
	if lead == nil {
		lead = func(ctx context.Context, _ *elector.Term) error { <-ctx.Done(); return nil }
	}
	n := &node{id: id, told: map[elector.EventKind]int{}}
	began := time.Now()
	owners := 0
	e, err := elector.New(lock, lead, elector.Config{
		NodeID: id, Timing: timing, PollInterval: poll, Hints: hints,
		NewOwner: func() (string, error) { owners++; return fmt.Sprintf("%s-%d", id, owners), nil },
		Clock:    func() heartbeat.Instant { return heartbeat.Instant(time.Since(began)) },
		Die:      func(string) { n.died.Add(1) },
		Observe: func(ev elector.Event) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.told[ev.Kind]++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Elector = e
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.Run(ctx); err != nil {
			t.Errorf("node %s: %v", id, err)
		}
	}()
	n.stop = func() { cancel(); <-done }
	return n
}

func (n *node) heard(kind elector.EventKind) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.told[kind]
}

// hints joins the hints of all masters, as the daemon does.
func (m masters) hints(ctx context.Context) <-chan elector.Hint {
	all := make(chan elector.Hint, 16)
	for _, s := range m {
		one := s.Hints()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case h := <-one:
					select {
					case all <- h:
					default:
					}
				}
			}
		}()
	}
	return all
}

// weather gives a fault to each request on one link, from a node to a master. The fault changes every few seconds.
type weather struct {
	mu    sync.Mutex
	rng   *rand.Rand
	until time.Time
	mood  int
}

func (w *weather) fault() fakelock.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().After(w.until) {
		w.mood = w.rng.IntN(12)
		w.until = time.Now().Add(w.delay(15 * time.Second))
	}
	f := fakelock.Fault{Before: w.delay(5 * time.Millisecond), After: w.delay(5 * time.Millisecond)}
	switch w.mood {
	case 1: // a slow network: requests arrive after the caller has given up
		f.Before, f.After = w.delay(12*time.Second), w.delay(2*time.Second)
	case 2: // a slow network, but not so slow that no attempt is decided
		f.Before, f.After = w.delay(400*time.Millisecond), w.delay(400*time.Millisecond)
	case 3: // a lossy one
		f.LoseRequest, f.LoseReply = w.rng.IntN(3) == 0, w.rng.IntN(3) == 0
	case 4: // cut
		f.LoseRequest = true
	case 5: // cut one way
		f.LoseReply = true
	case 6: // a master that sometimes refuses
		f.Refuse = w.rng.IntN(2) == 0
	case 7: // a driver that hangs beyond its deadline
		f.Deaf, f.Before, f.After = true, w.delay(3*time.Second), w.delay(3*time.Second)
	}
	return f
}

func (w *weather) delay(limit time.Duration) time.Duration {
	return time.Duration(w.rng.Int64N(int64(limit)))
}

// TestTwoNodesNeverActAtOnce lets four nodes contend for twenty minutes of bubble time, with different faults between each node and
// each of five masters. Masters hang, and restart with and without their data. MODEL_ROUNDS sets the number of rounds. MODEL_SEED
// repeats a round with the seed that it printed.
func TestTwoNodesNeverActAtOnce(t *testing.T) {
	t.Parallel()
	seed, rounds := rand.Uint64(), uint64(2) // one round with three masters and one with five
	if os.Getenv("BATON_TEST_LONG") != "" {
		rounds = 30
	}
	if n, err := strconv.ParseUint(os.Getenv("MODEL_ROUNDS"), 10, 32); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("MODEL_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	for round := range rounds {
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { contend(t, seed+round) })
		})
	}
}

func contend(t *testing.T, seed uint64) {
	n := []int{3, 5}[seed%2]
	w := fakelock.NewWorld(t, seed, timing.Drain)
	m := newMasters(n, timing.TTL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rng := rand.New(rand.NewPCG(seed, 1))
	hung := make([]atomic.Bool, n)
	var nodes []*node
	for i := range 4 {
		id := string(rune('a' + i))
		sky := make([]*weather, n)
		for j := range sky {
			sky[j] = &weather{rng: rand.New(rand.NewPCG(seed, uint64(100+10*i+j)))}
		}
		lock := m.lock(t, id, timing.TTL, func(master int, _ string) fakelock.Fault {
			f := sky[master].fault()
			if hung[master].Load() {
				return fakelock.Fault{LoseRequest: true}
			}
			return f
		})
		nodes = append(nodes, start(t, id, lock, m.hints(ctx), func(ctx context.Context, term *elector.Term) error {
			return w.Act(ctx, id, term)
		}))
	}
	for end := time.Now().Add(20 * time.Minute); time.Now().Before(end); {
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Second))))
		switch one := rng.IntN(n); rng.IntN(6) {
		case 0:
			m.order(elector.Order{StepDown: true, To: []string{"", "a", "b"}[rng.IntN(3)]})
		case 1: // only one master receives the order
			m[one].Order(elector.Order{StepDown: true})
		case 2:
			m[one].Restart(true)
		case 3:
			m[one].Restart(false)
		case 4:
			hung[one].Store(true)
			time.AfterFunc(time.Duration(rng.Int64N(int64(30*time.Second))), func() { hung[one].Store(false) })
		}
	}
	for _, n := range nodes {
		n.stop()
		if n.died.Load() > 0 {
			t.Errorf("seed %d: node %s died although its work always returns", seed, n.id)
		}
	}
	if w.Terms() < 20 {
		t.Errorf("seed %d: only %d terms: the weather was too good, or too bad, to test anything", seed, w.Terms())
	}
	t.Logf("%d terms", w.Terms())
	cancel()
	time.Sleep(time.Minute) // the last requests are still on their way
}
