package alert

import (
	"context"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/notify"
	"baton/internal/redisledger"
)

// lateEvery is how often the leader checks for jobs that are late.
const lateEvery = 5 * time.Second

// lateness is how late a job is.
type lateness struct {
	past diagnose.Past
	late bool // that has been sent
}

// moved reckons anew when the job is, or was, due.
func (j *reportedJob) moved() { j.job.DueAt = j.job.Due(j.past, j.next) }

// next is when the job starts after a time; the zero time if its schedule has no more slots.
func (j *reportedJob) next(after time.Time) time.Time {
	if j.schedule == nil {
		return time.Time{}
	}
	slot := j.schedule.Next(after.Add(-j.offset))
	if slot.IsZero() {
		return slot
	}
	return slot.Add(j.offset)
}

// dueSlot is the slot by which the job is due.
func (j *reportedJob) dueSlot() time.Time {
	if j.job.DueAt.Equal(j.past.Begun) {
		return j.job.DueAt
	}
	return j.job.DueAt.Add(-j.offset)
}

// stands takes over how the job stands by the ledger.
func (j *reportedJob) stands(st redisledger.JobState, epoch int64) {
	if st.LastSuccess.After(j.past.LastSuccess) {
		j.past.LastSuccess = st.LastSuccess
	}
	j.past.Begun = st.Begun
	if !st.Known.IsZero() {
		j.past.Known = st.Known
	}
	j.past.Paused = nil
	for _, p := range st.Pauses {
		j.past.Paused = append(j.past.Paused, diagnose.Span(p))
	}
	j.job.Paused = nil
	if st.Paused != nil {
		j.job.Paused = &diagnose.Pause{Since: st.Paused.At}
	}
	j.job.Awaited = j.job.Command && slices.ContainsFunc(st.Running, func(r redisledger.OpenRun) bool { return r.Term.Epoch == epoch })
	j.moved()
}

// beginLate takes over how late the job was when the term began.
func (j *reportedJob) beginLate(st redisledger.JobState, epoch int64, began time.Time, prev previousTerm) {
	j.past.Known = began // of a job that the ledger does not know
	j.stands(st, epoch)
	// The leader before has sent what it had the time to notice. It is sent again rather
	// than never: one that crashed counts for nothing.
	j.late = !j.job.DueAt.IsZero() && j.job.DueAt.Add(j.job.LateAfter()+2*lateEvery).Before(prev.ended)
}

// succeeded notes that the job has done its work.
func (j *reportedJob) succeeded(at time.Time) {
	j.late, j.past.Behind = false, time.Time{}
	if at.After(j.past.LastSuccess) {
		j.past.LastSuccess = at
	}
	j.moved()
}

// isLate is why the job is late; "" if it is not, or has no late_after: then no one has asked.
func (j *reportedJob) isLate(now time.Time) diagnose.Late {
	if j.job.LateAfterSeconds <= 0 {
		return ""
	}
	return j.job.IsLate(now)
}

// mayBeLate reports whether the job is late if it is neither paused nor waited for any more.
func (j *reportedJob) mayBeLate(now time.Time) bool {
	if j.late || j.job.LateAfterSeconds <= 0 {
		return false
	}
	free := j.job
	free.Paused, free.Awaited = nil, false
	return free.IsLate(now) != ""
}

// Lagged notes how far the table of a flush is behind. One that flushes all the time
// ends no run: a lag far below what is late is its only sign of recovery.
func (n *Notifications) Lagged(name string, lag time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	j := n.jobs[name]
	if j == nil {
		return
	}
	now := time.Now()
	j.past.Behind = time.Time{}
	if lag > 0 {
		j.past.Behind = now.Add(-lag)
	}
	j.moved()
	if j.late && !j.failing && lag < j.job.LateAfter()/2 && j.job.Always {
		n.recovered(j, notify.Event{Kind: notify.Recovered, LockKey: j.lock, Job: name}, now)
	}
}

// watchLate reports a lock's jobs that are late, and of those that run all the time
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

// suspects are the jobs of a lock of which there may be something to report.
func (n *Notifications) suspects(lockKey string, now time.Time) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for name, j := range n.jobs {
		if j.lock == lockKey && j.known && (j.mayBeLate(now) || j.steady(now)) {
			names = append(names, name)
		}
	}
	return names
}

// steady reports whether a job that runs all the time has not failed for a while.
func (j *reportedJob) steady(now time.Time) bool {
	return j.failing && j.job.Always && now.Sub(j.failedAt) > SteadyAfter
}

func (n *Notifications) judgeLate(j *reportedJob, st redisledger.JobState, now time.Time) {
	j.stands(st, n.epochs[j.lock])
	if st.Paused == nil && j.steady(now) && len(st.Running) > 0 && now.Sub(st.Running[0].Started) > SteadyAfter {
		n.recovered(j, notify.Event{Kind: notify.Recovered, LockKey: j.lock, Job: st.Job}, now)
	}
	why := j.isLate(now)
	if why == "" || j.late {
		return
	}
	j.late = true
	e := notify.Event{
		Kind: notify.Late, LockKey: j.lock, Job: st.Job, Reason: string(why), ConsecutiveFailures: j.failures,
		Text: lagText(st.Job, now.Sub(j.job.DueAt), j.job.LateAfter()),
	}
	if why == diagnose.LateNoSuccess {
		e.Slot = j.dueSlot()
		e.Text = overdueText(st.Job, e.Slot, j.job.LateAfter())
	}
	n.send(e)
}
