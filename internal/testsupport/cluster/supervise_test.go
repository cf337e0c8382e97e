package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/nemesis"
)

func TestASupervisorStartsNodesAgainAndTellsAnEndThatNobodyAskedFor(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Nodes: 2, RedisURL: testsupport.StartRedis(t).URL(), MayExit: true})
	r := &nemesis.Record{}
	s := cluster.Supervise(c, r)
	var moved []string
	s.Moved = func(id, url string) { moved = append(moved, id+strings.TrimRight(url, "0123456789")) }
	again := func(u *cluster.Unit) {
		t.Helper()
		want := len(u.Up) + 1
		c.Await(time.Minute, "another life of "+u.ID, func() bool { s.Tick(); return len(u.Up) == want })
		if len(u.Down) != want-1 || !u.Running() {
			t.Errorf("%s: up %v, down %v", u.ID, u.Up, u.Down)
		}
	}
	one, two := s.Units[0], s.Units[1]
	one.Kill()
	if u, i := s.Standing(0); u != two || i != 1 {
		t.Errorf("the standing node is %s, %d", u.ID, i)
	}
	again(one)
	one.Term()
	again(one)
	if w := r.Wrongs(); len(w) > 0 || s.CannotStop != 0 {
		t.Errorf("what was asked for is wrong: %q", w)
	}
	if want := []string{"n1", "n1", "n1http://127.0.0.1:", "n1", "n1http://127.0.0.1:"}; !slices.Equal(moved, want) {
		t.Errorf("it moved %q, want %q", moved, want)
	}
	two.Node.Kill()
	again(two)
	if w := r.Wrongs(); len(w) != 1 || !strings.Contains(w[0], "n2 ended with code -9, and nobody had asked it to") {
		t.Errorf("a node that died by itself: %q", w)
	}
}
