package show

import (
	"time"

	"baton/internal/text"
)

// Moment is a time for people, in the zone that it carries. It has the offset: few people
// know a zone's letters, and these may mean several zones.
func Moment(t time.Time) string { return t.Format("2006-01-02 15:04:05 -07:00") }

// Here is a time in the zone of the terminal. Only times of a job's schedule are in the
// job's own zone.
func Here(t time.Time) string { return Moment(t.Local()) }

// SlotTime writes a slot with its offset from UTC: few people know a zone's letters.
func SlotTime(at time.Time) string {
	return at.Format("Mon 2006-01-02 ") + ClockTime(at) + at.Format(" -07:00")
}

// ClockTime leaves out seconds, and parts of them, that are zero.
func ClockTime(at time.Time) string {
	switch {
	case at.Nanosecond() != 0:
		return at.Format("15:04:05.000")
	case at.Second() != 0:
		return at.Format("15:04:05")
	}
	return at.Format("15:04")
}

// Soon is "in 5s", or "now".
func Soon(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + text.Duration(at.Sub(now))
}
