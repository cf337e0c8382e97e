package direct

import (
	"cmp"
	"slices"
	"time"

	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/redislock"
)

// Rollout contains the times that decide how long nodes may have different jobs.
type Rollout struct {
	Since  time.Time     // the time since which the configuration of Tasks is in force; zero if unknown
	Within time.Duration // the maximum time until a change has reached every node
}

// Unscheduled returns a value if the leader's configuration does not contain the job. It returns nil if the configuration contains the job,
// if no node leads, or if the leader does not report its jobs.
func (r Rollout) Unscheduled(p redislock.ElectionState, t tasks.Task) *diagnose.Unscheduled {
	at := slices.IndexFunc(p.Nodes, func(n redislock.Node) bool { return n.ID == p.Leader })
	if p.Owner == "" || at < 0 {
		return nil
	}
	leader := p.Nodes[at]
	if leader.Jobs == nil || slices.Contains(leader.Jobs, t.Config.Name) {
		return nil
	}
	u := &diagnose.Unscheduled{Leader: leader.ID, Since: leader.ConfigSince()}
	if r.Since.After(u.Since) {
		u.Since = r.Since
	}
	u.LateFrom = u.Since.Add(max(r.Within, cmp.Or(t.Config.LateAfter, diagnose.DefaultLateAfter)))
	return u
}

// gatherUnscheduled marks the jobs that are not in the leader's configuration.
func (v View) gatherUnscheduled(s diagnose.Snapshot, p redislock.ElectionState) {
	for _, t := range v.Tasks {
		u := v.Rollout.Unscheduled(p, t)
		at := slices.IndexFunc(s.Jobs, func(j diagnose.Job) bool { return j.Name == t.Config.Name })
		if u != nil && at >= 0 {
			s.Jobs[at].Unscheduled, s.Jobs[at].NextRun = u, time.Time{}
		}
	}
}
