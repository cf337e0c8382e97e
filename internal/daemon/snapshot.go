package daemon

import (
	"context"
	"time"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// Snapshot is the state of an election and its jobs, as the commands print it.
type Snapshot = status.Snapshot

const (
	eventsShown = 50
	// goneAfter is when a node that has not told of itself counts as gone: three
	// times what a standby takes.
	goneAfter = 45 * time.Second
	// forgottenAfter is when it is not listed any more.
	forgottenAfter = 24 * time.Hour
)

// gather adds to s what Redis knows.
func gather(ctx context.Context, s status.Snapshot, election election, ledger *redisstore.Ledger, tasks []task) (status.Snapshot, error) {
	p, err := election.Picture(ctx, eventsShown)
	if err != nil {
		return s, err
	}
	s.Leader = leaderOf(p)
	for _, n := range p.Nodes {
		ago := p.Now.Sub(n.Seen())
		if ago > forgottenAfter {
			continue
		}
		s.Nodes = append(s.Nodes, status.Node{
			ID: n.ID, State: nodeState(n, p), Version: n.Version, ConfigHash: n.ConfigHash, Address: n.Address,
			LastSeenMSAgo: max(ago.Milliseconds(), 0), Stale: ago > goneAfter,
		})
	}
	for _, e := range p.Events {
		s.Events = append(s.Events, status.Event{At: e.At, Event: e.Event, NodeID: e.NodeID, Epoch: e.Epoch, Reason: e.Reason})
	}
	states, err := ledger.Jobs(ctx, names(tasks))
	if err != nil {
		return s, err
	}
	for i, st := range states {
		fillJob(&s.Jobs[i], st)
		if backlog, err := tasks[i].backlog(ctx); err == nil {
			s.Jobs[i].Backlog = &backlog
			seconds := lag(backlog, st.LastSuccess, p.Now).Seconds()
			s.Jobs[i].LagSeconds = &seconds
		}
	}
	return s, nil
}

func leaderOf(p redisstore.Picture) *status.Leader {
	if p.Owner == "" {
		return nil
	}
	l := &status.Leader{NodeID: p.Leader, Owner: p.Owner, LeaseLeftMS: p.Left.Milliseconds(), Foreign: p.Leader == ""}
	if !l.Foreign {
		l.Epoch, l.Since, l.TTLMS = p.Epoch, p.Since, p.TTL.Milliseconds()
	}
	return l
}

// nodeState corrects what a node last told: it may have died leading.
func nodeState(n redisstore.Node, p redisstore.Picture) string {
	if n.State == "leading" && n.ID != p.Leader {
		return "standby"
	}
	return n.State
}

// configuredJobs is what the configuration alone says of the jobs.
func configuredJobs(tasks []task, now time.Time) []status.Job {
	jobs := make([]status.Job, len(tasks))
	for i, t := range tasks {
		jobs[i] = status.Job{
			Name: t.config.Name, Schedule: t.config.Schedule, ScheduleWords: t.schedule.Describe(), TimeZone: t.config.TimeZone,
			Target: target(t.config), NextRun: t.schedule.Next(now),
		}
	}
	return jobs
}

func target(j config.Job) string { return j.Flush.To.Database + "." + j.Flush.To.Table }

func fillJob(j *status.Job, st redisstore.JobState) {
	j.ConsecutiveFailures = int(st.ConsecutiveFailures)
	j.Running, j.LastRun = runOf(st.Running), runOf(st.Last)
}

func runOf(r *job.Record) *status.Run {
	if r == nil {
		return nil
	}
	run := &status.Run{
		ID: r.ID, State: string(r.State), Trigger: string(r.Trigger), Slot: r.Slot, Started: r.Started,
		Rows: r.Result.Rows, Dead: r.Result.Dead, Error: r.Error, NodeID: r.Term.NodeID, Epoch: r.Term.Epoch,
	}
	if !r.Finished.IsZero() {
		run.DurationMS = r.Finished.Sub(r.Started).Milliseconds()
	}
	return run
}

func names(tasks []task) []string {
	list := make([]string, len(tasks))
	for i, t := range tasks {
		list[i] = t.config.Name
	}
	return list
}
