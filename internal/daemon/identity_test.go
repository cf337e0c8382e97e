package daemon

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	recorder "go.uber.org/zap/zaptest/observer"

	"baton/internal/daemon/site"
	"baton/internal/doctor"
	"baton/internal/redislock"
	"baton/internal/testsupport"
)

// Two processes of one id cannot be told apart, so both say it, once, and others see it.
func TestASecondProcessOfTheSameIDIsTold(t *testing.T) {
	t.Parallel()
	redis := testsupport.StartRedis(t, testsupport.RedisAOF())
	c := configFor(redis.URL())
	c.Node.ID = "db1"
	first := start(t, c, nil)
	page := func(r *running) { // whoever looks at a page has the node look at itself
		resp, err := http.Get("http://" + r.address + "/api/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // nothing of it is read
	}
	page(first)
	second := start(t, c, nil)
	complaint := "another process has the same node.id"
	await(t, "the complaint", func() bool {
		page(first)
		return first.logs.FilterMessageSnippet(complaint).Len() > 0
	})
	told := first.logs.FilterMessageSnippet(complaint).All()
	if len(told) != 1 || told[0].Level != zapcore.ErrorLevel || told[0].ContextMap()["other_instance"] == told[0].ContextMap()["instance"] {
		t.Errorf("%+v", told)
	}
	look := func() redislock.Picture {
		place, err := site.OpenPlace(c.WithDefaults())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = place.Close() }()
		p, err := place.Picture(t.Context(), c.WithDefaults().Election.LockKey)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	await(t, "the list to say so", func() bool {
		p := look()
		return len(p.Nodes) == 1 && p.Nodes[0].Twin != ""
	})
	found := doctor.Examine(t.Context(), c.WithDefaults(), doctor.Options{})
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Severity == doctor.SeverityError && f.Subject == `node "db1"` && strings.Contains(f.What, "two processes have this node.id")
	}) {
		t.Errorf("%+v", found)
	}
	for _, r := range []*running{second, first} {
		if err := r.end(); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatAnEarlierProcessHasLeftIsNoTwin(t *testing.T) {
	core, logs := recorder.New(zapcore.InfoLevel)
	i := newIdentity("a", zap.New(core))
	now := time.UnixMilli(1_000_000)
	entry := func(instance string, seen int64) redislock.Picture {
		n := redislock.Node{ID: "a", SeenMS: seen}
		n.Instance = instance
		return redislock.Picture{Now: now, Nodes: []redislock.Node{n, {ID: "b", SeenMS: seen}}}
	}
	for _, p := range []redislock.Picture{
		entry("before", 10), entry("before", 10), // left behind, while redis took no writes
		entry(i.instance, 20), entry(i.instance, 30), entry("", 40),
	} {
		if i.look(p, now) || i.twin != "" {
			t.Fatalf("after %+v: twin %q", p.Nodes, i.twin)
		}
	}
	if !i.look(entry("other", 50), now) || i.twin != "other" || logs.Len() != 1 {
		t.Errorf("twin %q, told %d times", i.twin, logs.Len())
	}
	if i.look(entry("other", 60), now) || logs.Len() != 1 {
		t.Errorf("told %d times", logs.Len())
	}
	if !i.look(entry(i.instance, 70), now.Add(twinGoneAfter+time.Second)) || i.twin != "" {
		t.Errorf("it is gone, and still there: %q", i.twin)
	}
}

func TestAClockThatIsOffIsToldToTheOthers(t *testing.T) {
	i := newIdentity("a", zap.NewNop())
	at := time.UnixMilli(1_000_000)
	if i.look(redislock.Picture{Now: at}, at.Add(offsetStep-time.Millisecond*20)) {
		t.Error("so little is not told")
	}
	if !i.look(redislock.Picture{Now: at}, at.Add(3*time.Second)) {
		t.Error("three seconds are told")
	}
	var p redislock.Presence
	if i.describe(&p); p.ClockMS != 3000 || p.Instance == "" || p.Twin != "" {
		t.Errorf("%+v", p)
	}
}
