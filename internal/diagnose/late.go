package diagnose

import (
	"cmp"
	"time"
)

// DefaultLateAfter is the overdue time from which a flush without late_after is late. A command without one is never late.
const DefaultLateAfter = time.Minute

// Late is the reason why a job is late; "" if it is not.
type Late string

// Why a job is late.
const (
	LateNoSuccess   Late = "no_success"  // a slot passed, and no run has succeeded since
	LateLag         Late = "lag"         // a flush without slots is behind
	LateUnscheduled Late = "unscheduled" // the leader's configuration does not have the job
)

// Span is a time from its first moment to its last.
type Span struct{ From, To time.Time }

func (s Span) has(t time.Time) bool { return t.After(s.From) && !t.After(s.To) }

// Past is the history of a job's runs: it decides when the job is, or was, due.
type Past struct {
	LastSuccess time.Time // zero: never
	Begun       time.Time // the first slot that was ever claimed; zero: none was
	Known       time.Time // when a leader first had the job, if it has never run; zero: unknown
	Paused      []Span    // the last pauses that have ended, of the job and of all
	Behind      time.Time // of a flush: since when changes wait; zero: no changes wait
}

// Due is when a run was, or is, due without a success since; zero if none is. next returns the first start after a time.
//
// A flush with [Job.Always] is due from the time when it fell behind, a command with it never. A slot inside a pause is not owed; one
// before it is.
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
	for range p.Paused { // they may overlap
		for _, pause := range p.Paused {
			if pause.has(due) {
				due = next(pause.To)
			}
		}
	}
	return due
}

// Overdue is how long ago a run was due without a success since; 0 if none was, or if a run of the command is awaited.
// While the job is paused it keeps the value from the beginning of the pause.
func (j Job) Overdue(now time.Time) time.Duration {
	if j.Paused != nil && j.Paused.Since.Before(now) {
		now = j.Paused.Since
	}
	if j.DueAt.IsZero() || j.Awaited {
		return 0
	}
	return max(now.Sub(j.DueAt), 0)
}

// LateAfter is the overdue time from which the job is late; 0: it never is.
func (j Job) LateAfter() time.Duration {
	switch {
	case j.LateAfterSeconds > 0:
		return time.Duration(j.LateAfterSeconds * float64(time.Second))
	case j.Command:
		return 0
	}
	return DefaultLateAfter
}

// IsLate returns the reason why the job is late; "" if it is not.
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

// IsDataLate reports whether the job is a late flush whose changes wait longer than they may.
func (j Job) IsDataLate(now time.Time) bool {
	lag, known := j.Lag()
	return known && lag > j.LateAfter() && j.IsLate(now) != ""
}

// Lag is how far the table of a flush is behind; false if that is unknown.
func (j Job) Lag() (time.Duration, bool) {
	if j.LagSeconds == nil {
		return 0, false
	}
	return time.Duration(*j.LagSeconds * float64(time.Second)), true
}

// IsFailing reports whether the last run that counts failed. A command that is kept running succeeds without an end: while it runs, an
// earlier end proves nothing.
func (j Job) IsFailing() bool {
	ended := j.Running == nil && j.LastRun != nil
	return j.ConsecutiveFailures > 0 || ended && (j.LastRun.State == "failed" || j.LastRun.State == "timed_out")
}

// Ended is the last run that has ended, if it shows the state of the job. A run that was lost or cancelled with its term shows nothing of
// a job that is kept running and runs again.
func (j Job) Ended() *Run {
	if r := j.LastRun; j.Always && j.Running != nil && r != nil && (r.State == "lost" || r.State == "cancelled") {
		return nil
	}
	return j.LastRun
}

// IsUnwritten reports whether the job is a flush that fails while changes wait, or may: even if it is little behind so far, the waiting
// changes will not decrease. One run that was lost with its leader is no such failure yet: the next leader runs the job again.
func (j Job) IsUnwritten() bool {
	if j.ConsecutiveFailures == 1 && j.LastRun != nil && j.LastRun.State == "lost" {
		return false
	}
	return !j.Command && j.ConsecutiveFailures > 0 && (j.Backlog == nil || *j.Backlog > 0)
}
