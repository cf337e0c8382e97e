package daemon

import (
	"strings"
	"testing"
	"time"

	"baton/internal/redisstore"
)

func TestEveryReasonNotToLeadIsTold(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	node := func(id string, change func(*redisstore.Node)) redisstore.Node {
		n := redisstore.Node{ID: id, SeenMS: now.Add(-time.Second).UnixMilli()}
		n.ConfigHash = "c1"
		if change != nil {
			change(&n)
		}
		return n
	}
	leading := func(change func(*redisstore.Picture)) redisstore.Picture {
		p := redisstore.Picture{
			Now: now, Owner: "o", Leader: "db1", Epoch: 42, Since: now.Add(-time.Hour), Left: 8 * time.Second, TTL: 10 * time.Second,
			Nodes: []redisstore.Node{node("db1", nil), node("db2", nil)},
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	vacant := func(p *redisstore.Picture) { p.Owner, p.Leader = "", "" }
	for name, c := range map[string]struct {
		picture redisstore.Picture
		want    []string // a part of each reason, in order
	}{
		"another leads":  {leading(nil), []string{"db1 leads, under epoch 42"}},
		"never seen":     {leading(func(p *redisstore.Picture) { p.Nodes = p.Nodes[:1] }), []string{"never been seen", "db1 leads"}},
		"gone":           {leading(func(p *redisstore.Picture) { p.Nodes[1].SeenMS = now.Add(-time.Hour).UnixMilli() }), []string{"last seen 1h", "db1 leads"}},
		"no candidate":   {leading(func(p *redisstore.Picture) { p.Nodes[1].Observer = true }), []string{"no candidate", "db1 leads"}},
		"drift":          {leading(func(p *redisstore.Picture) { p.Nodes[1].ConfigHash = "c2" }), []string{"db1 leads", "other jobs"}},
		"foreign":        {leading(func(p *redisstore.Picture) { p.Leader = "" }), []string{"not baton holds the lock (owner o), for another 8s"}},
		"foreign, stuck": {leading(func(p *redisstore.Picture) { p.Leader, p.Left = "", -time.Millisecond }), []string{"for ever"}},
		"aside": {leading(func(p *redisstore.Picture) {
			p.Aside = map[string]redisstore.Aside{"db2": {Left: time.Minute, Reason: "abdicated: database main is away"}}
		}), []string{"leaves the lead to others for another 1m", "db1 leads"}},
		"paused": {leading(func(p *redisstore.Picture) {
			vacant(p)
			p.Paused = &redisstore.Pause{At: now, Reason: "by ada: upgrade"}
		}), []string{"paused by ada: upgrade", "nobody leads"}},
		"quarantine": {leading(func(p *redisstore.Picture) { vacant(p); p.Quarantine = 3 * time.Second }), []string{"another 3s only a leader from before", "nobody leads"}},
		"reserved": {leading(func(p *redisstore.Picture) { vacant(p); p.ReservedFor, p.ReservedLeft = "db1", time.Second }),
			[]string{"kept for db1", "nobody leads"}},
		"priority": {leading(func(p *redisstore.Picture) { vacant(p); p.Nodes[0].Priority = 5 }), []string{"db1 has priority 5, and this node 0", "nobody leads"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := explain(c.picture, "db2", "baton")
			if e.Leads || len(e.Reasons) != len(c.want) {
				t.Fatalf("got %+v, want %d reasons", e, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(e.Reasons[i].What, want) {
					t.Errorf("reason %d: %q, want it to say %q", i, e.Reasons[i].What, want)
				}
			}
		})
	}
	if e := explain(leading(nil), "db1", "baton"); !e.Leads || len(e.Reasons) > 0 {
		t.Errorf("of the leader: %+v", e)
	}
}
