package schedule

import (
	"errors"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronSchedule finds slots in two steps. It finds the wall clock time of a slot in a calendar in which no hour is missing or repeated. Then
// it finds the instant when the clock in the job's time zone shows that wall clock time. A wall clock time is stored as a time in UTC with
// the same digits.
type cronSchedule struct {
	spec string
	bits *cron.SpecSchedule
	ends *monthEnds // nil: no day is counted from the end of a month
	loc  *time.Location
}

// aLeapYear is the year in which the search for a schedule's first slot starts. Every schedule that ever fires does so within five years
// from its start, which is the limit of the cron library. This is true even for a schedule that fires only on 29 February.
const aLeapYear = 2024

func newCronSchedule(spec string, parsed cron.Schedule, ends *monthEnds, loc *time.Location) (Schedule, error) {
	bits, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("not a calendar expression")
	}
	bits.Location = time.UTC
	s := &cronSchedule{spec: spec, bits: bits, ends: ends, loc: loc}
	if s.nextWall(time.Date(aLeapYear, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, errors.New("it never fires: none of its months has that day")
	}
	return s, nil
}

// Next implements [Schedule].
func (c *cronSchedule) Next(after time.Time) time.Time {
	if c.everyHour() {
		return c.nextElapsed(after)
	}
	for wall := c.nextWall(wallClock(after, c.loc)); !wall.IsZero(); wall = c.nextWall(wall) {
		// In the second pass of a repeated hour, slots that are later on the wall clock have already passed.
		if at := firstInstant(wall, c.loc); at.After(after) {
			return at
		}
	}
	return time.Time{}
}

// everyHour reports whether the hour field allows every hour.
func (c *cronSchedule) everyHour() bool {
	const allHours = 1<<24 - 1
	return c.bits.Hour&allHours == allHours
}

// nextElapsed finds the next instant when the clock shows a matching time, even if the clock shows this time for the second time. It
// searches one period without a change of the UTC offset after the other.
func (c *cronSchedule) nextElapsed(after time.Time) time.Time {
	t := after.In(c.loc)
	wall := wallClock(t, c.loc)
	for {
		_, end := t.ZoneBounds()
		next := c.nextWall(wall)
		if next.IsZero() {
			return next
		}
		at := next.Add(-offset(t))
		if end.IsZero() || at.Before(end) {
			return at.In(c.loc)
		}
		t = end
		wall = wallClock(end, c.loc).Add(-time.Nanosecond) // end itself may be a slot
	}
}

// nextWall returns the next matching time of the wall clock. The cron library stops its search after five years, but there are eight years
// between the leap days of 2096 and 2104.
func (c *cronSchedule) nextWall(wall time.Time) time.Time {
	for gaveUp := 0; gaveUp < 2; {
		next := c.bits.Next(wall)
		switch {
		case next.IsZero():
			gaveUp++
			wall = wall.AddDate(5, 0, 0)
		case c.ends == nil || c.ends.match(next, c.bits):
			return next
		default:
			wall = next.Truncate(24 * time.Hour).Add(24*time.Hour - time.Nanosecond) // no other time of this day matches
		}
	}
	return time.Time{}
}

// monthEnds handles L in the day-of-month field, which means the last day of the month. The cron library gets every day that can be the
// last day (28 to 31), and match rejects a day that is not the last day of its month.
type monthEnds struct {
	other uint64 // the days that are named in addition to L, as bits
}

// widen adds the days that can be the last day of a month to the named days.
func (m *monthEnds) widen(numbers string) (string, error) {
	const canBeLast = "28,29,30,31"
	if numbers == "" {
		return canBeLast, nil
	}
	if strings.ContainsAny(numbers, "*?") {
		return "", errors.New("in a list with *, L has no effect: remove L or *")
	}
	parsed, err := cron.NewParser(cron.Dom).Parse(numbers)
	if err != nil {
		return "", err
	}
	m.other = parsed.(*cron.SpecSchedule).Dom
	return numbers + "," + canBeLast, nil
}

func (m *monthEnds) match(wall time.Time, bits *cron.SpecSchedule) bool {
	return m.other&(1<<wall.Day()) != 0 || wall.AddDate(0, 0, 1).Day() == 1 ||
		!isStar(bits.Dow) && bits.Dow&(1<<wall.Weekday()) != 0
}

// wallClock returns the wall clock's time in loc at the instant t.
func wallClock(t time.Time, loc *time.Location) time.Time {
	return t.UTC().Add(offset(t.In(loc)))
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// firstInstant returns the instant when the clock in loc first shows the time wall. If the clock skips this time, it returns the end of the
// gap.
func firstInstant(wall time.Time, loc *time.Location) time.Time {
	const beyondAnyOffset = 26 * time.Hour
	for t := wall.Add(-beyondAnyOffset).In(loc); ; {
		start, end := t.ZoneBounds()
		at := wall.Add(-offset(t))
		if at.Before(start) {
			return start
		}
		if end.IsZero() || at.Before(end) {
			return at.In(loc)
		}
		t = end
	}
}
