package diagnose

import (
	"slices"
	"testing"
	"time"

	"baton/internal/text"
)

func TestAJobThatTheLeaderLacksIsLateAfterItsGrace(t *testing.T) {
	u := &Unscheduled{Leader: "db2", Since: at(1), LateFrom: at(2)}
	for name, c := range map[string]struct {
		job  Job
		now  time.Time
		want Late
	}{
		"within its grace":                    {Job{Command: true, Unscheduled: u}, at(2), ""},
		"after it, a command":                 {Job{Command: true, Unscheduled: u}, at(2).Add(time.Second), LateUnscheduled},
		"after it, a flush":                   {Job{Unscheduled: u}, at(3), LateUnscheduled},
		"a slot has passed":                   {Job{Unscheduled: u, DueAt: at(0)}, at(1), LateUnscheduled},
		"it is paused":                        {Job{Command: true, Unscheduled: u, Paused: &Pause{Since: at(0)}}, at(3), ""},
		"the leader has it":                   {Job{Command: true}, at(3), ""},
		"the leader has it, a slot is missed": {Job{DueAt: at(0)}, at(1), LateNoSuccess},
	} {
		if got := c.job.IsLate(c.now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// sharing returns the state that db1 sees while db2 leads with another configuration.
func sharing() Snapshot {
	j := Job{Name: "report", Command: true, Unscheduled: &Unscheduled{Leader: "db2", Since: at(1), LateFrom: at(2)}}
	return Snapshot{
		NodeID: "db1", Now: at(1), RolloutWithin: text.Seconds(time.Hour), Redis: Redis{OK: true}, Jobs: []Job{j},
		Leader: &Leader{NodeID: "db2"},
		Nodes: []Node{
			{ID: "db1", State: "standby", ConfigHash: "x", Jobs: new(1), ConfigSince: at(0)},
			{ID: "db2", State: "leading", ConfigHash: "y", Jobs: new(0), ConfigSince: at(1)},
		},
	}
}

func codes(s Snapshot) (all []Code) {
	for _, p := range Problems(s) {
		all = append(all, p.Code)
	}
	return all
}

// TestDriftIsCalmWhileAChangeIsRolledOut checks that different configurations are no problem while a change is rolled out, but that a job
// that does not run is reported immediately.
func TestDriftIsCalmWhileAChangeIsRolledOut(t *testing.T) {
	s := sharing()
	if got := codes(s); !slices.Equal(got, []Code{CodeUnscheduled}) || Problems(s)[0].Grave || Problems(s)[0].Node != "db2" {
		t.Errorf("at once: %+v", Problems(s))
	}
	s.Now = at(2).Add(time.Second)
	if got := codes(s); !slices.Equal(got, []Code{CodeLate, CodeDrift}) || Problems(s)[0].Late != LateUnscheduled || !Problems(s)[0].Grave {
		t.Errorf("after an hour: %+v", Problems(s))
	}
	for i := range s.Nodes {
		s.Nodes[i].ConfigSince = time.Time{} // the nodes have a version that does not report the time
	}
	if s.Now = at(1); !slices.Contains(codes(s), CodeDrift) {
		t.Errorf("not known since when: %+v", Problems(s))
	}
}

func TestNoLeaderIsNoAlarmWhereNoNodeHasAJob(t *testing.T) {
	s := Snapshot{Now: at(1), Redis: Redis{OK: true}, Nodes: []Node{{ID: "db1", State: "standby", Jobs: new(0), Observer: true}}}
	if got := codes(s); !slices.Equal(got, []Code{CodeNoJobs}) || Problems(s)[0].Grave {
		t.Errorf("%+v", Problems(s))
	}
	for name, n := range map[string]Node{
		"has jobs":               {ID: "db2", State: "standby", Jobs: new(1), Observer: true},
		"campaigns all the same": {ID: "db2", State: "standby", Jobs: new(0)},
		"does not say":           {ID: "db2", State: "standby", Observer: true},
	} {
		s.Nodes = append(s.Nodes[:1:1], n)
		if got := codes(s); !slices.Contains(got, CodeNoLeader) {
			t.Errorf("another node %s: %v", name, got)
		}
	}
}
