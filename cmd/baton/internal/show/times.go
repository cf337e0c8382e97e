package show

import (
	"time"

	"baton/internal/text"
)

// Moment formats a time for people, in the time's own zone. It writes the UTC offset instead of the zone's abbreviation, because few people
// know the abbreviations, and an abbreviation may stand for several zones.
func Moment(t time.Time) string { return t.Format("2006-01-02 15:04:05 -07:00") }

// Here formats a time for people, in the zone of the terminal. Only the times of a job's schedule are written in the job's own zone.
func Here(t time.Time) string { return Moment(t.Local()) }

// SlotTime formats a slot with its UTC offset, because few people know the abbreviations of zones.
func SlotTime(at time.Time) string {
	return at.Format("Mon 2006-01-02 ") + ClockTime(at) + at.Format(" -07:00")
}

// ClockTime formats a time of day. It omits seconds and fractions of seconds that are zero.
func ClockTime(at time.Time) string {
	switch {
	case at.Nanosecond() != 0:
		return at.Format("15:04:05.000")
	case at.Second() != 0:
		return at.Format("15:04:05")
	}
	return at.Format("15:04")
}

// Soon returns a text such as "in 5s", or "now".
func Soon(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + text.Duration(at.Sub(now))
}
