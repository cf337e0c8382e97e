package direct

import (
	"errors"
	"strings"
	"testing"
	"time"

	"baton/internal/diagnose"
	"baton/internal/elector"
	"baton/internal/redislock"
)

// drawnFacts returns the facts of db2, which is a standby of db1, after changes were applied.
func drawnFacts(changes ...func(*facts)) facts {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	node := func(id string) redislock.Node {
		return redislock.Node{ID: id, SeenMS: now.Add(-time.Second).UnixMilli(), NodeInfo: redislock.NodeInfo{ConfigHash: "c1"}}
	}
	f := facts{node: "db2", lockKey: "reports", redis: "10.0.0.1:6379", poll: 2 * time.Second, p: redislock.ElectionState{
		Now: now, Owner: "o", Leader: "db1", Epoch: 42, Since: now.Add(-time.Hour), Left: 8 * time.Second, TTL: 10 * time.Second,
		Nodes: []redislock.Node{node("db1"), node("db2")},
	}}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func vacated(f *facts)  { f.p.Owner, f.p.Leader, f.p.Left = "", "", 0 }
func foreign(f *facts)  { f.p.Leader = "" }
func endless(f *facts)  { f.p.Left = -time.Millisecond }
func leading(f *facts)  { f.node = "db1" }
func onlooker(f *facts) { f.p.Nodes[1].Observer = true }

func TestEveryReasonIsToldWithWhatToDo(t *testing.T) {
	paused := func(f *facts) {
		f.p.Paused = &redislock.Pause{At: f.p.Now.Add(-time.Minute), Reason: "by ada: upgrade"}
	}
	for name, c := range map[string]struct {
		facts facts
		want  []string // "code: part of the text → part of the remedy", in order
	}{
		"leads":           {drawnFacts(leading), []string{"leads: db1 leads: epoch 42, for 1h, lease 8s left → "}},
		"leads, draining": {drawnFacts(leading, func(f *facts) { f.p.StepDown = "asked by ada" }), []string{"leads:  → ", "stepping_down: db1 is to step down, asked by ada → wait"}},
		"leads, paused":   {drawnFacts(leading, paused), []string{"leads:  → ", "paused: by ada: upgrade, since 2026-01-02 03:03:05 UTC (1m) → baton resume"}},
		"no expiry":       {drawnFacts(endless), []string{"other_leads: without an expiry → ", "no_expiry: no other node can take the lock → baton release --owner o"}},
		"another leads":   {drawnFacts(), []string{"other_leads: db1 leads: epoch 42, for 1h, lease 8s left → baton stepdown --to db2"}},
		"never seen": {drawnFacts(func(f *facts) { f.node = "db9" }),
			[]string{"other_leads: db1 leads → ", `never_seen: no node "db9" has registered; the known nodes are: db1, db2 → election.lock_key "reports" and the redis at 10.0.0.1:6379?`}},
		"nobody at all": {drawnFacts(vacated, func(f *facts) { f.p.Nodes = nil }), []string{"never_seen: the known nodes are: none → is baton running on that host"}},
		"gone": {drawnFacts(func(f *facts) { f.p.Nodes[1].SeenMS = f.p.Now.Add(-time.Hour).UnixMilli() }),
			[]string{"other_leads:  → ", "not_seen: db2 was last seen 1h ago: its process is down, or cut off from redis → systemctl status baton"}},
		"silent": {drawnFacts(func(f *facts) { f.p.Nodes[1].SeenMS = f.p.Now.Add(-40 * time.Second).UnixMilli() }),
			[]string{"other_leads:  → ", "not_seen: db2 was last seen 40s ago → systemctl status baton"}},
		"no candidate":   {drawnFacts(onlooker), []string{"other_leads:  → ", "observer: db2 never leads: node.candidate is false → node.candidate: true"}},
		"foreign":        {drawnFacts(foreign), []string{"foreign: not baton (owner o), lease 8s left → on purpose?"}},
		"foreign, stuck": {drawnFacts(foreign, endless), []string{"foreign: without an expiry → baton lock --break reports"}},
		"aside": {drawnFacts(func(f *facts) {
			f.p.CoolDowns = map[string]redislock.CoolDown{"db2": {Left: time.Minute, Reason: `database "main" is away`}}
		}),
			[]string{"other_leads:  → ", `aside: db2 stands aside for another 1m: database "main" is away → repair`}},
		"given back": {drawnFacts(vacated, func(f *facts) {
			f.p.Events = []redislock.Event{{At: f.p.Now.Add(-time.Second), Event: "withdrawn", NodeID: "db1", Reason: "0 of the 1 replicas have the lock"}}
		}), []string{"withdrawn: db1 took the lock and gave it back, 1s ago: 0 of the 1 replicas have the lock → repair"}},
		"given back long ago": {drawnFacts(vacated, func(f *facts) {
			f.p.Events = []redislock.Event{{At: f.p.Now.Add(-time.Hour), Event: "withdrawn", NodeID: "db1"}}
		}), []string{"free:  → ask again"}},
		"paused":     {drawnFacts(vacated, paused), []string{"paused: the election is paused by ada: upgrade → baton resume"}},
		"quarantine": {drawnFacts(vacated, func(f *facts) { f.p.Quarantine = 3 * time.Second }), []string{"quarantine: no new leader for another 3s → wait"}},
		"reserved": {drawnFacts(vacated, func(f *facts) { f.p.ReservedFor, f.p.ReservedLeft = "db1", time.Second }),
			[]string{"reserved: kept for db1 for another 1s → wait"}},
		"reserved for it": {drawnFacts(vacated, func(f *facts) { f.p.ReservedFor, f.p.ReservedLeft = "db2", time.Second }), []string{"free: → "}},
		"priority": {drawnFacts(vacated, func(f *facts) { f.p.Nodes[0].Priority = 5 }),
			[]string{"priority: db1 has priority 5, above the 0 of db2, and goes first → half a second"}},
		"priority of an observer": {drawnFacts(vacated, func(f *facts) { f.p.Nodes[0].Priority, f.p.Nodes[0].Observer = 5, true }), []string{"free: → "}},
		"free":                    {drawnFacts(vacated), []string{"free: nothing keeps db2 from it: it asks every 2s → ask again"}},
		"drift": {drawnFacts(func(f *facts) { f.p.Nodes[1].ConfigHash = "c2" }),
			[]string{"other_leads:  → ", "config_drift: the jobs of db2 (c2) are not those of db1, which leads (c1) → config show"}},
		"forged": {drawnFacts(vacated, func(f *facts) { f.p.Forged = true }), []string{"epoch_refused: more than 30 days ahead of redis' clock: it was written by hand, or that clock is wrong; no node can lead → baton fence reset"}},
		"forged while led": {drawnFacts(func(f *facts) { f.p.Forged = true }),
			[]string{"epoch_refused: no node can lead after the present term → baton fence reset", "other_leads:  → "}},
		"fence forged": {drawnFacts(func(f *facts) { f.fences = map[string]int64{"main": 1<<53 - 3} }),
			[]string{"other_leads:  → ", `fence_refused: database "main" has recorded epoch 9007199254740989, more than 30 days ahead of redis' clock → baton fence list`}},
		"raised above a database, by a clock that was repaired since": {drawnFacts(func(f *facts) {
			f.p.Forged, f.p.Epoch = true, f.p.Now.Add(40*24*time.Hour).UnixMilli()
			f.fences = map[string]int64{"main": f.p.Epoch - 1}
		}), []string{"other_leads:  → "}},
		"rewound": {drawnFacts(func(f *facts) { f.fences = map[string]int64{"main": 50, "other": 42} }),
			[]string{"other_leads:  → ", `fence_ahead: database "main" has recorded epoch 50, above the 42 of redis → nothing`}},
		"without redis itself": {drawnFacts(func(f *facts) {
			f.own = &diagnose.Snapshot{Redis: diagnose.Redis{Host: "10.0.0.1:6379", Error: "refused"}}
		}),
			[]string{"other_leads:  → ", "node_without_redis: db2 itself does not reach redis: refused → its connection to 10.0.0.1:6379"}},
		"just stepped down": {drawnFacts(vacated, func(f *facts) {
			f.own = &diagnose.Snapshot{Redis: diagnose.Redis{OK: true}, WaitingCode: elector.CodeCoolDown, Waiting: "stands aside for another 1.2s, so that other nodes can lead first: asked by ada"}
		}), []string{"aside: db2 stands aside for another 1.2s, so that other nodes can lead first: asked by ada → wait"}},
		"redis unreachable": {drawnFacts(func(f *facts) { f.unseen = errors.New("connection refused") }), []string{"redis_unreachable: cannot be read from here: connection refused → no node leads"}},
		"everything": {drawnFacts(vacated, paused, onlooker, func(f *facts) {
			f.p.Quarantine, f.p.ReservedFor, f.p.ReservedLeft = time.Second, "db1", time.Second
		}), []string{"paused:  → ", "quarantine:  → ", "reserved:  → ", "observer:  → "}},
	} {
		t.Run(name, func(t *testing.T) {
			x := c.facts.explain()
			if x.Leads != (c.facts.node == "db1") || x.NodeID != c.facts.node || len(x.Reasons) != len(c.want) {
				t.Fatalf("got %+v, want %d reasons", x, len(c.want))
			}
			for i, want := range c.want {
				code, rest, _ := strings.Cut(want, ":")
				what, do, _ := strings.Cut(rest, "→")
				got := x.Reasons[i]
				if got.Code != code || !strings.Contains(got.What, strings.TrimSpace(what)) || !strings.Contains(got.Do, strings.TrimSpace(do)) {
					t.Errorf("reason %d: %+v, want %s", i, got, want)
				}
			}
		})
	}
}
