// Package plan decides which slots of a job are run: when several have come due, a run of it still goes on,
// or a run has failed or was lost. Its functions are pure: they take a policy and past events, and for slots a schedule and a time.
package plan

import (
	"time"

	"baton/internal/job/schedule"
)

const (
	// OnTime is how late a slot may be noticed and still count as run on schedule. It
	// is above the longest sleep of the loop, so that a clock put forward a little
	// does not make an occurrence that the operator would call missed.
	OnTime = 30 * time.Second
	// MaxCounted bounds the counting of missed slots: an outage of a year has half a
	// million of a job that is due every minute.
	MaxCounted = 10_000
)

// CatchUp is the policy for slots that passed while no node could start them.
type CatchUp string

// The catch-up policies.
const (
	CatchUpNone   CatchUp = "none"   // they are counted as missed
	CatchUpLatest CatchUp = "latest" // the latest one is run, the others are counted as missed
	CatchUpAll    CatchUp = "all"    // each is run, one after the other
)

// Policy is a job's policy for its slots.
type Policy struct {
	Schedule schedule.Schedule
	CatchUp  CatchUp
	// StartingDeadline is how long after its slot a run may still start; 0: any time.
	StartingDeadline time.Duration
}

// Decision is the plan for the slots of one job that have come due.
type Decision struct {
	Slot     time.Time // the one to start; zero: none
	CaughtUp bool      // too late to count as run on schedule
	Missed   Gap       // Count 0: none
	Backlog  Stretch   // slots to run one after the other
	Last     time.Time // the last slot that has come due; zero: none
	Next     time.Time // the job's next slot; zero: it has none
}

// Gap are consecutive slots that are not run.
type Gap struct {
	Count int       // at most MaxCounted
	First time.Time // the earliest of them
	Slot  time.Time // the latest of them
	After time.Time // the slot before the earliest one, or a time between the two
}

// Stretch are the slots after one time and up to another.
type Stretch struct{ After, Until time.Time }

// Empty reports whether no time is left between the two.
func (s Stretch) Empty() bool { return !s.After.Before(s.Until) }

// Now decides at the time now, for a job whose next slot is next. For a job that starts some
// time after its slots, pass now minus that time. The clock may jump between two calls: after
// a jump forward the latest slot replaces the skipped ones, unless all are run; after a jump
// back nothing is due until the clock has caught up, because every earlier slot is settled.
func Now(p Policy, next, now time.Time) Decision {
	if now.Before(next) {
		return Decision{Next: next}
	}
	before := next.Add(-time.Nanosecond)
	slot, _ := schedule.Latest(p.Schedule, before, now)
	todo := Decision{Slot: slot, Last: slot, Next: p.Schedule.Next(slot)}
	late := now.Sub(slot)
	inTime := late <= OnTime && (p.StartingDeadline == 0 || late <= p.StartingDeadline)
	switch {
	case p.CatchUp == CatchUpAll && !(inTime && slot.Equal(next)):
		todo.Slot = time.Time{}
		todo.Backlog, todo.Missed = planAll(p, before, slot, now)
		return todo
	case p.StartingDeadline > 0 && late > p.StartingDeadline:
		todo.Slot = time.Time{}
	case late <= OnTime:
	case p.CatchUp == CatchUpLatest:
		todo.CaughtUp = true
	default:
		todo.Slot = time.Time{}
	}
	todo.Missed = PassedOver(p.Schedule, before, slot, todo.Slot)
	return todo
}

// AtStart decides about the slots after the last settled one and up to the term's start.
func AtStart(p Policy, last, start, now time.Time) Decision {
	slot, ok := schedule.Latest(p.Schedule, last, start)
	if !ok {
		return Decision{}
	}
	todo := Decision{CaughtUp: true, Last: slot}
	switch {
	case p.CatchUp == CatchUpAll:
		todo.Backlog, todo.Missed = planAll(p, last, slot, now)
		return todo
	case p.CatchUp == CatchUpLatest && (p.StartingDeadline == 0 || now.Sub(slot) <= p.StartingDeadline):
		todo.Slot = slot
	}
	todo.Missed = PassedOver(p.Schedule, last, slot, todo.Slot)
	return todo
}

// planAll runs the slots after from and up to the latest one, except those past their deadline
// and, if there are more than MaxCounted, the earliest.
func planAll(p Policy, from, latest, now time.Time) (Stretch, Gap) {
	after := from
	if p.StartingDeadline > 0 {
		past := now.Add(-p.StartingDeadline - time.Nanosecond)
		if latest.Before(past) {
			past = latest
		}
		if slot, ok := schedule.Latest(p.Schedule, after, past); ok {
			after = slot
		}
	}
	for schedule.Count(p.Schedule, after, latest, MaxCounted+1) > MaxCounted {
		middle := after.Add(latest.Sub(after) / 2)
		if slot, ok := schedule.Latest(p.Schedule, after, middle); ok {
			middle = slot
		}
		after = middle
	}
	var missed Gap
	if after.After(from) {
		missed = PassedOver(p.Schedule, from, after, time.Time{})
	}
	return Stretch{After: after, Until: latest}, missed
}

// PassedOver are the slots after from and up to the latest one, except the one that is run.
func PassedOver(s schedule.Schedule, from, latest, run time.Time) Gap {
	if !run.IsZero() {
		latest, _ = schedule.Latest(s, from, run.Add(-time.Nanosecond))
	}
	return Gap{Slot: latest, First: s.Next(from), Count: schedule.Count(s, from, latest, MaxCounted), After: from}
}
