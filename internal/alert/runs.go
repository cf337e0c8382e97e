package alert

import (
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/diagnose"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/notify"
	"baton/internal/redisledger"
	"baton/internal/text"
)

const (
	// failedAgain is the interval between two reports of a job that continues to fail.
	failedAgain = time.Hour
	// heldMost is the maximum number of runs of a job that are kept while the job's state is unknown.
	heldMost = 100
	// SteadyAfter is how long a job that runs all the time must run to count as recovered.
	SteadyAfter = 5 * time.Minute
)

// reportedJob says which events of a job have been reported, and contains the state that decides the next report. Events in the ledger were
// reported by the previous leader, and later events are recorded here when they happen.
type reportedJob struct {
	lock     string
	schedule schedule.Schedule
	offset   time.Duration // the offset that results from the job's jitter
	ping     bool          // the job has a dead man's switch
	job      diagnose.Job  // the configured job, with the state that decides its lateness

	known bool         // the job's state was read from the ledger
	held  []job.Record // the runs that ended before the state was read

	failures   int       // consecutive failures
	failing    bool      // a failure may have been reported since the last success
	reportedAt time.Time // the time of that report; zero if the next failure must be reported in any case
	failedAt   time.Time
	pending    time.Time // the slot of a failed run that will be retried; zero if there is none

	lateness
	letters lettersReported
}

func newToldJob(j config.Job) *reportedJob {
	slots, _ := schedule.ParseIn(j.Schedule, j.TimeZone) // nil if it is invalid, which the configuration's check reports
	return &reportedJob{
		lock: j.Lock, schedule: slots, offset: job.Job{Name: j.Name, Jitter: j.Jitter}.Offset(), ping: j.DeadMansSwitch != nil,
		job: diagnose.Job{
			Name: j.Name, Command: j.IsCommand(), Always: slots != nil && schedule.IsAlways(slots), LateAfterSeconds: j.LateAfter.Seconds(),
		},
	}
}

// anew returns the configured job with an unknown state.
func (j *reportedJob) anew() *reportedJob {
	fresh := &reportedJob{lock: j.lock, schedule: j.schedule, offset: j.offset, ping: j.ping, job: j.job}
	fresh.job.DueAt, fresh.job.Paused, fresh.job.Awaited = time.Time{}, nil, false
	return fresh
}

// succeed copies the state from the job with its earlier configuration, which is the argument before. If the argument noted is false, there
// were no targets and no events were recorded, so the state is unknown.
func (j *reportedJob) succeed(before *reportedJob, noted bool) *reportedJob {
	if before == nil || !noted || before.lock != j.lock {
		return j
	}
	j.known, j.held, j.failures, j.failing = before.known, before.held, before.failures, before.failing
	j.reportedAt, j.failedAt, j.pending = before.reportedAt, before.failedAt, before.pending
	j.lateness, j.letters = before.lateness, before.letters
	j.job.Paused, j.job.Awaited = before.job.Paused, before.job.Awaited
	j.moved()
	return j
}

// Finished records the end of a run, and reports the changes that result from it.
func (n *Notifications) Finished(rec job.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	j := n.jobs[rec.Job]
	if j == nil {
		return
	}
	if j.ping && rec.State == job.StateSucceeded {
		n.dispatch.Send(pingName(rec.Job), notify.Event{Kind: notify.Recovered, Job: rec.Job})
	}
	switch {
	case len(n.targets) == 0:
	case j.known:
		n.ended(j, rec)
	case len(j.held) < heldMost:
		j.held = append(j.held, rec)
	}
}

// learn reads the state of a job at the beginning of the term, and then reports the events since that time. prev is the previous term.
func (n *Notifications) learn(j *reportedJob, st redisledger.JobState, began time.Time, prev previousTerm) {
	// The ledger has counted the runs up to the last one that it contains.
	failures := int(st.ConsecutiveFailures)
	counted := -1
	if st.Last != nil {
		counted = slices.IndexFunc(j.held, func(rec job.Record) bool { return rec.ID == st.Last.ID })
	}
	if counted < 0 && st.Last != nil && isFailure(st.Last.State) && st.Last.Finished.After(began) {
		failures-- // this run was lost, and is reported when it is recorded, which happens soon
	}
	for _, rec := range j.held[:counted+1] {
		if isFailure(rec.State) {
			failures--
		}
	}
	j.known, j.failures = true, max(failures, 0)
	before := j.failures // without the failures of a slot that still has retries
	if st.Retry != nil {
		before -= st.Retry.Attempt - 1
		j.pending = st.Retry.Slot
	}
	j.failing = before > 0
	if j.job.Always {
		// The job never succeeds, because it runs until a term ends.
		j.failing = j.failing && st.Last != nil && isFailure(st.Last.State)
	}
	if j.failing {
		j.failedAt = began
		if prev.why != whyCrashed { // otherwise the previous leader may have died before it sent its own reports
			j.reportedAt = began
		}
	}
	j.beginLate(st, n.epochs[j.lock], began, prev)
	if st.DeadLetters != nil && *st.DeadLetters > 0 && prev.why != whyCrashed {
		j.letters.reportedAt = began
	}
	held := j.held
	j.held = nil
	for _, rec := range held {
		n.ended(j, rec)
	}
}

func isFailure(s job.State) bool {
	return s == job.StateFailed || s == job.StateTimedOut || s == job.StateLost
}

// ended reports the end of a run. The caller holds n.mu.
func (n *Notifications) ended(j *reportedJob, rec job.Record) {
	switch {
	case rec.State == job.StateSucceeded:
		n.recovered(j, runEvent(notify.Recovered, j, rec), rec.Finished)
	case rec.State == job.StateCancelled && rec.Slot.Equal(j.pending):
		j.pending = time.Time{}
	case isFailure(rec.State):
		now := time.Now()
		j.failures++
		j.failedAt = now
		// If the slot of this run has replaced an earlier slot with retries, the earlier slot is given up.
		givenUp := rec.RetryAt.IsZero() || !j.pending.IsZero() && !j.pending.Equal(rec.Slot)
		j.pending = time.Time{}
		if !rec.RetryAt.IsZero() {
			j.pending = rec.Slot
		}
		if !givenUp || j.failing && !j.reportedAt.IsZero() && now.Sub(j.reportedAt) < failedAgain {
			return
		}
		j.failing, j.reportedAt = true, now
		e := runEvent(notify.Failed, j, rec)
		e.Text = failedText(rec, j.failures)
		n.send(e)
	}
}

// recovered records that a job has succeeded since the given time, and reports this if a failure was reported.
func (n *Notifications) recovered(j *reportedJob, e notify.Event, since time.Time) {
	reported, late, failures := j.failing || j.late, j.late, j.failures
	j.failures, j.failing, j.reportedAt, j.pending = 0, false, time.Time{}, time.Time{}
	j.succeeded(since)
	if !reported {
		return
	}
	e.ConsecutiveFailures = failures
	e.Text = recoveredText(e.Job, failures, late)
	n.send(e)
}

// runEvent returns an event with the fields that all events of a run have.
func runEvent(kind notify.Kind, j *reportedJob, rec job.Record) notify.Event {
	e := notify.Event{
		Kind: kind, At: rec.Finished, NodeID: rec.Term.NodeID, LockKey: j.lock, Epoch: rec.Term.Epoch,
		Job: rec.Job, RunID: rec.ID, Attempt: rec.Attempt, Trigger: string(rec.Trigger), State: string(rec.State),
		Error: text.Clip(rec.Error, 4096), ExitCode: rec.Result.ExitCode, ConsecutiveFailures: j.failures,
	}
	if !rec.Slot.IsZero() {
		e.Slot = rec.Slot.UTC()
	}
	if rec.Pauses {
		e.Reason = "paused"
	}
	return e
}
