package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/elector"
	"baton/internal/flush"
	"baton/internal/flush/source/staging"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/redislock"
	"baton/internal/text"
)

const eventsShown = 50

// View is one election, and the jobs that run under its lock.
type View struct {
	LockKey  string
	Election site.Election
	Ledger   *redisledger.Ledger
	Stages   *staging.Stages
	Tasks    []tasks.Task
	Poll     time.Duration // of the nodes, which are assumed to have the same configuration
	Rollout  Rollout
}

// Gather adds the data in Redis to s: everything about the first view's election, the leaders of the others, and the jobs of all views
// that are in s.Jobs.
func Gather(ctx context.Context, s diagnose.Snapshot, views []View) (diagnose.Snapshot, error) {
	p, err := views[0].Election.Picture(ctx, eventsShown)
	if err != nil {
		return s, err
	}
	s.Leader, s.Vacancy, s.Paused, s.Held = leaderOf(p), vacancy(p), pauseOf(p), p.Held
	s.Nodes, s.Events = nodesOf(p, views[0].Poll), eventsOf(p)
	s.RolloutWithin = text.Seconds(views[0].Rollout.Within)
	for i, v := range views {
		seen := p
		if i > 0 {
			other, err := v.Election.Picture(ctx, 1)
			if err != nil {
				return s, err
			}
			l := diagnose.Lock{Key: v.LockKey, Leader: leaderOf(other), Vacancy: vacancy(other), Held: other.Held}
			if events := eventsOf(other); len(events) > 0 {
				l.Last = &events[0]
			}
			s.Locks = append(s.Locks, l)
			seen = other
		}
		if err := v.gatherJobs(ctx, s, seen.Owner, p.Now); err != nil {
			return s, err
		}
		v.gatherUnscheduled(s, seen)
	}
	if s.Jobs == nil { // the caller wants no jobs
		return s, nil
	}
	var all []tasks.Task
	for _, v := range views {
		all = append(all, v.Tasks...)
	}
	ctx, cancel := context.WithTimeout(ctx, storesWithin)
	defer cancel()
	s.LeftStages, _ = leftStages(ctx, views[0].Stages, all) // doctor reports the stages that could not be read
	return s, nil
}

// ElectionOf is the part of a Snapshot that a picture alone gives: the leader and the nodes.
func ElectionOf(p redislock.Picture, poll time.Duration) diagnose.Snapshot {
	return diagnose.Snapshot{Leader: leaderOf(p), Nodes: nodesOf(p, poll)}
}

// nodesOf are the nodes of an election that are not forgotten yet.
func nodesOf(p redislock.Picture, poll time.Duration) (nodes []diagnose.Node) {
	for _, n := range p.Nodes {
		ago := p.Now.Sub(n.Seen())
		if ago > redislock.ForgottenAfter {
			continue
		}
		nodes = append(nodes, diagnose.Node{
			ID: n.ID, State: nodeState(n, p, SilentAfter(poll)), Led: ledLast(n, p),
			Version: n.Version, ConfigHash: n.ConfigHash, Address: n.Address,
			Priority: n.Priority, Observer: n.Observer, Aside: CoolDownOf(p, n.ID),
			LastSeenAgo: text.Seconds(max(ago, 0)), Stale: ago > redislock.GoneAfter,
			Instance: n.Instance, Twin: n.Twin, ClockAhead: text.Seconds(n.ClockMS) * text.Millisecond,
			Jobs: countOf(n.Jobs), ConfigSince: n.ConfigSince(),
		})
	}
	return nodes
}

// countOf is how many jobs a node has; nil if it does not say.
func countOf(jobs []string) *int {
	if jobs == nil {
		return nil
	}
	return new(len(jobs))
}

// SeenNow sets the answering node's last sign of life to now: its entry in Redis is older. A node that has not written for long, or has a
// twin, is shown as it is.
func SeenNow(nodes []diagnose.Node, id string) {
	for i, n := range nodes {
		if n.ID == id && !n.Stale && n.Twin == "" {
			nodes[i].LastSeenAgo = 0
			if n.State == diagnose.StateSilent {
				nodes[i].State, nodes[i].Led = string(diagnose.RoleStandby), false
			}
		}
	}
}

// gatherJobs adds the state in Redis of the view's jobs to them, by their names.
func (v View) gatherJobs(ctx context.Context, s diagnose.Snapshot, owner string, now time.Time) error {
	states, err := v.Ledger.Jobs(ctx, tasks.Names(v.Tasks))
	if err != nil {
		return err
	}
	known := make([]int, len(states))
	jobs := make([]*diagnose.Job, len(states)) // found before the loop: other goroutines change the jobs of their store meanwhile
	for i, st := range states {
		known[i] = i
		if at := slices.IndexFunc(s.Jobs, func(j diagnose.Job) bool { return j.Name == st.Job }); at >= 0 {
			jobs[i] = &s.Jobs[at]
		}
	}
	counts := LeaderCounts(ctx, v.Ledger)
	tasks.ByStore(known, func(i int) *redisconn.Store { return v.Tasks[i].Store }, func(some []int) {
		ctx, cancel := ctx, context.CancelFunc(func() {})
		if v.Tasks[some[0]].Config.Flush.From.Store != "" {
			ctx, cancel = context.WithTimeout(ctx, storesWithin)
		}
		defer cancel()
		for _, i := range some {
			if j := jobs[i]; j != nil {
				gatherJob(ctx, j, v.Tasks[i], states[i], s.Answers(j.Store), owner, now, counts)
			}
		}
	})
	return nil
}

// gatherJob adds the state of a job in Redis to it, and in its store if that answers.
func gatherJob(
	ctx context.Context, j *diagnose.Job, t tasks.Task, st redisledger.JobState, answers bool, owner string, now time.Time,
	counts Counts,
) {
	fillJob(j, st)
	j.Awaited = t.Config.IsCommand() && st.RunsUnder(owner)
	if p := j.Paused; p != nil && p.Until.After(j.NextRun) {
		j.NextRun = t.Next(p.Until)
	}
	switch {
	case t.Config.IsCommand():
	case answers:
		gatherBacklog(ctx, t, j, st, now, counts)
	default:
		j.BacklogUnknown = fmt.Sprintf("store %q does not answer", j.Store)
	}
	j.DueAt = j.Due(PastOf(st, behindSince(*j, now)), t.Next)
}

// PastOf is the part of a job's state in the ledger that decides when the job is due. behind is since when changes wait for a flush, or
// zero.
func PastOf(st redisledger.JobState, behind time.Time) diagnose.Past {
	p := diagnose.Past{LastSuccess: st.LastSuccess, Begun: st.Begun, Known: st.Known, Behind: behind}
	for _, pause := range st.Pauses {
		p.Paused = append(p.Paused, diagnose.Span(pause))
	}
	return p
}

// behindSince is since when changes wait for a flush; zero if none do, or if that is unknown.
func behindSince(j diagnose.Job, now time.Time) time.Time {
	if lag, known := j.Lag(); known && lag > 0 {
		return now.Add(-lag)
	}
	return time.Time{}
}

// gatherBacklog reports how far a flush is behind. A flush that never ended well counts from its first slot, or from when a leader first
// knew it.
func gatherBacklog(ctx context.Context, t tasks.Task, j *diagnose.Job, st redisledger.JobState, now time.Time, counts Counts) {
	backlog, err := counts.Backlog(ctx, t)
	uncounted, ok := errors.AsType[*flush.UncountedError](err)
	if ok {
		j.BacklogUnknown = uncounted.Why
		if r := j.LastRun; uncounted.Elsewhere && j.ConsecutiveFailures > 0 && r != nil && r.Error != "" {
			j.BacklogUnknown += ": " + r.Error
		}
	}
	byRun := ok && uncounted.ByRun
	if err != nil && !byRun {
		return
	}
	if !byRun {
		j.Backlog = &backlog
	}
	fresh := cmp.Or(st.Fresh, st.Begun, st.Known)
	if !fresh.IsZero() || backlog == 0 && !byRun {
		seconds := t.Lag(backlog, fresh, now).Seconds()
		j.LagSeconds = &seconds
	}
}

// eventsOf is the history, newest first.
func eventsOf(p redislock.Picture) []diagnose.Event {
	events := make([]diagnose.Event, len(p.Events))
	for i, e := range p.Events {
		events[i] = diagnose.Event{At: e.At, Event: e.Event, NodeID: e.NodeID, Epoch: e.Epoch,
			Code: string(e.Code), Reason: e.Reason, Over: e.Over}
	}
	return events
}

// vacancy is why no node takes the free lock yet; "" if a node may, or one leads.
func vacancy(p redislock.Picture) string {
	switch {
	case p.Owner != "":
		return ""
	case p.Paused != nil:
		return "paused " + p.Paused.Reason
	case p.Quarantine > 0:
		left := text.Duration(p.Quarantine)
		return fmt.Sprintf("in quarantine for another %v, since redis has restarted, failed over or lost its data", left)
	case p.ReservedFor != "":
		return fmt.Sprintf("reserved for %s for another %v", p.ReservedFor, text.Duration(p.ReservedLeft))
	case ElectionOf(p, 0).Jobless():
		return "no node has jobs, and one without jobs does not campaign"
	case len(p.Candidates()) == 0:
		return "no node is there that may lead"
	}
	return withdrawn(p)
}

// withdrawn reports a lock that was just taken and given back, since too few replicas have it. "" if the last event is another one.
func withdrawn(p redislock.Picture) string {
	if p.Owner != "" || len(p.Events) == 0 {
		return ""
	}
	ev := p.Events[0]
	if ev.Event != string(elector.EventWithdrawn) || p.Now.Sub(ev.At) > redislock.GoneAfter {
		return ""
	}
	return fmt.Sprintf("%s took the lock and gave it back, %v ago: %s", ev.NodeID, text.Duration(p.Now.Sub(ev.At)), ev.Reason)
}

func pauseOf(p redislock.Picture) *diagnose.Pause {
	if p.Paused == nil {
		return nil
	}
	return &diagnose.Pause{Since: p.Paused.At, Reason: p.Paused.Reason}
}

// CoolDownOf is why a node leaves the lead to others; "" if it does not.
func CoolDownOf(p redislock.Picture, node string) string {
	a, ok := p.CoolDowns[node]
	if !ok || node == p.Leader {
		return ""
	}
	return fmt.Sprintf("for another %v: %s", text.Duration(a.Left), a.Reason)
}

func leaderOf(p redislock.Picture) *diagnose.Leader {
	if p.Owner == "" {
		return nil
	}
	l := &diagnose.Leader{NodeID: p.Leader, Owner: p.Owner, LeaseLeft: text.Seconds(p.Left), Foreign: p.Leader == ""}
	if !l.Foreign {
		l.Epoch, l.Since, l.TTL = p.Epoch, p.Since, text.Seconds(p.TTL)
		for _, n := range p.Nodes {
			if n.ID == p.Leader {
				l.Ending = n.Ending
			}
		}
	}
	return l
}

// missingAfter is when a node counts as silent that leads no more and has not said so. A leader registers at least this often, and a
// node that steps down reports that at once.
const missingAfter = 3 * time.Second

// SilentAfter is when a node should have told of itself.
func SilentAfter(poll time.Duration) time.Duration { return diagnose.SeenWithin + poll }

// nodeState corrects the state that a node last wrote: the node may have died since.
func nodeState(n redislock.Node, p redislock.Picture, silent time.Duration) string {
	ago := p.Now.Sub(n.Seen())
	switch {
	case n.ID == p.Leader:
		return n.State
	case ledLast(n, p), ago > silent:
		return diagnose.StateSilent
	}
	return string(diagnose.RoleStandby)
}

// ledLast reports whether a node said that it leads when it last registered, and leads no more.
func ledLast(n redislock.Node, p redislock.Picture) bool {
	return n.ID != p.Leader && n.State == string(diagnose.RoleLeading) && p.Now.Sub(n.Seen()) > missingAfter
}

// ConfiguredJobs is the part of the jobs that the configuration alone gives.
func ConfiguredJobs(list []tasks.Task, now time.Time) []diagnose.Job {
	jobs := make([]diagnose.Job, len(list))
	for i, t := range list {
		jobs[i] = diagnose.Job{
			Name: t.Config.Name, Schedule: t.Config.Schedule, ScheduleWords: t.Schedule.Describe(), TimeZone: t.Config.TimeZone,
			Target: t.Target(), Store: t.Config.Flush.From.Store, Command: t.Config.IsCommand(), Always: schedule.IsAlways(t.Schedule),
			Lock: t.Config.Lock, Overlap: t.Config.Overlap, NextRun: t.Next(now),
			Definition: t.Shown, Comparable: tasks.CheckKeys(t.Config) == nil, LateAfterSeconds: t.Config.LateAfter.Seconds(),
		}
	}
	return jobs
}

func fillJob(j *diagnose.Job, st redisledger.JobState) {
	j.ConsecutiveFailures = int(st.ConsecutiveFailures)
	j.DeadLetters, j.Unaccepted = st.DeadLetters, st.Unaccepted
	j.Operation, j.Verified = operationOf(st.Operation), operationOf(st.Verified)
	j.LastRun, j.Paused = runOf(st.Last), PauseOf(st.Paused)
	if r := st.Retry; r != nil {
		j.Retry = &diagnose.Retry{Slot: r.Slot, Attempt: r.Attempt, At: r.At}
	}
	for _, open := range st.Running {
		run := runOf(&open.Record)
		if p := open.Progress; p != nil {
			run.Batches = p.Batches
			if p.Backlog >= 0 {
				run.Backlog = &p.Backlog
			}
		}
		j.Running = run // the latest
		if len(st.Running) > 1 {
			j.Open = append(j.Open, *run)
		}
	}
}

// PauseOf is the pause of a job; nil without a pause.
func PauseOf(p *redisledger.JobPause) *diagnose.Pause {
	if p == nil {
		return nil
	}
	return &diagnose.Pause{Since: p.At, Reason: p.Reason, Until: p.Until, All: p.All}
}

func runOf(r *job.Record) *diagnose.Run {
	if r == nil {
		return nil
	}
	run := &diagnose.Run{
		ID: r.ID, State: string(r.State), Trigger: string(r.Trigger), Attempt: r.Attempt, By: r.By, Forced: r.Forced,
		Slot: r.Slot, Started: r.Started, Rows: r.Result.Rows, Deleted: r.Result.Deleted, Dead: r.Result.Dead, ExitCode: r.Result.ExitCode,
		Output: r.Result.Output, Error: r.Error, NodeID: r.Term.NodeID, Epoch: r.Term.Epoch, Owner: r.Term.Owner,
	}
	if r.Idle != nil && r.Idle.Runs > 1 {
		run.Idle = &diagnose.Idle{Runs: r.Idle.Runs, First: r.Idle.First}
	}
	if !r.Finished.IsZero() {
		run.Duration = text.Seconds(r.Finished.Sub(r.Started))
	}
	return run
}
