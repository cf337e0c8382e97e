// Package plan decides which slots of a job are run, and which slots are missed. Its functions are pure: they take a policy and past
// events, and for slots a schedule and a time. Package job carries out the decisions.
//
//	Now, AtStart         the slots that have come due: during a term, and before the term
//	Overlap.Decide       a run that is due while another run of its job is in progress
//	Retry.At             the time of the next attempt after a failure
//	RerunPolicy          a slot whose run has failed in this term or in an earlier term, or was lost with its leader
//
// The invariants:
//
//   - Every slot that has come due is part of the Decision: it is run, it is in the backlog, or it is missed. So the caller can record
//     every slot.
//   - Unless the job's CatchUp is "all", only the latest slot that has come due is run.
//   - A slot that is noticed more than [OnTime] late is missed, unless the job catches up. A slot past its starting deadline is always
//     missed.
//   - Only a retrial, or a rerun of a lost run, runs the same slot again. A later slot of the term that has begun, or that waits,
//     replaces the retrial and the rerun.
//
// What fails, and what then:
//
//   - The clock jumps forward: the latest slot replaces the skipped slots, unless all slots are run. The clock jumps back: no slot is due
//     until the clock has caught up.
//   - An outage is so long that it has more than [MaxCounted] slots: the count of missed slots stops at this number. If all slots are
//     run, at most this number of the latest slots is run, and the earlier slots are missed.
package plan

import (
	"time"

	"baton/internal/job/schedule"
)

const (
	// OnTime is how late a slot may be noticed and still count as run on schedule. This time is longer than the longest sleep of the loop.
	// So if the clock is put forward a little, the operator does not see a missed slot.
	OnTime = 30 * time.Second
	// MaxCounted limits the counting of missed slots, because a job that is due every minute has half a million slots in a year's outage.
	MaxCounted = 10_000
)

// CatchUp is the policy for slots that passed while no node could start them.
type CatchUp string

// These are the values of CatchUp.
const (
	CatchUpNone   CatchUp = "none"   // the slots are counted as missed
	CatchUpLatest CatchUp = "latest" // the latest slot is run, the others are counted as missed
	CatchUpAll    CatchUp = "all"    // each slot is run, one after the other
)

// Policy is a job's policy for its slots.
type Policy struct {
	Schedule schedule.Schedule
	CatchUp  CatchUp
	// StartingDeadline is the maximum time between a slot and the start of its run; 0 means any time.
	StartingDeadline time.Duration
}

// Decision is the plan for the slots of one job that have come due.
type Decision struct {
	Slot     time.Time // the slot to start; zero: no slot
	CaughtUp bool      // too late to count as run on schedule
	Missed   Gap       // slots that are not run; Count 0: no slots
	Backlog  SlotRange // slots to run one after the other
	Last     time.Time // the last slot that has come due; zero: no slot
	Next     time.Time // the job's next slot; zero: the job has no next slot
}

// Gap describes consecutive slots that are not run.
type Gap struct {
	Count int       // at most MaxCounted
	First time.Time // the earliest of the slots
	Slot  time.Time // the latest of the slots
	After time.Time // the slot before the earliest slot, or a time between these two slots
}

// SlotRange is the range of the slots after the time After and up to the time Until.
type SlotRange struct{ After, Until time.Time }

// Empty reports whether the range contains no time.
func (s SlotRange) Empty() bool { return !s.After.Before(s.Until) }

// Now decides which slots of a job run at the time now. The argument next is the next slot of the job. If the job starts some time after
// its slots, the caller subtracts that time from the argument now. The clock may jump between two calls. After a jump forward, the latest
// slot replaces the skipped slots, unless all slots are run. After a jump back, no slot is due until the clock has caught up, because every
// earlier slot is settled.
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

// AtStart decides which slots run at the start of a term: the slots after the last settled slot and up to the term's start.
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

// planAll plans to run the slots that are later than the time from, up to the latest slot. It skips slots past their deadline and, if
// there are more than MaxCounted slots, the earliest slots.
func planAll(p Policy, from, latest, now time.Time) (SlotRange, Gap) {
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
	return SlotRange{After: after, Until: latest}, missed
}

// PassedOver returns the slots that are later than the time from, up to the latest slot, except the slot that is run.
func PassedOver(s schedule.Schedule, from, latest, run time.Time) Gap {
	if !run.IsZero() {
		latest, _ = schedule.Latest(s, from, run.Add(-time.Nanosecond))
	}
	return Gap{Slot: latest, First: s.Next(from), Count: schedule.Count(s, from, latest, MaxCounted), After: from}
}
