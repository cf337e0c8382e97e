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
	next    time.Time // the job's next slot; zero: it has none
}

// planDue decides at the wall time now, for a job whose next slot is, or was, next.
// It depends on nothing else, so a clock may jump either way between two calls:
// forward, and the latest slot stands for all that were jumped over; back, and
// nothing is due until the clock is again where it was, because every earlier slot
// has been dealt with.
func planDue(j Job, next, now time.Time) plan {
	if now.Before(next) {
		return plan{next: next}
	}
	slot, _ := latestSlot(j.Schedule, next.Add(-time.Nanosecond), now)
	p := plan{slot: slot, trigger: TriggerSchedule, next: j.Schedule.Next(slot)}
	late := now.Sub(slot)
	switch {
	case j.StartingDeadline > 0 && late > j.StartingDeadline:
		p.slot = time.Time{}
	case late <= onTime:
	case j.CatchUp == CatchUpLatest:
		p.trigger = TriggerCatchUp
	default:
		p.slot = time.Time{}
	}
	p.missed = passedOver(j, ReasonLate, next.Add(-time.Nanosecond), slot, p.slot)
	return p
}

// planCatchUp decides what a term does about the slots after the last claimed one and
// up to its start.
func planCatchUp(j Job, last, start, now time.Time) plan {
	slot, ok := latestSlot(j.Schedule, last, start)
	if !ok {
		return plan{}
	}
	p := plan{trigger: TriggerCatchUp}
	if j.CatchUp == CatchUpLatest && (j.StartingDeadline == 0 || now.Sub(slot) <= j.StartingDeadline) {
		p.slot = slot
	}
	p.missed = passedOver(j, ReasonNoLeader, last, slot, p.slot)
	return p
}

// passedOver reports the slots after from and up to the latest one, except the one
// that is run, if any.
func passedOver(j Job, reason Reason, from, latest, run time.Time) Missed {
	if !run.IsZero() {
		latest, _ = latestSlot(j.Schedule, from, run.Add(-time.Nanosecond))
	}
	m := Missed{Job: j.Name, Reason: reason, Slot: latest}
	for at := j.Schedule.Next(from); !at.IsZero() && !at.After(latest) && m.Count < maxCounted; at = j.Schedule.Next(at) {
		m.Count++
	}
	return m
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

// clockJump is by how much the wall clock went otherwise than the time that passed:
// it was set, or the machine was suspended.
func clockJump(wallElapsed, elapsed time.Duration) (by time.Duration, jumped bool) {
	const slewed = time.Second // a clock that is only slewed stays below this
	by = wallElapsed - elapsed
	return by, by > slewed || by < -slewed
}
