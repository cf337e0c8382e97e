package daemon

import (
	"context"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/job/schedule"
	"baton/internal/redisledger"
	"baton/internal/status"
)

// standEvery is how often the leader asks the ledger how its jobs stand.
const standEvery = 15 * time.Second

// jobWatch is what a node keeps in mind of the jobs under a lock, whoever leads: a new
// leader goes on from what the standby knew.
type jobWatch struct {
	began time.Time

	mu     sync.Mutex
	asked  time.Time
	states map[string]redisledger.JobState
	pauses map[string]pauseSeen
	waits  map[string]waiting
	behind map[string]time.Time // since when changes wait for a flush, as last measured; zero: none do
}

// pauseSeen is the last pause of a job that was seen.
type pauseSeen struct{ from, to time.Time }

// waiting is what was seen of the changes for a flush that never ended well.
type waiting struct {
	since   time.Time // when some were first seen to wait; zero: none wait
	emptied bool      // there was a time when none did
}

func newJobWatch() *jobWatch {
	return &jobWatch{began: time.Now(), states: map[string]redisledger.JobState{}, pauses: map[string]pauseSeen{}, waits: map[string]waiting{}, behind: map[string]time.Time{}}
}

// tellLateAfter tells from when on each job is late.
func tellLateAfter(m *status.Metrics, c config.Config) {
	for _, j := range c.Jobs {
		m.JobLateAfter(j.Name, j.LateAfter)
	}
}

// recall learns from the ledger how jobs stand, whoever ran them.
func (w *jobWatch) recall(ctx context.Context, ledger *redisledger.Ledger, jobs []string) error {
	states, err := ledger.Jobs(ctx, jobs)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = time.Now()
	for _, st := range states {
		if p := st.Paused; p != nil {
			w.pauses[st.Job] = pauseSeen{from: p.At, to: w.asked}
		}
		w.states[st.Job] = st
	}
	return nil
}

// measured notes how many changes wait for a flush, and returns how far it is behind. fresh is
// before which time its leader knows everything to be written, else zero.
func (w *jobWatch) measured(t task, backlog int64, fresh, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	lag := t.Lag(backlog, w.writtenUntil(t, backlog, fresh, now), now)
	w.behind[t.Config.Name] = time.Time{}
	if lag > 0 {
		w.behind[t.Config.Name] = now.Add(-lag)
	}
	return lag
}

// writtenUntil is before which time everything is written. Of a flush that never ended well it is
// when it first ran, or when something was first seen to wait: an underestimated lag still
// alerts, a missing one never would.
func (w *jobWatch) writtenUntil(t task, backlog int64, fresh, now time.Time) time.Time {
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
	if !seen.emptied && !st.Begun.IsZero() && st.Begun.Before(seen.since) {
		return st.Begun
	}
	return seen.since
}

// tell tells how a job stands while owner leads.
func (w *jobWatch) tell(m *status.Metrics, t task, owner string) {
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
	s := status.Standing{
		At: w.asked, Failures: st.ConsecutiveFailures, Paused: st.Paused != nil,
		Due: w.due(t, st), Running: t.Config.IsCommand() && runsUnder(st, owner),
	}
	if st.Paused != nil {
		s.Until = st.Paused.At
	}
	m.JobStands(t.Config.Name, s)
}

// runsUnder reports whether a run goes on under the leader that there is: one of a leader
// that has died stays open until the next one closes it.
func runsUnder(st redisledger.JobState, owner string) bool {
	for _, r := range st.Running {
		if r.Term.Owner == owner {
			return true
		}
	}
	return false
}

// due is when a run was, or is, due that has to succeed; zero if none has. A flush that goes
// on and on has no slots: it is due since the time it is behind.
func (w *jobWatch) due(t task, st redisledger.JobState) time.Time {
	switch {
	case schedule.IsAlways(t.Schedule) && t.Config.IsCommand():
		return time.Time{}
	case schedule.IsAlways(t.Schedule):
		return w.behind[t.Config.Name]
	case st.LastSuccess.IsZero() && !st.Begun.IsZero():
		return st.Begun
	}
	since := st.LastSuccess
	if since.IsZero() {
		since = w.began // nobody knows since when it is configured
	}
	due := t.Next(since)
	p := w.pauses[t.Config.Name]
	// A slot inside a pause was not meant to run; one before it still is owed.
	if due.After(p.from) && !due.After(p.to) && st.Paused == nil {
		due = t.Next(p.to)
	}
	return due
}
