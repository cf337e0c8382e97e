package schedule

import "time"

// Count counts the slots after from and not after to, but no more than most.
func Count(s Schedule, from, to time.Time, most int) int {
	n := 0
	for at := s.Next(from); !at.IsZero() && !at.After(to) && n < most; at = s.Next(at) {
		n++
	}
	return n
}

// Latest returns the last slot that is after from and not after to. It halves the
// span rather than walk it, since the span may be years and the slots seconds.
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
