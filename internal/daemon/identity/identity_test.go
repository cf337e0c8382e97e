package identity

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/redislock"
)

func TestWhatAnEarlierProcessHasLeftIsNoTwin(t *testing.T) {
	core, logs := recorder.New(zapcore.InfoLevel)
	i := New("a", zap.New(core))
	now := time.UnixMilli(1_000_000)
	entry := func(instance string, seen int64) redislock.ElectionState {
		n := redislock.Node{ID: "a", SeenMS: seen}
		n.Instance = instance
		return redislock.ElectionState{Now: now, Nodes: []redislock.Node{n, {ID: "b", SeenMS: seen}}}
	}
	for _, p := range []redislock.ElectionState{
		entry("before", 10), entry("before", 10), // left behind while Redis accepted no writes
		entry(i.instance, 20), entry(i.instance, 30), entry("", 40),
	} {
		if i.compare(p, now) || i.twin != "" {
			t.Fatalf("after %+v: twin %q", p.Nodes, i.twin)
		}
	}
	if !i.compare(entry("other", 50), now) || i.twin != "other" || logs.Len() != 1 {
		t.Errorf("twin %q, told %d times", i.twin, logs.Len())
	}
	if i.compare(entry("other", 60), now) || logs.Len() != 1 {
		t.Errorf("told %d times", logs.Len())
	}
	if !i.compare(entry(i.instance, 70), now.Add(twinGoneAfter+time.Second)) || i.twin != "" {
		t.Errorf("it is gone, and still there: %q", i.twin)
	}
}

func TestAClockThatIsOffIsToldToTheOthers(t *testing.T) {
	i := New("a", zap.NewNop())
	at := time.UnixMilli(1_000_000)
	if i.compare(redislock.ElectionState{Now: at}, at.Add(offsetStep-time.Millisecond*20)) {
		t.Error("so little is not told")
	}
	if !i.compare(redislock.ElectionState{Now: at}, at.Add(3*time.Second)) {
		t.Error("three seconds are told")
	}
	var p redislock.NodeInfo
	if i.Describe(&p); p.ClockMS != 3000 || p.Instance == "" || p.Twin != "" {
		t.Errorf("%+v", p)
	}
}
