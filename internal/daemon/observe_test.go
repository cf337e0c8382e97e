package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"baton/internal/config"
	"baton/internal/daemon/abdication"
	"baton/internal/daemon/epochs"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redislock"
	"baton/internal/status/metrics"
	"baton/internal/testsupport/collector"
	"baton/internal/trace"
)

// stuck is a log whose reader has stopped.
type stuck struct{ hang chan struct{} }

func (s stuck) Write(text []byte) (int, error) { <-s.hang; return len(text), nil }
func (s stuck) Sync() error                    { <-s.hang; return nil }

func TestAProcessThatMustDieDoesNotWaitForItsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stuck{hang: make(chan struct{})}
		defer close(w.hang)
		log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(w), zap.InfoLevel))
		code := make(chan int, 1)
		began := time.Now()
		go die(log, "its work goes on", func(c int) { code <- c })
		if c, took := <-code, time.Since(began); c != ExitCannotStop || took > logWithin {
			t.Errorf("exit code %d after %v", c, took)
		}
	})
}

// newObserver returns an observer of a node that has never led. told collects the messages to systemd.
func newObserver(t *testing.T) (o *observer, told *[]string) {
	t.Helper()
	store := redistest.Open(t, redisconn.Options{URL: "redis://127.0.0.1:1/0"})
	lock, err := redislock.NewLock(store, redislock.LockOptions{Key: "baton", NodeID: "a", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	lead := func(context.Context, *elector.Term) error { return nil }
	el, err := elector.New(lock, lead, elector.Config{
		NodeID: "a", Timing: site.Timing(config.Config{}.WithDefaults().Election), PollInterval: time.Second, NewOwner: site.NewID, Die: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	told = new([]string)
	return &observer{
		log: zap.NewNop(), metrics: metrics.New("test", nil).Election("baton"), elector: el, lockKey: "baton", coolDown: &abdication.CoolDown{}, epochs: epochs.Open("", "baton", &epochs.File{}, zap.NewNop()),
		notify: func(state string) { *told = append(*told, state) },
	}, told
}

func TestSystemdIsToldWhatTheNodeDoesAndWhatItWaitsFor(t *testing.T) {
	o, told := newObserver(t)
	steps := []struct {
		event elector.Event
		want  string
	}{
		{elector.Event{Kind: elector.EventStandby, Holder: "b"}, "standby, leader b"},
		{elector.Event{Kind: elector.EventStandby}, "standby, the lock is held by a client that is not baton"},
		{elector.Event{Kind: elector.EventWon, Epoch: 7}, "leading epoch 7"},
		{elector.Event{Kind: elector.EventRenewal, Epoch: 12}, "leading epoch 12"},
		{elector.Event{Kind: elector.EventWon, Epoch: 7}, "leading epoch 7"},
		{elector.Event{Kind: elector.EventStoreLost, Err: errors.New("refused")}, "leading epoch 7; waiting for redis"},
		{elector.Event{Kind: elector.EventStoreBack}, "leading epoch 7"},
		{elector.Event{Kind: elector.EventStoreLost, Err: errors.New("refused")}, "leading epoch 7; waiting for redis"},
		{elector.Event{Kind: elector.EventStopping, Reason: "no renewal"}, "stopping: no renewal; waiting for redis"},
		{elector.Event{Kind: elector.EventExpired, Epoch: 7}, "standby; waiting for redis"},
		{elector.Event{Kind: elector.EventStoreBack}, "standby"},
		{elector.Event{Kind: elector.EventWaiting, Reason: "paused by alice: upgrade"}, "standby, no node leads: paused by alice: upgrade"},
	}
	for _, s := range steps {
		o.observe(s.event)
		if got := (*told)[len(*told)-1]; got != s.want {
			t.Errorf("after %s systemd knows %q, want %q", s.event.Kind, got, s.want)
		}
	}
}

// Any client that can write to Redis can set a reason, and a separate line in the reason would be an order to systemd.
func TestAReasonCannotOrderSystemdAround(t *testing.T) {
	o, told := newObserver(t)
	o.observe(elector.Event{Kind: elector.EventStopping, Reason: "drill\nWATCHDOG=trigger\r\nMAINPID=1"})
	o.observe(elector.Event{Kind: elector.EventStandby, Holder: "b\nSTOPPING=1"})
	for _, state := range *told {
		if strings.ContainsAny(state, "\r\n") {
			t.Errorf("systemd was told several things: %q", state)
		}
	}
}

func TestATermIsASpanOnceItHasEnded(t *testing.T) {
	c := collector.Start(t)
	settings, problems := trace.FromEnvironment(func(name string) (string, bool) { return c.URL, name == "OTEL_EXPORTER_OTLP_ENDPOINT" })
	if settings == nil {
		t.Fatal(problems)
	}
	const owner = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	for kind, failed := range map[elector.EventKind]bool{
		elector.EventLost: true, elector.EventExpired: true, elector.EventSteppedDown: false, elector.EventReleased: false,
	} {
		o, _ := newObserver(t)
		o.traces, o.nodeID = trace.NewTracer(settings, trace.Options{Log: zap.NewNop(), Count: func(trace.Outcome, int) {}}), "a"
		o.observe(elector.Event{Kind: elector.EventStandby, Holder: "b"})
		o.observe(elector.Event{Kind: elector.EventWon, Owner: owner, Epoch: 7})
		o.observe(elector.Event{Kind: elector.EventStopping, Owner: owner, Epoch: 9, Reason: "why"})
		o.observe(elector.Event{Kind: kind, Owner: owner, Epoch: 9, Reason: "why"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.traces.Run(ctx) // sends the collected spans, and returns
		spans := c.Spans()
		last := spans[len(spans)-1]
		if a := last.Attributes; last.Name != "term" || a["baton.ended"] != string(kind) || a["baton.epoch"] != "9" || a["baton.reason"] != "why" || last.Failed() != failed ||
			last.TraceID() != strings.ReplaceAll(owner, "-", "") {
			t.Errorf("%s: %v", kind, last)
		}
	}
	if n := len(c.Spans()); n != 4 {
		t.Errorf("%d spans of 4 terms", n)
	}
}
