package direct

import (
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/redislock"
)

func TestAJobThatTheLeaderLacksIsNotScheduled(t *testing.T) {
	noon := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	leads := func(jobs []string, since time.Time) redislock.ElectionState {
		n := redislock.Node{ID: "db2", NodeInfo: redislock.NodeInfo{Jobs: jobs, ConfigMS: since.UnixMilli()}}
		return redislock.ElectionState{Owner: "o", Leader: "db2", Nodes: []redislock.Node{{ID: "db1"}, n}}
	}
	free, foreign := leads([]string{}, noon), leads([]string{}, noon)
	free.Owner, foreign.Leader = "", ""
	ahead := leads([]string{}, noon.Add(time.Minute))
	ahead.Nodes[1].ClockMS = time.Minute.Milliseconds() // the clock of the leader's host is ahead
	own := Rollout{Since: noon, Within: 5 * time.Minute}
	for name, c := range map[string]struct {
		p        redislock.ElectionState
		own      Rollout
		after    time.Duration // late_after
		since    time.Time     // zero if the job is scheduled, or if that is unknown
		lateFrom time.Time
	}{
		"the leader has it":                  {p: leads([]string{"other", "report"}, noon), own: own},
		"the leader does not say":            {p: leads(nil, noon), own: own},
		"the lock is free":                   {p: free, own: own},
		"another program leads":              {p: foreign, own: own},
		"the leader has other jobs":          {p: leads([]string{"other"}, noon.Add(-time.Hour)), own: own, since: noon, lateFrom: noon.Add(5 * time.Minute)},
		"the leader has no jobs, since then": {p: leads([]string{}, noon.Add(time.Minute)), own: own, since: noon.Add(time.Minute), lateFrom: noon.Add(6 * time.Minute)},
		"late_after is longer":               {p: leads([]string{}, noon), own: own, after: time.Hour, since: noon, lateFrom: noon.Add(time.Hour)},
		"no time to roll out":                {p: leads([]string{}, noon), own: Rollout{}, since: noon, lateFrom: noon.Add(time.Minute)},
		"by redis' clock":                    {p: ahead, own: own, since: noon, lateFrom: noon.Add(5 * time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			job := config.Job{Name: "report"}
			job.LateAfter = c.after
			got := c.own.Unscheduled(c.p, tasks.Task{Config: job})
			switch {
			case c.since.IsZero():
				if got != nil {
					t.Errorf("%+v, want none", got)
				}
			case got == nil || got.Leader != "db2" || !got.Since.Equal(c.since) || !got.LateFrom.Equal(c.lateFrom):
				t.Errorf("%+v, want db2 since %v, late from %v", got, c.since, c.lateFrom)
			}
		})
	}
}
