package job

import (
	"fmt"
	"strings"
	"time"
)

// Slot is a slot of a schedule, for people.
type Slot struct {
	At time.Time
	// Note says what the clock of the zone does to the slot: "02:30 comes twice, runs
	// the first time". Empty: nothing.
	Note string
}

// Upcoming lists the next n slots of a schedule, fewer if it has no more.
func Upcoming(s Schedule, after time.Time, n int) []Slot {
	var slots []Slot
	for at := s.Next(after); !at.IsZero() && len(slots) < n; at = s.Next(at) {
		slots = append(slots, Slot{at, note(s, at)})
	}
	return slots
}

// Shifts lists the slots after one time and up to another that the clock of the zone
// moves or would repeat. A schedule for every hour has none: it follows the time that
// passes.
func Shifts(s Schedule, after, until time.Time) []Slot {
	c, ok := s.(*cronSchedule)
	if !ok || c.everyHour() {
		return nil
	}
	var slots []Slot
	for _, end := after.In(c.loc).ZoneBounds(); !end.IsZero() && !end.After(until); _, end = end.ZoneBounds() {
		at := end // where the slots of a gap are due
		if _, again := jump(end); len(c.walls(again)) > 0 {
			at = firstInstant(c.walls(again)[0], c.loc)
		}
		if text := c.note(at); text != "" && at.After(after) {
			slots = append(slots, Slot{at, text})
		}
	}
	return slots
}

// Interval is the shortest time between two slots; 0: there are none to speak of.
func Interval(s Schedule) time.Duration {
	switch s := s.(type) {
	case everySchedule:
		return s.interval
	case *cronSchedule:
		// Two minutes of one day, or else the days: both show within this many.
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

// span is a part of the wall clock, without its end.
type span struct{ from, to time.Time }

// jump is what the clock does at a transition of its zone: the times that it leaves
// out, or those that it shows again.
func jump(transition time.Time) (skipped, again span) {
	before, after := offset(transition.Add(-time.Nanosecond)), offset(transition)
	old, now := transition.UTC().Add(before), transition.UTC().Add(after)
	if after > before {
		return span{old, now}, span{}
	}
	return span{}, span{now, old}
}

// walls are the matching times of the wall clock within a span, the first few of them.
func (c *cronSchedule) walls(s span) []time.Time {
	const few = 4
	var list []time.Time
	for wall := c.nextWall(s.from.Add(-time.Nanosecond)); !wall.IsZero() && wall.Before(s.to) && len(list) < few; wall = c.nextWall(wall) {
		list = append(list, wall)
	}
	return list
}

// note says what becomes of a slot where the clock jumps before or after it.
func (c *cronSchedule) note(at time.Time) string {
	at = at.In(c.loc)
	start, end := at.ZoneBounds()
	wall := wallClock(at, c.loc)
	if !start.IsZero() {
		skipped, again := jump(start)
		gone := c.walls(skipped)
		switch {
		case len(gone) > 0 && c.everyHour() && c.Next(start.Add(-time.Nanosecond)).Equal(at):
			return fmt.Sprintf("the clock is put forward: %s not exist, and nothing stands for %s", clockTimes(gone, "does", "do", wall), it(gone))
		case len(gone) > 0 && at.Equal(start):
			return fmt.Sprintf("the clock is put forward: %s not exist, runs at %s", clockTimes(gone, "does", "do", wall), wall.Format("15:04"))
		case c.everyHour() && wall.Before(again.to):
			return "the clock was put back: " + wall.Format("15:04") + " for the second time"
		}
	}
	if end.IsZero() || c.everyHour() {
		return ""
	}
	if _, again := jump(end); !wall.Before(again.from) && wall.Before(again.to) {
		return fmt.Sprintf("the clock is put back: %s comes twice, runs the first time", wall.Format("15:04"))
	}
	return ""
}

// clockTimes writes "02:00 and 02:30 do", with the date where it is not that of near.
func clockTimes(list []time.Time, one, many string, near time.Time) string {
	texts := make([]string, len(list))
	for i, wall := range list {
		layout := "15:04"
		if wall.YearDay() != near.YearDay() {
			layout = "2006-01-02 15:04"
		}
		texts[i] = wall.Format(layout)
	}
	switch last := len(texts) - 1; {
	case last == 0:
		return texts[0] + " " + one
	case last >= 3:
		return texts[0] + " and others " + many
	default:
		return strings.Join(texts[:last], ", ") + " and " + texts[last] + " " + many
	}
}

func it(list []time.Time) string {
	if len(list) == 1 {
		return "it"
	}
	return "them"
}
