package diagnose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/text"
)

// sample returns a state without problems.
func sample() Snapshot {
	return Snapshot{
		LockKey: "baton", Now: at(5), Leader: &Leader{NodeID: "db1"}, Redis: Redis{OK: true},
		Nodes: []Node{{ID: "db1", State: "leading", ConfigHash: "x"}, {ID: "db2", State: "standby", ConfigHash: "x"}},
		Jobs: []Job{
			{Name: "views", Lock: "baton", LagSeconds: new(1.0), LastRun: &Run{State: "succeeded"}, DueAt: at(5)},
			{Name: "report", Lock: "baton", Command: true, LateAfterSeconds: 60, LastRun: &Run{State: "succeeded"}, DueAt: at(26)},
		},
	}
}

func TestEveryProblemHasACodeAndTheCommandToGoOnWith(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(s *Snapshot)
		want   string
	}{
		{"nothing", func(*Snapshot) {}, ""},
		{"no leader", func(s *Snapshot) { s.Leader = nil }, "no_leader! baton explain"},
		{"paused", func(s *Snapshot) { s.Leader, s.Paused = nil, &Pause{} }, "paused baton resume"},
		{"who leads is not known", func(s *Snapshot) { s.Leader, s.LastLeader = nil, s.Leader }, ""},
		{"foreign", func(s *Snapshot) { s.Leader = &Leader{Foreign: true} }, "foreign_holder! baton status --events"},
		{"handing over", func(s *Snapshot) { s.Leader.Ending = "the end of report" }, "handing_over db1 baton job list"},
		{"locks", func(s *Snapshot) {
			s.Locks = []Lock{{Key: "a"}, {Key: "b", Leader: &Leader{Foreign: true}}, {Key: "c", Leader: &Leader{NodeID: "db2"}}}
		}, "no_leader! a baton explain --lock-key a, foreign_holder! b baton status --events --lock-key b"},
		{"handed over", func(s *Snapshot) {
			over := Event{At: s.Now.Add(-HandoverWithin / 2), Event: "stepped_down", NodeID: "db1"}
			s.Leader, s.Events, s.Locks = nil, []Event{over}, []Lock{{Key: "a", Last: &over}, {Key: "b"}}
		}, "no_leader! b baton explain --lock-key b, handing_over db1 baton status, handing_over a db1 baton status"},
		{"a handover that takes long", func(s *Snapshot) {
			s.Leader, s.Events = nil, []Event{{At: s.Now.Add(-HandoverWithin), Event: "released"}}
		}, "no_leader! baton explain"},
		{"a handover without a successor", func(s *Snapshot) {
			s.Leader, s.Events, s.Nodes = nil, []Event{{At: s.Now, Event: "released"}}, nil
		}, "no_leader! baton explain"},
		{"a lease that ran out", func(s *Snapshot) { s.Leader, s.Events = nil, []Event{{At: s.Now, Event: "expired"}} },
			"no_leader! baton explain"},
		{"redis", func(s *Snapshot) { s.Redis = Redis{Error: "refused"} }, "redis_unavailable! baton doctor"},
		{"no standby", func(s *Snapshot) { s.Nodes[1].Observer = true }, "no_standby systemctl status baton"},
		{"silent", func(s *Snapshot) { s.Nodes[1].State = StateSilent }, "node_silent db2 systemctl status baton, no_standby systemctl status baton"},
		{"missing", func(s *Snapshot) { s.Nodes = append(s.Nodes, Node{ID: "db3", State: StateSilent, Led: true}) }, "node_silent db3 systemctl status baton"},
		{"a list of nodes that is cut", func(s *Snapshot) { s.Nodes[1].Observer, s.NodesRead = true, 10_000 }, "nodes_cut baton doctor"},
		{"no leader, and a list that is cut", func(s *Snapshot) {
			s.Leader, s.Nodes, s.NodesRead = nil, []Node{{ID: "x", Observer: true, Jobs: new(0)}}, 10_000
		}, "no_leader! baton explain, nodes_cut baton doctor"},
		{"a twin, drift and a wrong clock", func(s *Snapshot) {
			s.Nodes[1].Twin, s.Nodes[1].ConfigHash, s.Nodes[1].ClockAhead = "o", "y", -1000*text.Millisecond
		},
			"node_twin! db2 baton doctor, node_drift db2 baton reload, node_clock db2 baton doctor"},
		{"drift of one that is gone", func(s *Snapshot) { s.Nodes = append(s.Nodes, Node{ID: "db3", Stale: true, ConfigHash: "y"}) },
			"node_silent db3 systemctl status baton"},
		{"a failure", func(s *Snapshot) { s.Jobs[0].ConsecutiveFailures, s.Jobs[0].LastRun.Error = 2, "x" }, "job_failing! views baton job history views"},
		{"a command says no more than what it printed", func(s *Snapshot) { s.Jobs[1].ConsecutiveFailures = 2 }, "job_failing! report baton job logs report"},
		{"a failure that is late", func(s *Snapshot) { s.Jobs[0].ConsecutiveFailures, s.Jobs[0].DueAt = 2, at(4) },
			"job_failing! views no_success baton job history views"},
		{"late", func(s *Snapshot) { s.Jobs[1].DueAt = at(4) }, "job_late! report no_success baton job history report"},
		{"late without a leader", func(s *Snapshot) { s.Leader, s.Jobs[1].DueAt = nil, at(4) }, "no_leader! baton explain, job_late! report no_success baton explain"},
		{"late in a pause", func(s *Snapshot) { s.Jobs[1].DueAt, s.Jobs[1].Paused = at(4), &Pause{Since: at(4.9)} },
			"job_late! report no_success baton job resume report"},
		{"a failure that made baton pause the job", func(s *Snapshot) {
			s.Jobs[0].ConsecutiveFailures, s.Jobs[0].LastRun.Error, s.Jobs[0].Paused = 1, "x", &Pause{Since: at(4.9)}
		}, "job_failing! views baton job resume views"},
		{"a failure while all jobs are paused", func(s *Snapshot) {
			s.Jobs[0].ConsecutiveFailures, s.Jobs[0].Paused = 1, &Pause{Since: at(4.9), All: true}
		}, "job_failing! views baton job resume --all"},
		{"late and at work", func(s *Snapshot) { s.Jobs[0].DueAt, s.Jobs[0].Running = at(4), &Run{} }, "job_late! views no_success baton job show views"},
		{"dead letters", func(s *Snapshot) { s.Jobs[0].DeadLetters = new(int64(3)) }, "dead_letters views baton dead list --count --job views"},
		{"a stage that is left", func(s *Snapshot) { s.LeftStages = []LeftStage{{Key: "k", Job: "old"}} }, "stage_left old baton stage list"},
		{"the worst is first", func(s *Snapshot) { s.Nodes[1].ConfigHash, s.Jobs[0].ConsecutiveFailures = "y", 1 },
			"job_failing! views baton job history views, node_drift db2 baton reload"},
	} {
		s := sample()
		c.change(&s)
		var got []string
		for _, p := range Problems(s) {
			words := []string{string(p.Code), p.Lock, p.Node, p.Job, string(p.Late), p.Command}
			if p.Grave {
				words[0] += "!"
			}
			got = append(got, strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", c.what, text, c.want)
		}
	}
}

func TestVerdictsAreInTheJSON(t *testing.T) {
	s := sample()
	s.Jobs[1].DueAt, s.Nodes[1].ConfigHash = at(4), "y"
	body, err := json.Marshal(struct{ State *Snapshot }{&s})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ State Snapshot }
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if late := got.State.Jobs[1].Late; late != LateNoSuccess || !got.State.Nodes[1].Drift || got.State.Nodes[0].Drift {
		t.Errorf("late %q, nodes %+v", late, got.State.Nodes)
	}
	if want := Problems(s); fmt.Sprint(got.State.Problems) != fmt.Sprint(want) || len(want) != 2 {
		t.Errorf("%+v, want %+v", got.State.Problems, want)
	}
	if s.Jobs[1].Late != "" || s.Nodes[1].Drift {
		t.Error("the state itself has changed")
	}
}

func TestNodesAreCounted(t *testing.T) {
	s := sample()
	s.Nodes = append(s.Nodes, Node{ID: "db3", State: "standby", ConfigHash: "y", Aside: "for 20s"}, Node{ID: "db4", Stale: true, ConfigHash: "y"}, Node{ID: "db5", Observer: true, ConfigHash: "x"})
	if got, want := s.Count(), (Census{Live: 4, Silent: 1, Ready: 1, MayLead: 3, Drifted: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.Leader = nil
	if got, want := s.Count(), (Census{Live: 4, Silent: 1, Ready: 2, MayLead: 3}); got != want {
		t.Errorf("no node leads: %+v, want %+v", got, want)
	}
}
