package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/quorum"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
)

// relay holds the events of nodes that hand the lead on.
type relay struct {
	t     *testing.T
	s     servers
	wins  chan string
	began chan time.Time
	ended chan time.Time
}

// join starts a node that hears the hints of all masters, and spreads its attempts as the daemon does. It returns when the node
// receives hints.
func (r *relay) join(ctx context.Context, wg *sync.WaitGroup, id string) {
	r.t.Helper()
	lasting := timing // no node leads because a lease has ended, or because it has asked without a hint
	lasting.TTL = time.Hour
	lock := newLock(r.t, id, r.s.locks(r.t, "baton", id, lasting.TTL), quorum.Options{TTL: lasting.TTL, Margin: lasting.Margin})
	hints := make(chan elector.Hint, 16)
	var owners atomic.Int64
	var listening atomic.Int32
	for _, server := range r.s {
		store, err := redisconn.Open(redisconn.Options{URL: server.URL()})
		if err != nil {
			r.t.Fatal(err)
		}
		wg.Go(func() {
			redislock.WatchAll(ctx, store, redislock.Watched{LockKey: "baton", Hints: hints, Listening: &listening})
			_ = store.Close()
		})
	}
	e, err := elector.New(lock, func(ctx context.Context, _ *elector.Term) error {
		r.began <- time.Now()
		r.wins <- id
		<-ctx.Done()
		r.ended <- time.Now()
		return nil
	}, elector.Config{
		NodeID: id, Timing: lasting, PollInterval: time.Hour, Hints: hints, HintSpread: 5 * time.Millisecond,
		Hinted:   func() bool { return int(listening.Load()) == len(r.s) },
		NewOwner: func() (string, error) { return fmt.Sprintf("%s-owner-%d", id, owners.Add(1)), nil },
		Die:      func(reason string) { r.t.Errorf("%s: %s", id, reason) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	wg.Go(func() { _ = e.Run(ctx) })
	testsupport.Await(r.t, "hints to be heard", func() bool { return int(listening.Load()) >= len(r.s) })
}

// stepDown sends the leader an order to step down, through the masters.
func (r *relay) stepDown() {
	r.t.Helper()
	testsupport.Await(r.t, "a master to know who leads", func() bool {
		for _, server := range r.s {
			store, err := redisconn.Open(redisconn.Options{URL: server.URL()})
			if err != nil {
				r.t.Fatal(err)
			}
			_, _, err = redislock.NewElection(store, "baton", script.String).StepDown(r.t.Context(), "", "test")
			_ = store.Close()
			if err == nil {
				return true
			}
			if !errors.Is(err, redislock.ErrNoLeader) {
				r.t.Fatal(err)
			}
		}
		return false
	})
}

func TestAStepDownIsSoonFollowedBySomebodyElse(t *testing.T) {
	t.Parallel()
	for _, masters := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d masters", masters), func(t *testing.T) {
			t.Parallel()
			const rounds = 10
			r := &relay{t: t, s: startServers(t, masters), wins: make(chan string, 9), began: make(chan time.Time, 9), ended: make(chan time.Time, 9)}
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			t.Cleanup(func() { cancel(); wg.Wait() })
			for _, id := range []string{"a", "b", "c"} {
				r.join(ctx, &wg, id)
			}
			leader := testsupport.Receive(t, "the first leader", r.wins)
			<-r.began
			var took []time.Duration
			for range rounds {
				time.Sleep(150 * time.Millisecond)
				r.stepDown()
				gone := testsupport.Receive(t, "the end of the term of "+leader, r.ended)
				took = append(took, testsupport.Receive(t, "a term after that of "+leader, r.began).Sub(gone))
				next := <-r.wins
				if next == leader {
					t.Errorf("%s stepped down, and leads again", leader)
				}
				leader = next
			}
			slices.Sort(took)
			t.Logf("3 nodes on %d masters: p50 %v, max %v", masters, took[rounds/2], took[rounds-1])
		})
	}
}
