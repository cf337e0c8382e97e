package daemon

import (
	"testing"
	"time"

	"baton/internal/redislock"
)

// What the balancer is told of an election is what stands in Redis.
func TestTheBalancerSeesWhatKeepsALockWhereItIs(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(p *redislock.Picture)
		barred  bool
		nodes   int
		aside   bool
	}{
		"nothing":                {func(*redislock.Picture) {}, false, 2, false},
		"b stands aside":         {func(p *redislock.Picture) { p.Aside = map[string]redislock.Aside{"b": {Left: time.Minute}} }, false, 2, true},
		"the lock is paused":     {func(p *redislock.Picture) { p.Paused = &redislock.Pause{} }, true, 2, false},
		"in quarantine":          {func(p *redislock.Picture) { p.Quarantine = time.Second }, true, 2, false},
		"ordered to step down":   {func(p *redislock.Picture) { p.StepDown = "drill" }, true, 2, false},
		"kept for another":       {func(p *redislock.Picture) { p.Owner, p.ReservedFor = "", "b" }, true, 2, false},
		"was kept for the owner": {func(p *redislock.Picture) { p.ReservedFor = "a" }, false, 2, false},
		"b never leads":          {func(p *redislock.Picture) { p.Nodes[1].Observer = true }, false, 1, false},
		"b is gone":              {func(p *redislock.Picture) { p.Nodes[1].SeenMS -= goneAfter.Milliseconds() + 1 }, false, 1, false},
	} {
		now := time.UnixMilli(1_800_000_000_000)
		p := redislock.Picture{Now: now, Owner: "owner", Leader: "a", TTL: time.Second}
		for _, id := range []string{"a", "b"} {
			p.Nodes = append(p.Nodes, redislock.Node{ID: id, SeenMS: now.UnixMilli(), Presence: redislock.Presence{Priority: 3, ConfigHash: "x", Reluctant: true}})
		}
		c.disturb(&p)
		e := electionIn(p)
		if e.barred != c.barred || e.free != (p.Owner == "") || e.leader != "a" || e.lease != time.Second || !e.now.Equal(now) || len(e.nodes) != c.nodes {
			t.Errorf("%s: %+v", name, e)
			continue
		}
		if n := e.nodes[c.nodes-1]; n.priority != 3 || n.config != "x" || !n.reluctant || !n.seen.Equal(now) || n.aside != c.aside {
			t.Errorf("%s: %+v", name, n)
		}
	}
}
