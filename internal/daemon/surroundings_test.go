package daemon

import (
	"testing"
	"time"

	"baton/internal/operate/direct"
	"baton/internal/redislock"
)

func TestWhatIsAroundANodeIsCounted(t *testing.T) {
	asked := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	now := asked.Add(2 * time.Second)
	node := func(id, hash string, ago time.Duration) redislock.Node {
		n := redislock.Node{ID: id, SeenMS: now.Add(-ago).UnixMilli()}
		n.ConfigHash = hash
		return n
	}
	p := redislock.ElectionState{Now: now, Owner: "o", Leader: "a", Nodes: []redislock.Node{
		node("a", "1", 0), node("b", "1", 30*time.Second), node("c", "2", time.Second), node("d", "2", 2*time.Minute), node("e", "1", 25*time.Hour),
	}}
	p.Paused = &redislock.Pause{}
	s := surroundings(p, 2*time.Second, asked, asked.Add(time.Second))
	if s.Live != 3 || s.Silent != 1 || s.Drifted != 1 || !s.Paused || s.Offset != 1500*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestWhatANodeSeesAroundIt(t *testing.T) {
	asked := time.UnixMilli(1_700_000_000_000)
	came := asked.Add(2 * time.Second)
	const poll = 2 * time.Second
	p := redislock.ElectionState{Now: asked.Add(4 * time.Second), Owner: "o", Leader: "lead"}
	for id, n := range map[string]struct {
		ago  time.Duration
		hash string
	}{
		"lead": {0, "x"}, "like": {direct.SilentAfter(poll), "x"}, "other": {time.Second, "y"}, "gone": {direct.SilentAfter(poll) + time.Millisecond, "y"}, "long gone": {redislock.ForgottenAfter, "y"}, "forgotten": {redislock.ForgottenAfter + time.Millisecond, "y"},
	} {
		node := redislock.Node{ID: id, SeenMS: p.Now.Add(-n.ago).UnixMilli()}
		node.ConfigHash = n.hash
		p.Nodes = append(p.Nodes, node)
	}
	s := surroundings(p, poll, asked, came)
	if s.Live != 3 || s.Silent != 2 || s.Drifted != 1 || s.Paused || s.Offset != 3*time.Second {
		t.Errorf("%+v", s)
	}
	p.Paused = &redislock.Pause{}
	if !surroundings(p, poll, asked, came).Paused {
		t.Error("it is paused")
	}
}
