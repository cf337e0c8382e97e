package direct

import (
	"fmt"
	"time"

	"baton/internal/config"
	"baton/internal/job"
	"baton/internal/job/schedule"
	"baton/internal/operate"
	"baton/internal/text"
)

// lookAhead is how far ahead to look for slots that daylight saving shifts: a year and a week. The week is needed because daylight saving
// begins and ends on Sundays, whose dates change from year to year.
const lookAhead = (365 + 7) * 24 * time.Hour

// Next returns a job's next n slots after the time from. It asks no node, and ignores pauses.
func Next(c config.Config, name string, from time.Time, n int) (operate.Coming, error) {
	j, err := jobNamed(c, name)
	if err != nil {
		return operate.Coming{}, err
	}
	return coming(j, from, n)
}

// NextOfAll returns the next n slots of every job, and the slots within a year that daylight saving shifts.
func NextOfAll(c config.Config, from time.Time, n int) ([]operate.Coming, error) {
	list := make([]operate.Coming, 0, len(c.Jobs))
	for _, j := range c.Jobs {
		one, err := coming(j, from, n)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func coming(j config.Job, from time.Time, n int) (operate.Coming, error) {
	s, err := schedule.ParseIn(j.Schedule, j.TimeZone)
	if err != nil {
		return operate.Coming{}, fmt.Errorf("job %q: %w", j.Name, err)
	}
	offset := job.Job{Name: j.Name, Jitter: j.Jitter}.Offset()
	c := operate.Coming{
		Job: j.Name, Schedule: j.Schedule, Words: s.Describe(), TimeZone: j.TimeZone,
		Always: schedule.IsAlways(s), Offset: text.Seconds(offset),
		Next: comingSlots(schedule.Upcoming(s, from, n), offset),
	}
	c.Shifts = comingSlots(schedule.Shifts(s, from, from.Add(lookAhead)), offset)
	return c, nil
}

func comingSlots(slots []schedule.Slot, offset time.Duration) []operate.ComingSlot {
	list := make([]operate.ComingSlot, 0, len(slots))
	for _, s := range slots {
		list = append(list, operate.ComingSlot{Slot: s.At, Start: s.At.Add(offset), Note: s.Note})
	}
	return list
}
