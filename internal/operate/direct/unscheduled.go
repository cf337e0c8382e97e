package direct

import (
	"cmp"
	"slices"
	"time"

	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/redislock"
)

// Rollout is what decides for how long nodes may have different jobs.
type Rollout struct {
	Since  time.Time     // since when the configuration of Tasks is in force; zero: unknown
	Within time.Duration // how long a change may take to reach every node
}

// Unscheduled reports that the leader of a picture has not the job in its configuration; nil if it has, if no
// node leads, or if the leader does not say.
func (r Rollout) Unscheduled(p redislock.Picture, t tasks.Task) *diagnose.Unscheduled {
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

// gatherUnscheduled marks the jobs that the leader's configuration has not.
func (v View) gatherUnscheduled(s diagnose.Snapshot, p redislock.Picture) {
	for _, t := range v.Tasks {
		u := v.Rollout.Unscheduled(p, t)
		at := slices.IndexFunc(s.Jobs, func(j diagnose.Job) bool { return j.Name == t.Config.Name })
		if u != nil && at >= 0 {
			s.Jobs[at].Unscheduled, s.Jobs[at].NextRun = u, time.Time{}
		}
	}
}
