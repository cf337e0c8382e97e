package daemon

import (
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
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

func TestAJobIsOverdueFromTheSlotThatItShouldHaveSucceededIn(t *testing.T) {
	slots, err := schedule.Parse("@every 1m", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 7, 22, 14, 0, 30, 0, time.UTC)
	one := tasks.Task{Config: config.Job{Name: "report", Command: []string{"true"}, Policy: config.Policy{LateAfter: 2 * time.Minute}}, Schedule: slots}
	ago := func(d time.Duration) redisledger.JobState { return redisledger.JobState{LastSuccess: now.Add(-d)} }
	if got, want := overdueSince(one, ago(5*time.Minute), now), time.Date(2026, 7, 22, 13, 56, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("since %v, want %v", got, want)
	}
	paused := ago(5 * time.Minute)
	paused.Paused = &redisledger.JobPause{}
	running := ago(5 * time.Minute)
	running.Running = make([]redisledger.OpenRun, 1)
	for name, st := range map[string]redisledger.JobState{"in time": ago(time.Minute), "never known to succeed": {}, "paused": paused, "running": running} {
		if got := overdueSince(one, st, now); !got.IsZero() {
			t.Errorf("%s: overdue since %v", name, got)
		}
	}
	if one.Config.LateAfter = 0; !overdueSince(one, ago(time.Hour), now).IsZero() {
		t.Error("overdue without late_after")
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
