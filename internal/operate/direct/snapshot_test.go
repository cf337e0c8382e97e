package direct

import (
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/redislock"
	"baton/internal/text"
)

func TestTheNodeThatAnswersIsSeenNow(t *testing.T) {
	nodes := []diagnose.Node{{ID: "a", LastSeenAgo: 29_000 * text.Millisecond}, {ID: "b", LastSeenAgo: 28_000 * text.Millisecond}}
	SeenNow(nodes, "b")
	if nodes[0].LastSeenAgo != 29_000*text.Millisecond || nodes[1].LastSeenAgo != 0 {
		t.Errorf("%+v", nodes)
	}
	for _, n := range []diagnose.Node{
		{ID: "a", LastSeenAgo: 70_000 * text.Millisecond, Stale: true}, {ID: "a", LastSeenAgo: 9_000 * text.Millisecond, Twin: "other"},
	} {
		nodes := []diagnose.Node{n}
		if SeenNow(nodes, "a"); nodes[0] != n {
			t.Errorf("it hides that something is wrong: %+v", nodes)
		}
	}
}

func TestALeaderThatWentWithoutAWordIsMissing(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		state, leader string
		ago           time.Duration
		want          string
	}{
		"it leads":                  {"leading", "a", 10 * time.Second, "leading"},
		"another one leads":         {"leading", "b", 10 * time.Second, "silent"},
		"no node leads":             {"leading", "", 10 * time.Second, "silent"},
		"it is about to say so":     {"leading", "b", time.Second, "standby"},
		"it stands by":              {"standby", "b", 10 * time.Second, "standby"},
		"it stands by, nobody does": {"standby", "", 36 * time.Second, "standby"},
		"it stood by":               {"standby", "b", 38 * time.Second, "silent"},
		"it stood by, long ago":     {"standby", "b", time.Hour, "silent"},
	} {
		n := redislock.Node{ID: "a"}
		n.State, n.SeenMS = c.state, now.Add(-c.ago).UnixMilli()
		if got := nodeState(n, redislock.ElectionState{Now: now, Leader: c.leader, Nodes: []redislock.Node{n}}, SilentAfter(2*time.Second)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
