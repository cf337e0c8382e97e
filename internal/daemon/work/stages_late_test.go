package work

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/elector"
	"baton/internal/flush/source/staging"
	"baton/internal/heartbeat"
	"baton/internal/job"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
	"baton/internal/testsupport/fakelock"
)

// A leader is suspended before it reads the list of stages. When it wakes up, the next leader has noted the stage of a job that the first
// leader does not know. The first leader must not remove that stage from the list.
func TestALeaderPastItsTrustWindowForgetsNoStage(t *testing.T) {
	store := redistest.Open(t, redisconn.Options{URL: testsupport.StartRedis(t).URL(), ClientName: "baton-test"})
	ledger := redisledger.NewLedger(store, redisledger.LedgerOptions{LockKey: "baton"})
	stages := staging.NewStages(func() map[string]*redisconn.Store { return map[string]*redisconn.Store{"": store} }, ledger)
	var now atomic.Int64
	lead := func(_ context.Context, term *elector.Term) error {
		w := Lock{Log: zap.NewNop(), Stages: stages, Runner: job.NewRunner(nil, nil, job.Config{})}.Begin(term)
		for _, c := range []struct {
			at   time.Duration
			left int
		}{{0, 0}, {time.Hour, 1}} {
			now.Store(int64(c.at))
			if err := stages.Note(t.Context(), map[staging.Location]string{{Key: "views"}: "views"}); err != nil {
				t.Error(err)
			}
			w.logStages(t.Context(), nil, map[staging.Location]bool{}, 0)
			if noted, _, err := ledger.NotedStages(t.Context()); err != nil || len(noted) != c.left {
				t.Errorf("%v after the renewal the list has %v, %v, want %d stages", c.at, noted, err, c.left)
			}
		}
		return nil
	}
	timing := heartbeat.Timing{TTL: time.Hour, Interval: time.Minute, Timeout: time.Second, Margin: time.Minute, Drain: time.Minute}
	ctx, cancel := context.WithCancel(t.Context())
	e, err := elector.New(fakelock.NewStore(timing.TTL).Node("a", nil), func(ctx context.Context, term *elector.Term) error {
		defer cancel()
		return lead(ctx, term)
	}, elector.Config{
		NodeID: "a", Timing: timing, PollInterval: time.Hour, NewOwner: func() (string, error) { return "a-1", nil },
		Clock: func() heartbeat.Instant { return heartbeat.Instant(now.Load()) }, Die: func(why string) { t.Error(why) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(ctx); err != nil {
		t.Error(err)
	}
}
