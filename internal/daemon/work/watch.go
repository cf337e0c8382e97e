package work

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/storehealth"
	"baton/internal/daemon/tasks"
	"baton/internal/diagnose"
	"baton/internal/flush"
	"baton/internal/job/schedule"
	"baton/internal/operate/direct"
	"baton/internal/redisconn"
	"baton/internal/redisledger"
	"baton/internal/status/metrics"
)

const (
	// standEvery is the interval between two readings of the jobs' state by the leader.
	standEvery = 15 * time.Second
	// readJobsWithin limits the time for reading the state of the jobs, because there may be hundreds of jobs.
	readJobsWithin = 10 * time.Second
)

// Watch is a node's memory of the state of the jobs under a lock, whichever node leads. A node that becomes the leader continues with the
// memory that it had as a standby.
type Watch struct {
	mu     sync.Mutex
	asked  time.Time
	states map[string]redisledger.JobState
	waits  map[string]unflushed
	behind map[string]time.Time // since when changes wait for a flush, according to the last measurement; zero: no changes wait
}

// unflushed records since when changes wait for a flush that has never succeeded.
type unflushed struct {
	since   time.Time // when changes were first seen to wait; zero: no changes wait
	emptied bool      // at some time no changes waited
}

// NewWatch returns an empty memory.
func NewWatch() *Watch {
	return &Watch{states: map[string]redisledger.JobState{}, waits: map[string]unflushed{}, behind: map[string]time.Time{}}
}

// ShowLateAfter sets the metric that shows, for each job, how long it must be overdue before it counts as late.
func ShowLateAfter(m *metrics.Metrics, c config.Config) {
	for _, j := range c.Jobs {
		m.JobLateAfter(j.Name, j.LateAfter)
	}
}

// recall reads the state of jobs from the ledger, on any node.
func (w *Watch) recall(ctx context.Context, ledger *redisledger.Ledger, jobs []string) error {
	states, err := ledger.Jobs(ctx, jobs)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = time.Now()
	for _, st := range states {
		w.states[st.Job] = st
	}
	return nil
}

// measured records how many changes wait for a flush, and returns how far the table of the flush is behind Redis. It is certain that the
// leader has written all changes from before the time in the argument fresh. If this time is zero, that is unknown.
func (w *Watch) measured(t Task, backlog int64, fresh, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	lag := t.Lag(backlog, w.writtenUntil(t, backlog, fresh, now), now)
	w.behind[t.Config.Name] = time.Time{}
	if lag > 0 {
		w.behind[t.Config.Name] = now.Add(-lag)
	}
	return lag
}

// uncounted records that the backlog of a flush is unknown.
func (w *Watch) uncounted(t Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.behind, t.Config.Name)
}

// isBehind reports whether changes waited for a flush when they were last counted.
func (w *Watch) isBehind(t Task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.behind[t.Config.Name].IsZero()
}

// writtenUntil returns a time with the property that all changes from before this time are written. For a flush that has never succeeded,
// this is the time of its first run, or the time when waiting changes were first seen. The lag may then be too low, but it still grows and
// causes an alert. A missing lag would never cause one.
func (w *Watch) writtenUntil(t Task, backlog int64, fresh, now time.Time) time.Time {
	name := t.Config.Name
	st := w.states[name]
	if st.Fresh.After(fresh) {
		fresh = st.Fresh
	}
	if !fresh.IsZero() {
		return fresh
	}
	if backlog == 0 && t.Countable() {
		w.waits[name] = unflushed{emptied: true}
		return now
	}
	seen := w.waits[name]
	if seen.since.IsZero() {
		seen.since = now
		w.waits[name] = seen
	}
	if first := cmp.Or(st.Begun, st.Known); !seen.emptied && !first.IsZero() && first.Before(seen.since) {
		return first
	}
	return seen.since
}

// Leader contains the facts about the leader that the state of a job depends on.
type Leader struct {
	Owner string
	// Lacks returns a value if the leader's configuration does not have the job. If Lacks is nil, the leader has every job.
	Lacks func(tasks.Task) *diagnose.Unscheduled
}

// show sets the metrics of a job from the job's recorded state. The state also depends on the leader.
func (w *Watch) show(m *metrics.Metrics, t Task, led Leader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st, known := w.states[t.Config.Name]
	if !known {
		return
	}
	m.JobSucceeded(t.Config.Name, st.LastSuccess)
	if st.DeadLetters != nil {
		m.DeadLetters(t.Config.Name, *st.DeadLetters)
	}
	if found, at, ok := verifiedRows(st.Verified); ok {
		m.Verified(t.Config.Name, at, found)
	}
	m.JobStands(w.stands(t, st, led), w.asked)
}

// stands returns the state of a job, in the form from which the metrics are made.
func (w *Watch) stands(t Task, st redisledger.JobState, led Leader) diagnose.Job {
	j := diagnose.Job{
		Name: t.Config.Name, Command: t.Config.IsCommand(), Always: schedule.IsAlways(t.Schedule),
		LateAfterSeconds: t.Config.LateAfter.Seconds(),
	}
	j.ConsecutiveFailures, j.Paused = int(st.ConsecutiveFailures), direct.PauseOf(st.Paused)
	j.Awaited = j.Command && st.RunsUnder(led.Owner)
	if led.Lacks != nil {
		j.Unscheduled = led.Lacks(t.Task)
	}
	j.DueAt = j.Due(direct.PastOf(st, w.behind[j.Name]), t.Next)
	return j
}

// ReadOthers reports the state of jobs that run on another node, because that node may die and then reports nothing. It returns whether it
// could read the state.
func (w *Watch) ReadOthers(
	ctx context.Context, ledger *redisledger.Ledger, stores *storehealth.Health, jobs []Task, m *metrics.Metrics, led Leader,
) bool {
	ctx, cancel := context.WithTimeout(ctx, readJobsWithin)
	defer cancel()
	if w.recall(ctx, ledger, tasks.Names(jobs)) != nil {
		return false
	}
	counts := direct.LeaderCounts(ctx, ledger)
	tasks.ByStore(jobs, func(t Task) *redisconn.Store { return t.Store }, func(some []Task) {
		for _, t := range some {
			if !t.Config.IsCommand() && stores.Away(t.Config.Flush.From.Store) == nil {
				w.count(ctx, t, counts, m)
			}
			w.show(m, t, led)
		}
	})
	return true
}

// count reports how far the table of another leader's flush is behind Redis. If the changes cannot be counted now, a flush that was behind
// at the last count still counts as behind. The reason is that its leader may have died before it wrote these changes.
func (w *Watch) count(ctx context.Context, t Task, counts direct.Counts, m *metrics.Metrics) {
	backlog, err := counts.Backlog(ctx, t.Task)
	uncounted, ok := errors.AsType[*flush.UncountedError](err)
	switch {
	case err == nil, ok && uncounted.ByRun:
		showBehind(m, t, backlog, w.measured(t, backlog, time.Time{}, time.Now()))
	case ok && !w.isBehind(t):
		m.FlushUncounted(t.Config.Name)
	}
}
