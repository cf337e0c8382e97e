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
	// standEvery is how often the leader reads the state of its jobs from the ledger.
	standEvery = 15 * time.Second
	// readJobsWithin bounds a reading of the jobs; there may be hundreds.
	readJobsWithin = 10 * time.Second
)

// Watch is a node's memory of the jobs under a lock, under any leader: a new leader continues from its memory as a standby.
type Watch struct {
	mu     sync.Mutex
	asked  time.Time
	states map[string]redisledger.JobState
	waits  map[string]waiting
	behind map[string]time.Time // since when changes wait for a flush, as last measured; zero: no changes wait
}

// waiting is the memory of changes for a flush that never ended well.
type waiting struct {
	since   time.Time // when changes were first seen to wait; zero: no changes wait
	emptied bool      // at some time no changes waited
}

// NewWatch makes an empty memory.
func NewWatch() *Watch {
	return &Watch{states: map[string]redisledger.JobState{}, waits: map[string]waiting{}, behind: map[string]time.Time{}}
}

// ShowLateAfter shows from when on each job is late.
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

// measured notes how many changes wait for a flush, and returns how far it is behind. fresh is the time up to which the leader has
// written everything for certain, or zero.
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

// uncounted notes that the backlog of a flush is unknown.
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

// writtenUntil is the time up to which everything is written. For a flush that never ended well that is its first run, or when changes
// were first seen to wait: an underestimated lag still alerts, a missing one never would.
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
		w.waits[name] = waiting{emptied: true}
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

// Led is the leader, for the state of a job.
type Led struct {
	Owner string
	// Lacks reports that the leader's configuration does not have a job. Nil: it has every job.
	Lacks func(tasks.Task) *diagnose.Unscheduled
}

// show reports the state of a job under a leader.
func (w *Watch) show(m *metrics.Metrics, t Task, led Led) {
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

// stands is the state of a job for metrics.
func (w *Watch) stands(t Task, st redisledger.JobState, led Led) diagnose.Job {
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

// ReadOthers reports the state of jobs that run on another node: that node may die with its own reports. It returns whether it could read
// them.
func (w *Watch) ReadOthers(
	ctx context.Context, ledger *redisledger.Ledger, stores *storehealth.Health, jobs []Task, m *metrics.Metrics, led Led,
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

// count reports how far a flush of another leader is behind. A flush that was behind stays so until it is counted again: its leader may
// have died.
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
