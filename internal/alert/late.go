package alert

import (
	"context"
	"time"

	"baton/internal/job/schedule"
	"baton/internal/notify"
	"baton/internal/redisledger"
)

// lateEvery is how often the leader looks for jobs that are late.
const lateEvery = 5 * time.Second

// Why a job is late.
const (
	lateNoSuccess = "no_success" // a slot passed, and no run has succeeded since
	lateLag       = "lag"        // a flush is behind
)

// lateness is how late a job is.
type lateness struct {
	since time.Time     // slots up to then do not count: it succeeded, was paused, or was first seen
	due   time.Time     // the first slot after since, reckoned once; zero: there is none
	lag   time.Duration // of a flush, as last measured
	late  bool          // that has been told
}

// moved reckons the slot by which the job must succeed.
func (j *toldJob) moved() {
	j.due = time.Time{}
	if j.schedule != nil && j.lateAfter > 0 && !j.since.IsZero() {
		j.due = j.schedule.Next(j.since)
	}
}

// beginLate takes over how late the job was when the term began.
func (j *toldJob) beginLate(st redisledger.JobState, began time.Time, prev previousTerm) {
	j.since = began // whoever has never succeeded is given the time anew
	if !st.LastSuccess.IsZero() {
		j.since = st.LastSuccess
	}
	if st.Paused != nil {
		j.since = began
	}
	j.moved()
	// The leader before has told what it had the time to notice. It is told again rather
	// than never: one that has gone without a word counts for nothing.
	j.late = !j.due.IsZero() && j.due.Add(j.lateAfter+2*lateEvery).Before(prev.ended)
}

// succeeded notes that the job has done its work.
func (j *toldJob) succeeded(at time.Time) {
	j.late, j.lag = false, 0
	if at.After(j.since) {
		j.since = at
	}
	j.moved()
}

// overdue is why the job is late; "" if it is not.
func (j *toldJob) overdue(now time.Time) string {
	switch {
	case j.lateAfter <= 0:
		return ""
	case !j.due.IsZero() && now.Sub(j.due) > j.lateAfter:
		return lateNoSuccess
	case j.lag > j.lateAfter:
		return lateLag
	}
	return ""
}

// Lagged notes how far the table of a flush is behind. One that flushes all the time
// ends no run: that its lag is well below what is late is all that shows it is well.
func (n *Notifications) Lagged(name string, lag time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	j := n.jobs[name]
	if j == nil {
		return
	}
	j.lag = lag
	if j.late && !j.failing && lag < j.lateAfter/2 && schedule.IsAlways(j.schedule) {
		n.well(j, notify.Event{Kind: notify.Recovered, LockKey: j.lock, Job: name}, time.Now())
	}
}

// watchLate tells of a lock's jobs that are late, and of those that run all the time
// again. What memory says is asked of the ledger first: another node, or an operator who
// paused the job, may know better.
func (n *Notifications) watchLate(ctx context.Context, lockKey string, ledger States) {
	names := n.suspects(lockKey, time.Now())
	if len(names) == 0 {
		return
	}
	states, err := ledger.Jobs(ctx, names)
	if err != nil {
		return // later
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for _, st := range states {
		if j := n.jobs[st.Job]; j != nil && j.known {
			n.judgeLate(j, st, now)
		}
	}
}

// suspects are the jobs of a lock of which there may be something to tell.
func (n *Notifications) suspects(lockKey string, now time.Time) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for name, j := range n.jobs {
		if j.lock == lockKey && j.known && (!j.late && j.overdue(now) != "" || j.steady(now)) {
			names = append(names, name)
		}
	}
	return names
}

// steady reports whether a job that runs all the time has not failed for a while.
func (j *toldJob) steady(now time.Time) bool {
	return j.failing && j.schedule != nil && schedule.IsAlways(j.schedule) && now.Sub(j.failedAt) > SteadyAfter
}

func (n *Notifications) judgeLate(j *toldJob, st redisledger.JobState, now time.Time) {
	if st.Paused != nil {
		j.since, j.lag = now, 0
		j.moved()
		return
	}
	if st.LastSuccess.After(j.since) {
		j.since = st.LastSuccess
		j.moved()
	}
	if j.steady(now) && len(st.Running) > 0 && now.Sub(st.Running[0].Started) > SteadyAfter {
		n.well(j, notify.Event{Kind: notify.Recovered, LockKey: j.lock, Job: st.Job}, now)
	}
	why := j.overdue(now)
	if why == "" || j.late {
		return
	}
	j.late = true
	slot := j.due
	if why == lateLag {
		slot = time.Time{}
	}
	n.tell(notify.Event{
		Kind: notify.Late, LockKey: j.lock, Job: st.Job, Slot: slot, Reason: why, ConsecutiveFailures: j.failures,
		Text: lateText(st.Job, slot, j.lag, j.lateAfter),
	})
}
