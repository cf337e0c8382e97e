package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/internal/elector"
	"baton/internal/heartbeat"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/redislock/script"
	"baton/internal/testsupport"
	"baton/internal/testsupport/locktest"
)

func TestALockOnASharedConnectionConforms(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	locktest.RunLive(t, func(t *testing.T, ttl time.Duration) locktest.Harness {
		s, key := open(t, r), fmt.Sprint("lock:", t.Name(), ttl)
		node := func(id string) *redislock.Lock {
			// Each node acts like a separate process, so it has its own shared connection.
			return designedLock(t, s, redislock.LockOptions{Key: key, NodeID: id, TTL: ttl, Shared: redisconn.NewShared(s)})
		}
		return locktest.Harness{
			TTL: ttl, A: node("a"), B: node("b"), C: node("c"), Sleep: time.Sleep,
			Flush: func() {
				r.Client(t).Do("FLUSHALL")
			},
			StepDown: func(to, reason string) error {
				_, _, err := redislock.NewElection(s, key, script.String).StepDown(t.Context(), to, reason)
				return err
			},
		}
	})
}

func TestAProcessCampaignsForAKeyOnce(t *testing.T) {
	s := open(t, testsupport.StartRedis(t))
	shared := redisconn.NewShared(s)
	o := redislock.LockOptions{Key: "baton", NodeID: "a", TTL: time.Second, Shared: shared}
	first := designedLock(t, s, o)
	if _, err := redislock.NewLock(s, o); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second lock for the key: %v; want it refused", err)
	}
	first.Close()
	if _, err := redislock.NewLock(s, o); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
}

// many leads many locks from one process until stop is called, and returns when all of them lead. It counts the successful renewals of
// each lock.
func many(t *testing.T, s *redisconn.Store, shared *redisconn.Shared, n int, timing heartbeat.Timing,
	ended func(key string)) (renewed []atomic.Int64, stop func()) {
	t.Helper()
	renewed = make([]atomic.Int64, n)
	ctx, cancel := context.WithCancel(t.Context())
	beat := &heartbeat.Beat{}
	var wg, won sync.WaitGroup
	won.Add(n)
	for i := range n {
		key := fmt.Sprintf("lock-%d", i)
		lock := designedLock(t, s, redislock.LockOptions{Key: key, NodeID: "a", TTL: timing.TTL, Shared: shared})
		first := sync.OnceFunc(won.Done)
		var owners atomic.Int64
		e, err := elector.New(lock, func(ctx context.Context, _ *elector.Term) error {
			first()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), elector.ErrShuttingDown) {
				ended(fmt.Sprintf("%s: %v", key, context.Cause(ctx)))
			}
			return nil
		}, elector.Config{
			NodeID: "a", Timing: timing, PollInterval: time.Second, Beat: beat,
			NewOwner: func() (string, error) { return fmt.Sprintf("%s-%d", key, owners.Add(1)), nil },
			Die:      func(reason string) { ended(key + " died: " + reason) },
			Observe: func(ev elector.Event) {
				if ev.Kind == elector.EventRenewal && ev.Err == nil {
					renewed[i].Add(1)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _ = e.Run(ctx) })
	}
	won.Wait()
	return renewed, func() {
		cancel()
		wg.Wait()
	}
}

// awaitRenewals waits until each lock has been renewed the given number of times after the call.
func awaitRenewals(t *testing.T, renewed []atomic.Int64, times int64) {
	t.Helper()
	until := make([]int64, len(renewed))
	for i := range renewed {
		until[i] = renewed[i].Load() + times
	}
	for i := range renewed {
		testsupport.Await(t, fmt.Sprintf("%d renewals of lock %d", times, i), func() bool { return renewed[i].Load() >= until[i] })
	}
}

// The renewals of a hundred locks of a process need one round trip per interval.
func TestRenewalsOfManyLocksShareARoundTrip(t *testing.T) {
	t.Parallel()
	const locks, intervals = 100, 8
	s := open(t, testsupport.StartRedis(t))
	shared := redisconn.NewShared(s)
	timing := heartbeat.Timing{
		TTL: 20 * time.Second, Interval: 300 * time.Millisecond, Timeout: time.Second,
		Margin: heartbeat.DefaultMargin(20 * time.Second), Drain: time.Second,
	}
	renewed, stop := many(t, s, shared, locks, timing, func(what string) { t.Error(what) })
	count := func() (all int64) {
		for i := range renewed {
			all += renewed[i].Load()
		}
		return all
	}
	awaitRenewals(t, renewed, 1)
	renewals, trips := count(), shared.RoundTrips()
	awaitRenewals(t, renewed, intervals)
	trips, renewals = shared.RoundTrips()-trips, count()-renewals
	t.Logf("%d renewals: %d round trips", renewals, trips)
	stop()
	// If other programs also use the processors, some of the hundred renewals come a moment too late for the common round trip.
	if trips > renewals/8 {
		t.Errorf("%d round trips for %d renewals; want about one for each hundred, not one a lock", trips, renewals)
	}
}

// If the connection of many locks is cut, hangs, or is forgotten by a firewall, no term may end.
func TestManyLocksSurviveTheirConnection(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	proxy := r.Proxy()
	s := redistest.Open(t, redisconn.Options{URL: r.URLThrough(proxy), ClientName: "baton-test", Timeout: time.Second})
	const ttl = 30 * time.Second
	timing := heartbeat.Timing{TTL: ttl, Interval: ttl / 100, Timeout: ttl / 50, Margin: heartbeat.DefaultMargin(ttl), Drain: ttl / 5}
	renewed, stop := many(t, s, redisconn.NewShared(s), 50, timing, func(what string) { t.Error(what) })
	for range 6 {
		time.Sleep(rand.N(timing.Timeout))
		if rand.IntN(2) == 0 {
			proxy.Cut()
			continue
		}
		proxy.Hang()
		time.Sleep(timing.Timeout * 4 / 3)
		proxy.Unhang()
	}
	awaitRenewals(t, renewed, 2) // the second renewal was sent after the last fault
	stop()
}
