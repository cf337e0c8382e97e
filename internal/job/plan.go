package job

import "time"

const (
	// onTime is how late a slot may be noticed and still count as run on schedule. It
	// is above the longest sleep of the loop, so that a clock put forward a little
	// does not make an occurrence that the operator would call missed.
	onTime = 30 * time.Second
	// maxCounted bounds the counting of missed slots: an outage of a year has half a
	// million of a job that is due every minute.
	maxCounted = 10_000
)

// plan is what to do about the slots of one job that have come due.
type plan struct {
	slot    time.Time // the one to start; zero: none
	trigger Trigger
	missed  Missed    // Count 0: none
	backlog backlog   // slots to run one after the other
	last    time.Time // the last of them all; zero: none has come due
	next    time.Time // the job's next slot; zero: it has none
}

// planDue decides at the time now, for a job whose next slot is, or was, next. A job
// that starts a while after its slots is that long behind: now is, too.
// It depends on nothing else, so a clock may jump either way between two calls:
// forward, and the latest slot stands for all that were jumped over, unless all are
// run; back, and nothing is due until the clock is again where it was, because every
// earlier slot has been dealt with.
func planDue(j Job, next, now time.Time) plan {
	if now.Before(next) {
		return plan{next: next}
	}
	before := next.Add(-time.Nanosecond)
	slot, _ := latestSlot(j.Schedule, before, now)
	p := plan{slot: slot, trigger: TriggerSchedule, last: slot, next: j.Schedule.Next(slot)}
	late := now.Sub(slot)
	inTime := late <= onTime && (j.StartingDeadline == 0 || late <= j.StartingDeadline)
	switch {
	case j.CatchUp == CatchUpAll && !(inTime && slot.Equal(next)):
		p.slot = time.Time{}
		p.backlog, p.missed = planAll(j, ReasonLate, before, slot, now)
		return p
	case j.StartingDeadline > 0 && late > j.StartingDeadline:
		p.slot = time.Time{}
	case late <= onTime:
	case j.CatchUp == CatchUpLatest:
		p.trigger = TriggerCatchUp
	default:
		p.slot = time.Time{}
	}
	p.missed = passedOver(j, ReasonLate, before, slot, p.slot)
	return p
}

// planCatchUp decides what a term does about the slots after the last one that was
// dealt with and up to its start.
func planCatchUp(j Job, last, start, now time.Time) plan {
	slot, ok := latestSlot(j.Schedule, last, start)
	if !ok {
		return plan{}
	}
	p := plan{trigger: TriggerCatchUp, last: slot}
	switch {
	case j.CatchUp == CatchUpAll:
		p.backlog, p.missed = planAll(j, ReasonNoLeader, last, slot, now)
		return p
	case j.CatchUp == CatchUpLatest && (j.StartingDeadline == 0 || now.Sub(slot) <= j.StartingDeadline):
		p.slot = slot
	}
	p.missed = passedOver(j, ReasonNoLeader, last, slot, p.slot)
	return p
}

// planAll has the slots after from and up to the latest one run, but for those past
// their deadline, and the earliest of more than maxCounted.
func planAll(j Job, reason Reason, from, latest, now time.Time) (backlog, Missed) {
	after := from
	if j.StartingDeadline > 0 {
		if slot, ok := latestSlot(j.Schedule, after, earliest(latest, now.Add(-j.StartingDeadline-time.Nanosecond))); ok {
			after = slot
		}
	}
	for countSlots(j.Schedule, after, latest, maxCounted+1) > maxCounted {
		middle := after.Add(latest.Sub(after) / 2)
		if slot, ok := latestSlot(j.Schedule, after, middle); ok {
			middle = slot
		}
		after = middle
	}
	var missed Missed
	if after.After(from) {
		missed = passedOver(j, reason, from, after, time.Time{})
	}
	return backlog{after: after, until: latest, reason: reason}, missed
}

// passedOver reports the slots after from and up to the latest one, except the one
// that is run, if any.
func passedOver(j Job, reason Reason, from, latest, run time.Time) Missed {
	if !run.IsZero() {
		latest, _ = latestSlot(j.Schedule, from, run.Add(-time.Nanosecond))
	}
	return Missed{
		Job: j.Name, Reason: reason, Slot: latest, First: j.Schedule.Next(from),
		Count: countSlots(j.Schedule, from, latest, maxCounted), After: from,
	}
}

// countSlots counts the slots after from and not after to, but no more than most.
func countSlots(s Schedule, from, to time.Time, most int) int {
	n := 0
	for at := s.Next(from); !at.IsZero() && !at.After(to) && n < most; at = s.Next(at) {
		n++
	}
	return n
}

// latestSlot returns the last slot that is after from and not after to. It halves the
// span rather than walk it, since the span may be years and the slots seconds.
func latestSlot(s Schedule, from, to time.Time) (time.Time, bool) {
	latest := s.Next(from)
	if latest.IsZero() || latest.After(to) {
		return time.Time{}, false
	}
	for none := to; ; { // no slot is after none and not after to
		next := s.Next(latest)
		if next.IsZero() || next.After(to) {
			return latest, true
		}
		latest = next
		middle := latest.Add(none.Sub(latest) / 2)
		if next = s.Next(middle); next.IsZero() || next.After(to) {
			none = middle
		} else {
			latest = next
		}
	}
}
