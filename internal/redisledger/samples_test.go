package redisledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func addSample(t *testing.T, l *Ledger, epoch int64, levels map[string]Level) {
	t.Helper()
	if err := l.AddSample(t.Context(), Sample{Epoch: epoch, NodeID: "a", Levels: levels}); err != nil {
		t.Fatal(err)
	}
}

func TestSamplesAreReadOnFromWhereOneWas(t *testing.T) {
	t.Parallel()
	_, l := ledgerRig(t)
	if got, next, epoch, err := l.Samples(t.Context(), "", 0); len(got) != 0 || next != "" || epoch != 0 || err != nil {
		t.Fatalf("before the first: %+v %q %d %v", got, next, epoch, err)
	}
	first := map[string]Level{"users": {Lag: 1500 * time.Millisecond, Backlog: 77}, "idle": {}, "full-pass": {Lag: time.Minute}}
	addSample(t, l, 7, first)
	got, next, epoch, err := l.Samples(t.Context(), "", 0)
	if err != nil || len(got) != 1 || next != got[0].ID || epoch != 7 {
		t.Fatalf("%+v %q %d %v", got, next, epoch, err)
	}
	if diff := cmp.Diff(first, got[0].Levels); diff != "" || time.Since(got[0].At).Abs() > time.Minute || got[0].NodeID != "a" {
		t.Errorf("%+v %s", got[0], diff)
	}
	for n := range 3 {
		addSample(t, l, 8, map[string]Level{"users": {Backlog: int64(n)}})
	}
	got, next, _, err = l.Samples(t.Context(), next, epoch)
	if err != nil || len(got) != 3 || got[0].Levels["users"].Backlog != 0 || got[2].Levels["users"].Backlog != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, again, _, err := l.Samples(t.Context(), next, 8); err != nil || len(got) != 0 || again != next {
		t.Errorf("nothing new: %+v %q %v, want %q", got, again, err, next)
	}
}

func TestASampleHasTheRowsThatWereWrittenSinceTheOneBefore(t *testing.T) {
	t.Parallel()
	g, l := ledgerRig(t)
	want := map[string]Level{"users": {Lag: time.Second, Backlog: 1, Rows: 5000}, "idle": {}, "quick": {Rows: 3}}
	addSample(t, l, 7, want) // the first sample of a term has no span
	if err := l.AddSample(t.Context(), Sample{Epoch: 7, Span: 15 * time.Second, Levels: want}); err != nil {
		t.Fatal(err)
	}
	for _, odd := range []string{"users -4\nquick x\nother 5\n\n", "users"} {
		g.Do("XADD", l.keys.Samples(), "*", "epoch", "7", "levels", "users\nquick\n", "span", "15000", "rows", odd)
	}
	g.Do("XADD", l.keys.Samples(), "*", "epoch", "7", "levels", "users\nquick\n", "span", "-1", "rows", "users 9\n")
	got, _, _, err := l.Samples(t.Context(), "", 0)
	if err != nil || len(got) != 5 || got[0].Span != 0 || got[0].Levels["users"].Rows != 0 || got[1].Span != 15*time.Second {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(want, got[1].Levels); diff != "" {
		t.Error(diff)
	}
	for _, s := range got[2:] {
		if s.Levels["users"].Rows != 0 || s.Levels["quick"].Rows != 0 || len(s.Levels) != 2 {
			t.Errorf("%+v", s)
		}
	}
}

func TestADeposedLeadersSampleIsLeftOut(t *testing.T) {
	t.Parallel()
	_, l := ledgerRig(t)
	for _, epoch := range []int64{7, 8, 7, 8} {
		addSample(t, l, epoch, map[string]Level{"users": {Backlog: epoch}})
	}
	got, _, highest, err := l.Samples(t.Context(), "", 0)
	if err != nil || len(got) != 3 || highest != 8 {
		t.Fatalf("%+v %d %v", got, highest, err)
	}
	addSample(t, l, 7, map[string]Level{"users": {}})
	if got, _, _, err := l.Samples(t.Context(), got[2].ID, highest); err != nil || len(got) != 0 {
		t.Errorf("read on: %+v, %v", got, err)
	}
}

func TestForeignSamplesAreSkipped(t *testing.T) {
	t.Parallel()
	g, l := ledgerRig(t)
	key := l.keys.Samples()
	g.Do("XADD", key, "*", "v", "0")
	g.Do("XADD", key, "*", "epoch", "many", "levels", "users 1 2\n")
	g.Do("XADD", key, "*", "epoch", "9007199254740992", "levels", "users 1 2\n")
	for _, levels := range []string{"", "users 1\n", "users -1 2\n", "users 1 -2\n", "users 1 2 3\n", "\n", " 1 2\n",
		"users 9223372036854775807 1\n"} {
		g.Do("XADD", key, "*", "epoch", "7", "levels", levels)
	}
	addSample(t, l, 7, map[string]Level{"users": {Backlog: 3}})
	g.Do("XADD", key, "*", "v", "0", "odd", "x")
	last := g.Do("XADD", key, "*", "epoch", "8")
	got, next, epoch, err := l.Samples(t.Context(), "", 0)
	if err != nil || len(got) != 1 || got[0].Levels["users"].Backlog != 3 || epoch != 7 {
		t.Fatalf("%+v %d, %v", got, epoch, err)
	}
	if want := fmt.Sprintf("%s", last); next != want {
		t.Errorf("reads on after %q, want %q: what cannot be read is not read twice", next, want)
	}
}

func TestAnHourOfManyJobsStaysSmall(t *testing.T) {
	t.Parallel()
	g, l := ledgerRig(t)
	levels := map[string]Level{}
	for n := range 200 {
		levels[fmt.Sprintf("sync-the-table-%03d", n)] = Level{
			Lag: time.Duration(n) * 1234 * time.Millisecond, Backlog: int64(n) * 99_991, Rows: int64(n) * 1001,
		}
	}
	began := time.Now()
	for range 400 {
		if err := l.AddSample(t.Context(), Sample{Epoch: 7, NodeID: "a", Span: SampleEvery, Levels: levels}); err != nil {
			t.Fatal(err)
		}
	}
	wrote, began := time.Since(began), time.Now()
	got, _, _, err := l.Samples(t.Context(), "", 0)
	read := time.Since(began)
	if err != nil || len(got) < keepSamples || len(got) > keepSamples+100 || len(got[0].Levels) != 200 {
		t.Fatalf("%d samples, %v", len(got), err)
	}
	bytes, _ := g.Do("MEMORY", "USAGE", l.keys.Samples(), "SAMPLES", 0).(int64)
	t.Logf("200 jobs: %d entries in %d bytes; one entry is %d bytes and takes %v, an hour is read in %v",
		len(got), bytes, len(encodeLevels(levels)), wrote/400, read)
	if bytes <= 0 || bytes > 4<<20 {
		t.Errorf("%d bytes", bytes)
	}
	if left, _ := g.Do("PTTL", l.keys.Samples()).(int64); left <= 0 || left > samplesAge.Milliseconds() {
		t.Errorf("expires in %d ms", left)
	}
}

func TestAFullRedisRefusesASample(t *testing.T) {
	t.Parallel()
	g, l := ledgerRig(t)
	g.Do("CONFIG", "SET", "maxmemory", "1")
	err := l.AddSample(t.Context(), Sample{Epoch: 7, Levels: map[string]Level{"users": {}}})
	if err == nil || !strings.Contains(err.Error(), "memory is full") {
		t.Errorf("%v", err)
	}
}
