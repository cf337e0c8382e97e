package daemon

import (
	"context"
	"time"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/redisstore"
	"baton/internal/status"
)

// standEvery is how often the leader asks the ledger how its jobs stand.
const standEvery = 15 * time.Second

// jobWatch is what the leader keeps in mind of its jobs through a term.
type jobWatch struct {
	began    time.Time
	asked    time.Time
	states   map[string]redisstore.JobState
	unpaused map[string]time.Time // when a job was last seen to be paused
}

func newJobWatch() *jobWatch {
	return &jobWatch{began: time.Now(), states: map[string]redisstore.JobState{}, unpaused: map[string]time.Time{}}
}

// tellLateAfter tells from when on each job is late.
func tellLateAfter(m *status.Metrics, c config.Config) {
	for _, j := range c.Jobs {
		m.JobLateAfter(j.Name, j.LateAfter)
	}
}

// recall learns from the ledger how jobs stand, some of which another leader ran.
func (g gauges) recall(ctx context.Context) {
	names := make([]string, len(g.jobs))
	for i, b := range g.jobs {
		names[i] = b.job.Name
	}
	states, err := g.ledger.Jobs(ctx, names)
	if err != nil {
		return
	}
	g.watch.asked = time.Now()
	for i, st := range states {
		if b := g.jobs[i]; b.flush != nil && !st.Fresh.IsZero() {
			b.flush.fresh.CompareAndSwap(0, st.Fresh.UnixMilli())
		}
		if st.Paused != nil {
			g.watch.unpaused[names[i]] = g.watch.asked
		}
		g.watch.states[names[i]] = st
		g.metrics.JobSucceeded(names[i], st.LastSuccess)
	}
}

// stands tells how a job stands; lag is a flush's.
func (g gauges) stands(b boundTask, lag time.Duration) {
	st, known := g.watch.states[b.job.Name]
	if known {
		g.metrics.JobStands(b.job.Name, status.Standing{
			Failures: st.ConsecutiveFailures, Paused: st.Paused != nil, Overdue: g.watch.overdue(b.task, st, lag, time.Now()),
		})
	}
}

// overdue is how long ago a run was due with no success since. A command that runs is
// waited for: its timeout ends it. One that goes on and on has no success; a flush that
// does is as overdue as it lags.
func (w *jobWatch) overdue(t task, st redisstore.JobState, lag time.Duration, now time.Time) time.Duration {
	switch {
	case st.Paused != nil:
		return 0
	case job.IsAlways(t.schedule) && t.config.IsCommand():
		return 0
	case job.IsAlways(t.schedule):
		return lag
	case t.config.IsCommand() && len(st.Running) > 0:
		return 0
	}
	since := st.LastSuccess
	if since.IsZero() {
		since = w.began // nobody knows since when it is configured
	}
	if at := w.unpaused[t.config.Name]; at.After(since) {
		since = at
	}
	due := t.next(since)
	if due.IsZero() {
		return 0
	}
	return max(now.Sub(due), 0)
}
