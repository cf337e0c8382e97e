package diagnose

import (
	"cmp"
	"time"
)

// DefaultLateAfter limits how long a flush may be overdue before it counts as late, if late_after is not set for it. A command without
// late_after is never late.
const DefaultLateAfter = time.Minute

// Late is the reason why a job is late. It is "" if the job is not late.
type Late string

// These are the reasons why a job is late.
const (
	LateNoSuccess   Late = "no_success"  // a slot has passed, and no run has succeeded since
	LateLag         Late = "lag"         // a flush without slots is behind
	LateUnscheduled Late = "unscheduled" // the leader's configuration does not contain the job
)

// Span is a time span.
type Span struct{ From, To time.Time }

func (s Span) has(t time.Time) bool { return t.After(s.From) && !t.After(s.To) }

// Past contains the facts about a job's past runs and pauses that decide when the job is due.
type Past struct {
	LastSuccess time.Time // zero if no run has succeeded
	Begun       time.Time // the first slot that was ever claimed; zero if there is none
	Known       time.Time // when a leader first knew the job, if the job has never run; zero if unknown
	Paused      []Span    // the last pauses that have ended, of the job and of all jobs
	Behind      time.Time // for a flush, the time since which changes have waited; zero if no changes wait
}

// Due returns the time at which a run became or becomes due, if no run has succeeded since then. It returns zero if no run is due. The
// function next returns the first start of the job after a given time.
//
// If [Job.Always] is set, a flush is due from the time when it fell behind, and a command is never due. If a slot passes while the job is
// paused, no run is due. If it passed before the pause, a run stays due.
func (j Job) Due(p Past, next func(time.Time) time.Time) time.Time {
	switch {
	case j.Always && j.Command:
		return time.Time{}
	case j.Always:
		return p.Behind
	case p.LastSuccess.IsZero() && !p.Begun.IsZero():
		return p.Begun
	}
	since := cmp.Or(p.LastSuccess, p.Known)
	if since.IsZero() {
		return time.Time{}
	}
	due := next(since)
	for range p.Paused { // the pauses may overlap
		for _, pause := range p.Paused {
			if pause.has(due) {
				due = next(pause.To)
			}
		}
	}
	return due
}

// Overdue returns how long a run has been due without a success. It returns 0 if no run was due, or if a run of a command is in progress.
// While the job is paused, it returns the value from the beginning of the pause.
func (j Job) Overdue(now time.Time) time.Duration {
	if j.Paused != nil && j.Paused.Since.Before(now) {
		now = j.Paused.Since
	}
	if j.DueAt.IsZero() || j.Awaited {
		return 0
	}
	return max(now.Sub(j.DueAt), 0)
}

// LateAfter returns how long the job may be overdue before it counts as late. 0 means that the job is never late.
func (j Job) LateAfter() time.Duration {
	switch {
	case j.LateAfterSeconds > 0:
		return time.Duration(j.LateAfterSeconds * float64(time.Second))
	case j.Command:
		return 0
	}
	return DefaultLateAfter
}

// IsLate returns the reason why the job is late. It returns "" if the job is not late.
func (j Job) IsLate(now time.Time) Late {
	limit := j.LateAfter()
	u := j.Unscheduled
	overdue := limit > 0 && j.Overdue(now) > limit
	switch {
	case u != nil && (overdue || j.Paused == nil && now.After(u.LateFrom)):
		return LateUnscheduled
	case !overdue:
		return ""
	case j.Always:
		return LateLag
	}
	return LateNoSuccess
}

// IsDataLate reports whether the job is late because its changes have waited longer than allowed. It is never true for a command.
func (j Job) IsDataLate(now time.Time) bool {
	lag, known := j.Lag()
	return known && lag > j.LateAfter() && j.IsLate(now) != ""
}

// Lag returns how far the table of a flush is behind Redis. It returns false if that is unknown.
func (j Job) Lag() (time.Duration, bool) {
	if j.LagSeconds == nil {
		return 0, false
	}
	return time.Duration(*j.LagSeconds * float64(time.Second)), true
}

// IsFailing reports whether the last run that shows the state of the job failed. A command that is kept running does not end as long as it
// works well. So while it runs, the end of its earlier run proves nothing.
func (j Job) IsFailing() bool {
	ended := j.Running == nil && j.LastRun != nil
	return j.ConsecutiveFailures > 0 || ended && (j.LastRun.State == "failed" || j.LastRun.State == "timed_out")
}

// Ended returns the last run that has ended. It returns nil if that run does not show the state of the job: the job is kept running and
// runs again, and its last run was lost or cancelled with the term.
func (j Job) Ended() *Run {
	if r := j.LastRun; j.Always && j.Running != nil && r != nil && (r.State == "lost" || r.State == "cancelled") {
		return nil
	}
	return j.LastRun
}

// IsUnwritten reports whether the job is a flush that fails while changes wait or may wait. The job may be only a little behind so far, but
// its waiting changes will not be written while it fails. One run that was lost with its leader does not count as a failure yet, because
// the next leader runs the job again.
func (j Job) IsUnwritten() bool {
	if j.ConsecutiveFailures == 1 && j.LastRun != nil && j.LastRun.State == "lost" {
		return false
	}
	return !j.Command && j.ConsecutiveFailures > 0 && (j.Backlog == nil || *j.Backlog > 0)
}
