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

// View is one election, with the jobs that run under its lock.
type View struct {
	LockKey  string
	Election site.Election
	Ledger   *redisledger.Ledger
	Stages   *staging.Stages
	Tasks    []tasks.Task
	Poll     time.Duration // the interval of the nodes; all nodes should have the same configuration
	Rollout  Rollout
}

// Gather adds data from Redis to s. It adds everything about the first view's election, the leaders of the other elections, and the state
// of the jobs that are both in a view and in s.Jobs.
func Gather(ctx context.Context, s diagnose.Snapshot, views []View) (diagnose.Snapshot, error) {
	p, err := views[0].Election.State(ctx, eventsShown)
	if err != nil {
		return s, err
	}
	e := ElectionOf(p, views[0].Poll)
	s.Leader, s.Vacancy, s.Paused, s.Held = e.Leader, vacancy(p), pauseOf(p), p.Held
	s.Nodes, s.NodesRead, s.Events = shown(e.Nodes, p.Leader), e.NodesRead, eventsOf(p)
	s.RolloutWithin = text.Seconds(views[0].Rollout.Within)
	for i, v := range views {
		seen := p
		if i > 0 {
			other, err := v.Election.State(ctx, 1)
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
	if s.Jobs == nil { // the caller needs no jobs
		return s, nil
	}
	var all []tasks.Task
	for _, v := range views {
		all = append(all, v.Tasks...)
	}
	ctx, cancel := context.WithTimeout(ctx, storesWithin)
	defer cancel()
	s.LeftStages, _ = leftStages(ctx, views[0].Stages, all) // baton doctor reports the stages that could not be read
	return s, nil
}

// gatherJobs adds the state in Redis of the view's jobs to the jobs in s with the same names.
func (v View) gatherJobs(ctx context.Context, s diagnose.Snapshot, owner string, now time.Time) error {
	states, err := v.Ledger.Jobs(ctx, tasks.Names(v.Tasks))
	if err != nil {
		return err
	}
	known := make([]int, len(states))
	jobs := make([]*diagnose.Job, len(states)) // found before the loop, because other goroutines change the jobs of their store
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

// gatherJob adds a job's state in Redis to j, and also the state in the job's store if the store answers.
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

// PastOf returns the part of a job's state in the ledger that decides when the job is due. The argument behind is the time since which
// changes have waited for a flush, or zero.
func PastOf(st redisledger.JobState, behind time.Time) diagnose.Past {
	p := diagnose.Past{LastSuccess: st.LastSuccess, Begun: st.Begun, Known: st.Known, Behind: behind}
	for _, pause := range st.Pauses {
		p.Paused = append(p.Paused, diagnose.Span(pause))
	}
	return p
}

// behindSince returns the time since which changes have waited for a flush. It returns zero if no changes wait, or if the time is unknown.
func behindSince(j diagnose.Job, now time.Time) time.Time {
	if lag, known := j.Lag(); known && lag > 0 {
		return now.Add(-lag)
	}
	return time.Time{}
}

// gatherBacklog adds to j how far the table of a flush is behind Redis. For a flush that has never succeeded, the time counts from its
// first slot, or from the time when a leader first knew the job.
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

// eventsOf returns the event history, the newest event first.
func eventsOf(p redislock.ElectionState) []diagnose.Event {
	events := make([]diagnose.Event, len(p.Events))
	for i, e := range p.Events {
		events[i] = diagnose.Event{At: e.At, Event: e.Event, NodeID: e.NodeID, Epoch: e.Epoch,
			Code: string(e.Code), Reason: e.Reason, Over: e.Over}
	}
	return events
}

// vacancy returns the reason why no node takes the free lock yet. It returns "" if a node may take the lock, or if a node leads.
func vacancy(p redislock.ElectionState) string {
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
		return "no node has jobs, and a node without jobs does not campaign"
	case len(p.Candidates()) == 0 && !p.Cut:
		return "there is no node that may lead"
	}
	return withdrawn(p)
}

// withdrawn returns a text if a node has just taken the lock and given it back, because too few replicas have the lock. It returns "" if
// the last event is another event.
func withdrawn(p redislock.ElectionState) string {
	if p.Owner != "" || len(p.Events) == 0 {
		return ""
	}
	ev := p.Events[0]
	if ev.Event != string(elector.EventWithdrawn) || p.Now.Sub(ev.At) > redislock.GoneAfter {
		return ""
	}
	return fmt.Sprintf("%s took the lock and gave it back, %v ago: %s", ev.NodeID, text.Duration(p.Now.Sub(ev.At)), ev.Reason)
}

func pauseOf(p redislock.ElectionState) *diagnose.Pause {
	if p.Paused == nil {
		return nil
	}
	return &diagnose.Pause{Since: p.Paused.At, Reason: p.Paused.Reason}
}

// CoolDownOf returns the reason why a node lets other nodes lead. It returns "" if the node does not do so.
func CoolDownOf(p redislock.ElectionState, node string) string {
	a, ok := p.CoolDowns[node]
	if !ok || node == p.Leader {
		return ""
	}
	return fmt.Sprintf("for another %v: %s", text.Duration(a.Left), a.Reason)
}

func leaderOf(p redislock.ElectionState) *diagnose.Leader {
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

// ConfiguredJobs returns the jobs with the data that comes from the configuration alone.
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
		j.Running = run // the last one is the latest run
		if len(st.Running) > 1 {
			j.Open = append(j.Open, *run)
		}
	}
}

// PauseOf returns the pause of a job. It returns nil if p is nil.
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
