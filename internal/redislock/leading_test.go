package redislock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// candidate is a node with a real elector and a real lock.
type candidate struct {
	elector *elector.Elector
	lock    *redislock.Lock
	mu      sync.Mutex
	ended   []string // the reasons for the ends of terms
	hints   atomic.Int64
	renewed atomic.Int64 // the number of renewals that succeeded
	failed  atomic.Int64 // the number of renewals that failed
	stop    func()       // ends the campaign or the term, and releases the lock
}

// campaign runs an elector until the test's end.
func campaign(t *testing.T, s *redisconn.Store, o redislock.LockOptions) *candidate {
	t.Helper()
	return campaignEvery(t, s, o, o.TTL/6)
}

// campaignEvery works like campaign, with the given interval between renewals.
func campaignEvery(t *testing.T, s *redisconn.Store, o redislock.LockOptions, interval time.Duration) *candidate {
	t.Helper()
	c := &candidate{lock: designedLock(t, s, o)}
	var owners atomic.Int64
	hints, heard := make(chan elector.Hint, 1), make(chan elector.Hint, 1)
	lead := func(ctx context.Context, _ *elector.Term) error {
		<-ctx.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = append(c.ended, context.Cause(ctx).Error())
		return nil
	}
	e, err := elector.New(c.lock, lead, elector.Config{
		NodeID: o.NodeID, PollInterval: o.TTL / 5, Hints: hints,
		Timing: heartbeat.Timing{TTL: o.TTL, Interval: interval, Timeout: o.TTL / 8, Margin: heartbeat.DefaultMargin(o.TTL),
			Drain: o.TTL / 10},
		NewOwner: func() (string, error) {
			return fmt.Sprintf("%s-%d", o.NodeID, owners.Add(1)), nil
		},
		Die: func(reason string) { t.Errorf("node %s would die: %s", o.NodeID, reason) },
		Observe: func(ev elector.Event) {
			switch {
			case ev.Kind != elector.EventRenewal:
			case ev.Err != nil:
				c.failed.Add(1)
				t.Logf("node %s: renewal: %v", o.NodeID, ev.Err)
			default:
				c.renewed.Add(1)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.elector = e
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	running.Go(func() { redislock.WatchAll(ctx, s, redislock.Watched{LockKey: o.Key, Hints: heard}) })
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case h := <-heard:
				c.hints.Add(1)
				select {
				case hints <- h:
				default:
				}
			}
		}
	})
	c.stop = func() { cancel(); running.Wait() }
	t.Cleanup(c.stop)
	return c
}

// term waits until the node leads.
func (c *candidate) term(t *testing.T) *elector.Term {
	t.Helper()
	testsupport.AwaitNoError(t, "the node leads", func() error {
		if c.elector.Leading() == nil {
			_, why := c.elector.Waiting()
			return fmt.Errorf("it does not; the store's trouble: %w; waiting: %s", c.elector.StoreTrouble(), why)
		}
		return nil
	})
	return c.elector.Leading()
}

// stillLeads fails the test if the term has ended, or another term has begun.
func (c *candidate) stillLeads(t *testing.T, term *elector.Term, when string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ended) > 0 || c.elector.Leading() != term || !term.Trusted() {
		t.Fatalf("%s the term has not gone on: terms ended by %q, trouble %v", when, c.ended, c.elector.StoreTrouble())
	}
}

// goesOnRenewing waits for two renewals, because only the second one was certainly sent after the call.
func (c *candidate) goesOnRenewing(t *testing.T, term *elector.Term, when string) {
	t.Helper()
	before := c.renewed.Load()
	testsupport.Await(t, "two renewals "+when, func() bool { return c.renewed.Load() >= before+2 })
	c.stillLeads(t, term, when)
}
