package schedule

import (
	"fmt"
	"time"
)

// Slot is a slot of a schedule, in a form for people.
type Slot struct {
	At time.Time
	// Note describes the effect of a clock change on the slot: "02:30 comes twice, runs the first time". It is empty if there is no effect.
	Note string
}

// Upcoming returns the next n slots of a schedule, or fewer if the schedule has no more slots.
func Upcoming(s Schedule, after time.Time, n int) []Slot {
	var slots []Slot
	for at := s.Next(after); !at.IsZero() && len(slots) < n; at = s.Next(at) {
		slots = append(slots, Slot{at, note(s, at)})
	}
	return slots
}

// Shifts returns the slots that a clock change moves or would repeat. It returns only slots that are later than the argument after, and not
// later than the argument until. A schedule for every hour has no such slots, because it follows elapsed time.
func Shifts(s Schedule, after, until time.Time) []Slot {
	c, ok := s.(*cronSchedule)
	if !ok || c.everyHour() {
		return nil
	}
	var slots []Slot
	for _, end := after.In(c.loc).ZoneBounds(); !end.IsZero() && !end.After(until); _, end = end.ZoneBounds() {
		at := end // when the slots of a gap are due
		if _, again := jump(end); len(c.walls(again)) > 0 {
			at = firstInstant(c.walls(again)[0], c.loc)
		}
		if text := c.note(at); text != "" && at.After(after) {
			slots = append(slots, Slot{at, text})
		}
	}
	return slots
}

// Interval returns the shortest time between two slots, or 0 for "@always".
func Interval(s Schedule) time.Duration {
	switch s := s.(type) {
	case everySchedule:
		return s.interval
	case *cronSchedule:
		// The shortest interval is an interval within a day, or an interval from one day to the next. Both kinds appear within this many
		// slots.
		const enough = 1500
		shortest := maxEvery
		at := s.nextWall(time.Date(aLeapYear, time.January, 1, 0, 0, 0, 0, time.UTC))
		for range enough {
			next := s.nextWall(at)
			shortest = min(shortest, next.Sub(at))
			if at = next; shortest <= time.Minute || at.Year() > aLeapYear+1 {
				break
			}
		}
		return shortest
	}
	return 0
}

func note(s Schedule, at time.Time) string {
	if c, ok := s.(*cronSchedule); ok {
		return c.note(at)
	}
	return ""
}

// span is a range of wall clock times. Its end time does not belong to it.
type span struct{ from, to time.Time }

// jump returns how a change of the zone's UTC offset affects the clock: the times that the clock skips, or the times that the clock shows
// again.
func jump(transition time.Time) (skipped, again span) {
	before, after := offset(transition.Add(-time.Nanosecond)), offset(transition)
	old, now := transition.UTC().Add(before), transition.UTC().Add(after)
	if after > before {
		return span{old, now}, span{}
	}
	return span{}, span{now, old}
}

// walls returns the wall clock times within a span that match the schedule.
func (c *cronSchedule) walls(s span) []time.Time {
	var list []time.Time
	for wall := c.nextWall(s.from.Add(-time.Nanosecond)); !wall.IsZero() && wall.Before(s.to); wall = c.nextWall(wall) {
		list = append(list, wall)
	}
	return list
}

// note returns the note for a slot close to a clock change.
func (c *cronSchedule) note(at time.Time) string {
	at = at.In(c.loc)
	start, end := at.ZoneBounds()
	wall := wallClock(at, c.loc)
	if !start.IsZero() {
		skipped, again := jump(start)
		if wall.Before(again.to) && c.everyHour() {
			return "the clock was put back: " + wall.Format(minutes) + " for the second time"
		}
		if c.Next(start.Add(-time.Nanosecond)).Equal(at) {
			if text := c.gone(c.walls(skipped), wall, at.Equal(start)); text != "" {
				return text
			}
		}
	}
	if end.IsZero() || c.everyHour() {
		return ""
	}
	if _, again := jump(end); !wall.Before(again.from) && wall.Before(again.to) {
		return fmt.Sprintf("the clock is put back: %s comes twice, runs the first time", wall.Format(minutes))
	}
	return ""
}

// gone returns the note about the times in the argument list, which the clock skips. If the note is for the slot right after them, it says
// that this slot, at the time wall, replaces the skipped slots. With a schedule for every hour, no slot replaces others.
const minutes = "15:04"

// gone returns the note about times that the clock skips, and about the slot right after these times that replaces them, when the clock
// shows wall. For a schedule for every hour no slot replaces others.
func (c *cronSchedule) gone(list []time.Time, wall time.Time, rightAfter bool) string {
	if len(list) == 0 || !rightAfter && !c.everyHour() {
		return ""
	}
	layout := minutes
	if list[0].YearDay() != wall.YearDay() {
		layout = "2006-01-02 " + minutes
	}
	times, last := list[0].Format(layout)+" does", len(list)-1
	switch {
	case last == 1:
		times = list[0].Format(layout) + " and " + list[1].Format(layout) + " do"
	case last > 1:
		times = fmt.Sprintf("%s to %s, %d slots, do", list[0].Format(layout), list[last].Format(layout), len(list))
	}
	text := "the clock is put forward: " + times + " not exist"
	switch {
	case c.everyHour():
		return text
	case last > 0:
		return text + ", runs once at " + wall.Format(minutes)
	}
	return text + ", runs at " + wall.Format(minutes)
}
