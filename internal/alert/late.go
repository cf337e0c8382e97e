package alert

import (
	"context"
	"slices"
	"time"

	"baton/internal/diagnose"
	"baton/internal/notify"
	"baton/internal/redisledger"
)

// lateEvery is the interval between two checks for late jobs.
const lateEvery = 5 * time.Second

// lateness contains the data that decides how late a job is.
type lateness struct {
	past diagnose.Past
	late bool // the job was reported as late
}

// moved computes the job's due time again.
func (j *reportedJob) moved() { j.job.DueAt = j.job.Due(j.past, j.next) }

// next returns the first start of the job after a time. It returns the zero time if the schedule has no more slots.
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

// dueSlot returns the slot that makes the job due.
func (j *reportedJob) dueSlot() time.Time {
	if j.job.DueAt.Equal(j.past.Begun) {
		return j.job.DueAt
	}
	return j.job.DueAt.Add(-j.offset)
}

// stands records the job's state from the ledger.
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

// beginLate records how late the job was when the term began.
func (j *reportedJob) beginLate(st redisledger.JobState, epoch int64, began time.Time, prev previousTerm) {
	j.past.Known = began // for a job that the ledger does not know
	j.stands(st, epoch)
	// The previous leader has reported the late jobs that it had time to notice. If that leader crashed, it counts as having reported no
	// job, because a late job is rather reported twice than not at all.
	j.late = !j.job.DueAt.IsZero() && j.job.DueAt.Add(j.job.LateAfter()+2*lateEvery).Before(prev.ended)
}

// succeeded records a success of the job.
func (j *reportedJob) succeeded(at time.Time) {
	j.late, j.past.Behind = false, time.Time{}
	if at.After(j.past.LastSuccess) {
		j.past.LastSuccess = at
	}
	j.moved()
}

// isLate returns the reason why the job is late. It returns "" if the job is not late, or if the job has no late_after, because such a job
// is never reported.
func (j *reportedJob) isLate(now time.Time) diagnose.Late {
	if j.job.LateAfterSeconds <= 0 {
		return ""
	}
	return j.job.IsLate(now)
}

// mayBeLate reports whether the job would be late if pauses and a run in progress did not count.
func (j *reportedJob) mayBeLate(now time.Time) bool {
	if j.late || j.job.LateAfterSeconds <= 0 {
		return false
	}
	free := j.job
	free.Paused, free.Awaited = nil, false
	return free.IsLate(now) != ""
}

// Lagged records how far the table of a flush is behind Redis. The run of a flush without slots does not end, so a lag far below its limit
// is the only sign of recovery.
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

// watchLate reports the late jobs of a lock, and the jobs without slots that have recovered. It first reads the ledger, because the
// remembered state may be outdated: another node may have run a job, or an operator may have paused a job.
func (n *Notifications) watchLate(ctx context.Context, lockKey string, ledger States) {
	names := n.suspects(lockKey, time.Now())
	if len(names) == 0 {
		return
	}
	states, err := ledger.Jobs(ctx, names)
	if err != nil {
		return // the next check tries again
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

// suspects returns the jobs of a lock that may need a report.
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
