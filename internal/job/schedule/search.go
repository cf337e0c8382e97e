package schedule

import "time"

// Count returns the number of slots that are later than the time from, and not later than the time to. It stops counting at the number in
// the argument most.
func Count(s Schedule, from, to time.Time, most int) int {
	n := 0
	for at := s.Next(from); !at.IsZero() && !at.After(to) && n < most; at = s.Next(at) {
		n++
	}
	return n
}

// Latest returns the last slot that is later than the time from, and not later than the time to. It halves the span instead of visiting
// each slot, because the span may be years and the slots seconds apart.
func Latest(s Schedule, from, to time.Time) (time.Time, bool) {
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
