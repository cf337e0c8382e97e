package daemon

import (
	"testing"
	"time"

	"baton/internal/redislock"
	"baton/internal/status"
)

func TestTheNodeThatAnswersIsSeenNow(t *testing.T) {
	nodes := []status.Node{{ID: "a", LastSeenMSAgo: 29_000}, {ID: "b", LastSeenMSAgo: 28_000}}
	answers(nodes, "b")
	if nodes[0].LastSeenMSAgo != 29_000 || nodes[1].LastSeenMSAgo != 0 {
		t.Errorf("%+v", nodes)
	}
	for _, n := range []status.Node{{ID: "a", LastSeenMSAgo: 70_000, Stale: true}, {ID: "a", LastSeenMSAgo: 9_000, Twin: "other"}} {
		nodes := []status.Node{n}
		if answers(nodes, "a"); nodes[0] != n {
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
		"another one leads":         {"leading", "b", 10 * time.Second, "missing"},
		"nobody leads":              {"leading", "", 10 * time.Second, "missing"},
		"it is about to say so":     {"leading", "b", time.Second, "standby"},
		"it stands by":              {"standby", "b", 10 * time.Second, "standby"},
		"it stands by, nobody does": {"standby", "", 36 * time.Second, "standby"},
		"it stood by":               {"standby", "b", 38 * time.Second, "silent"},
		"it stood by, long ago":     {"standby", "b", time.Hour, "silent"},
	} {
		n := redislock.Node{ID: "a"}
		n.State, n.SeenMS = c.state, now.Add(-c.ago).UnixMilli()
		if got := nodeState(n, redislock.Picture{Now: now, Leader: c.leader, Nodes: []redislock.Node{n}}, silentAfter(2*time.Second)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAFlushThatNeverEndedWellIsCalledLate(t *testing.T) {
	t.Parallel()
	l := newJobLab(t)
	l.job("views", "0 0 29 2 *")
	l.do("HSET", "views", "1", "10")
	l.do("HSET", "{baton}:job:views", "consecutive_failures", "16", "begun", time.Now().Add(-time.Hour).UnixMilli())
	l.start()
	if j := l.state("views"); j.LagSeconds == nil || *j.LagSeconds < 3600 {
		t.Errorf("it is behind %v s", j.LagSeconds)
	}
}
