package daemon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/config"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
)

// looker is a node that takes part in nothing: it looks on.
func looker(t *testing.T, c config.Config) *node {
	t.Helper()
	n := newNode(c.WithDefaults(), Options{Version: "test", Logger: zap.NewNop(), Getenv: func(string) (string, bool) { return "", false }})
	err := n.open(n.config)
	if err == nil {
		err = n.join(t.Context())
	}
	t.Cleanup(n.close)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSamplesGoOnWhenAnotherNodeLeads(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "0 0 29 2 *") // hardly ever: what is there waits
	l.do("HSET", "views", "1", "10", "2", "20")
	for n, id := range []string{"a", "b"} {
		l.config.Node.ID = id
		r := l.start()
		look := looker(t, l.config)
		await(t, "a sample of "+id, func() bool {
			samples, err := look.samples(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			return len(samples) == n+1 && samples[n].Jobs["views"].Backlog == 2 && time.Since(samples[n].At).Abs() < time.Minute
		})
		samples, err := look.samples(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if later, err := look.samples(t.Context(), samples[n].At); err != nil || len(later) != 0 {
			t.Errorf("later than the last: %+v, %v", later, err)
		}
		r.stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
	}
}

func TestSamplesOfAllLocksAreOneSeries(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	c := flushing(configFor(server.URL()), "sqlite", testsupport.SQLite(t).DSN)
	other := c.Jobs[0]
	other.Name, other.Lock, other.Flush.From.Key = "reports", "second", "reports"
	c.Jobs = append(c.Jobs, other)
	n := looker(t, c)
	if len(n.all()) != 2 {
		t.Fatalf("%d elections", len(n.all()))
	}
	for at := range 6 {
		one := n.all()[at%2]
		add(t, one.ledger, 7, fmt.Sprintf("job-%d", at))
	}
	samples, err := n.samples(t.Context(), time.Time{})
	if err != nil || len(samples) != 6 {
		t.Fatalf("%+v, %v", samples, err)
	}
	for at := 1; at < 6; at++ {
		if samples[at].At.Before(samples[at-1].At) {
			t.Errorf("sample %d is older than the one before", at)
		}
	}
	server.Freeze()
	defer server.Thaw()
	for _, one := range n.all() {
		one.book.read = time.Time{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if samples, err := n.samples(ctx, time.Time{}); err == nil || len(samples) != 6 {
		t.Errorf("while redis hangs: %d samples, %v; want those that are known, and an error", len(samples), err)
	}
}

// add adds a sample of one job.
func add(t *testing.T, l *redisledger.Ledger, epoch int64, job string) {
	t.Helper()
	if err := l.AddSample(t.Context(), redisledger.Sample{NodeID: "a", Epoch: epoch, Levels: map[string]redisledger.Level{job: {Backlog: 1}}}); err != nil {
		t.Fatal(err)
	}
}

func TestSamplesAreReadOnlyWhenSomebodyAsksAndThenOnce(t *testing.T) {
	server := testsupport.StartRedis(t)
	n := looker(t, flushing(configFor(server.URL()), "sqlite", testsupport.SQLite(t).DSN))
	c := n.all()[0]
	count := func() int {
		samples, err := n.samples(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return len(samples)
	}
	add(t, c.ledger, 7, "views")
	if got := count(); got != 1 {
		t.Fatalf("%d samples", got)
	}
	add(t, c.ledger, 7, "views")
	if got := count(); got != 1 {
		t.Errorf("%d samples: redis was asked again at once", got)
	}
	c.book.read = time.Time{}
	if got := count(); got != 2 {
		t.Errorf("%d samples after a while", got)
	}

	// Redis lost its data, and its clock went back: ids are lower now.
	if _, err := server.Conn().Do("DEL", "{baton}:samples"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Conn().Do("XADD", "{baton}:samples", "1000-0", "epoch", "3", "node", "a", "levels", "views\n"); err != nil {
		t.Fatal(err)
	}
	c.book.read = time.Time{}
	if got := count(); got != 2 {
		t.Errorf("%d samples just after the loss", got)
	}
	c.book.read, c.book.renewed = time.Time{}, time.Now().Add(-samplesReread-time.Second)
	if got := count(); got != 1 {
		t.Errorf("%d samples a while after the loss, want the new one alone", got)
	}
}

// What Redis does to the samples is nobody's business but theirs.
func TestARedisThatRefusesSamplesIsToldOfOnce(t *testing.T) {
	core, logs := recorder.New(zapcore.DebugLevel)
	store, err := redisconn.Open(redisconn.Options{URL: "redis://127.0.0.1:1/0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := sampler{log: zap.New(core), ledger: redisledger.NewLedger(store, redisledger.LedgerOptions{LockKey: "baton"})}
	for range 3 {
		s.last = time.Time{}
		s.take(t.Context(), map[string]redisledger.Level{"views": {}})
	}
	if n := logs.Len(); n != 1 || logs.All()[0].Level != zapcore.DebugLevel {
		t.Errorf("%d messages: %v", n, logs.All())
	}
}

func TestASampleIsTakenEveryFifteenSeconds(t *testing.T) {
	var s sampler
	taken, began := 0, time.Now()
	for after := time.Duration(0); after < time.Hour; after += gaugeEvery + 10*time.Millisecond {
		if now := began.Add(after); s.due(now) {
			taken, s.last = taken+1, now
		}
	}
	if taken < 239 || taken > 240 {
		t.Errorf("%d samples in an hour", taken)
	}
}
