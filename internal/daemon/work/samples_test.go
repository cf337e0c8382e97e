package work

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/redisledger"
	"baton/internal/testsupport"
)

// If Redis refuses the samples, nothing else is affected.
func TestARedisThatRefusesSamplesIsToldOfOnce(t *testing.T) {
	core, logs := recorder.New(zapcore.DebugLevel)
	store := redistest.Open(t, redisconn.Options{URL: "redis://127.0.0.1:1/0"})
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
	for after := time.Duration(0); after < time.Hour; after += GaugeEvery + 10*time.Millisecond {
		if now := began.Add(after); s.due(now) {
			taken, s.last = taken+1, now
		}
	}
	if taken < 239 || taken > 240 {
		t.Errorf("%d samples in an hour", taken)
	}
}

// samplesOf returns the memories of the samples of locks in a Redis.
func samplesOf(t *testing.T, server *testsupport.Redis, locks ...string) (of []*Samples) {
	t.Helper()
	store := redistest.Open(t, redisconn.Options{URL: server.URL()})
	for _, key := range locks {
		of = append(of, NewSamples(key, redisledger.NewLedger(store, redisledger.LedgerOptions{LockKey: key})))
	}
	return of
}

func TestSamplesOfAllLocksAreOneSeries(t *testing.T) {
	t.Parallel()
	server := testsupport.StartRedis(t)
	of := samplesOf(t, server, "baton", "second")
	for at := range 6 {
		add(t, of[at%2].ledger, 7, fmt.Sprintf("job-%d", at))
	}
	samples, err := Merged(t.Context(), time.Time{}, of)
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
	for _, one := range of {
		one.read = time.Time{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if samples, err := Merged(ctx, time.Time{}, of); err == nil || len(samples) != 6 {
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
	of := samplesOf(t, server, "baton")
	one := of[0]
	count := func() int {
		samples, err := Merged(t.Context(), time.Time{}, of)
		if err != nil {
			t.Fatal(err)
		}
		return len(samples)
	}
	add(t, one.ledger, 7, "views")
	if got := count(); got != 1 {
		t.Fatalf("%d samples", got)
	}
	add(t, one.ledger, 7, "views")
	if got := count(); got != 1 {
		t.Errorf("%d samples: redis was asked again at once", got)
	}
	one.read = time.Time{}
	if got := count(); got != 2 {
		t.Errorf("%d samples after a while", got)
	}

	// Redis has lost its data, and its clock went back, so that ids are lower now.
	server.Client(t).Do("DEL", "{baton}:samples")
	server.Client(t).Do("XADD", "{baton}:samples", "1000-0", "epoch", "3", "node", "a", "levels", "views\n")
	one.read = time.Time{}
	if got := count(); got != 2 {
		t.Errorf("%d samples just after the loss", got)
	}
	one.read, one.renewed = time.Time{}, time.Now().Add(-samplesReread-time.Second)
	if got := count(); got != 1 {
		t.Errorf("%d samples a while after the loss, want the new one alone", got)
	}
}

// A leader adds its levels with its own name and term, when a sample is due and not before.
func TestASampleSaysWhoTookItAndIsTakenOnce(t *testing.T) {
	server := testsupport.StartRedis(t)
	of := samplesOf(t, server, "baton")
	ledger := of[0].ledger
	s := sampler{log: zap.NewNop(), ledger: ledger, nodeID: "db1", epoch: 42}
	levels := map[string]redisledger.Level{"views": {Lag: 1500 * time.Millisecond, Backlog: 7}}
	s.take(t.Context(), nil) // no flush was measured
	s.take(t.Context(), levels)
	s.take(t.Context(), levels)
	all, _, _, err := ledger.Samples(t.Context(), "", 0)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := all[0]; got.NodeID != "db1" || got.Epoch != 42 || got.Levels["views"] != levels["views"] {
		t.Errorf("%+v", got)
	}
	if told, err := Merged(t.Context(), time.Time{}, of); err != nil || len(told) != 1 || told[0].Jobs["views"].LagSeconds != 1.5 || told[0].Jobs["views"].Backlog != 7 {
		t.Errorf("%+v, %v", told, err)
	}
}

// The rows of a sample are the rows since the previous sample, even if the job begins to count again from zero.
func TestASampleSaysHowManyRowsWereWrittenSinceTheLast(t *testing.T) {
	of := samplesOf(t, testsupport.StartRedis(t), "baton")
	s := sampler{log: zap.NewNop(), ledger: of[0].ledger, nodeID: "db1", epoch: 42}
	for _, all := range []int64{7, 1507, 1507, 30} {
		if !s.last.IsZero() {
			s.last = time.Now().Add(-redisledger.SampleEvery)
		}
		s.take(t.Context(), map[string]redisledger.Level{"views": {Rows: all}})
	}
	told, err := Merged(t.Context(), time.Time{}, of)
	if err != nil || len(told) != 4 || told[0].Jobs["views"].RowsPerSecond != nil {
		t.Fatalf("%+v, %v", told, err)
	}
	for i, want := range []float64{1500 / 15.0, 0, 30 / 15.0} {
		if got := told[i+1].Jobs["views"].RowsPerSecond; got == nil || *got < want*0.9 || *got > want*1.001 {
			t.Errorf("sample %d: %v rows a second, want %.1f", i+1, got, want)
		}
	}
}

// Samples that are older than an hour by Redis' clock are dropped, and the samples of several locks are in the order of time.
func TestSamplesAreOfTheLastHourAndInOrder(t *testing.T) {
	server := testsupport.StartRedis(t)
	of := samplesOf(t, server, "baton", "second")
	newest := time.Now().Add(-24 * time.Hour).Truncate(time.Second) // the clock is a day behind
	for i, ago := range []time.Duration{time.Hour + 2*time.Minute, time.Hour, time.Minute, 30 * time.Second, 0} {
		for j, key := range []string{"baton", "second"} {
			at := newest.Add(-ago).UnixMilli() - int64(10*j)
			server.Client(t).Do("XADD", "{"+key+"}:samples", fmt.Sprintf("%d-0", at), "epoch", "3", "node", "a",
				"levels", fmt.Sprintf("job%d%d 1 2\n", i, j))
		}
	}
	all, err := Merged(t.Context(), time.Time{}, of)
	if err != nil || len(all) != 8 {
		t.Fatalf("%d samples, %v", len(all), err)
	}
	var at []int64
	for _, s := range all {
		at = append(at, s.At.UnixMilli())
	}
	if !slices.IsSorted(at) || !all[7].At.Equal(newest) {
		t.Errorf("%d", at)
	}
	later, err := Merged(t.Context(), newest.Add(-30*time.Second), of)
	if err != nil || len(later) != 2 {
		t.Errorf("%d later than half a minute before the last, %v", len(later), err)
	}
}
