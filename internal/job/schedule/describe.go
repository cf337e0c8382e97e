package schedule

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Describe implements [Schedule]: "every 5 s", "every 1 h 30 min".
func (e everySchedule) Describe() string {
	var parts []string
	rest := e.interval
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := rest / unit.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
			rest -= n * unit.size
		}
	}
	return "every " + strings.Join(parts, " ")
}

// Describe implements [Schedule]. It describes common expressions in words, and returns other expressions unchanged.
func (c *cronSchedule) Describe() string {
	words := c.hourly()
	if words == "" {
		words = c.daily()
	}
	if words == "" {
		words = c.spec
	}
	if c.loc == time.UTC {
		return words
	}
	return words + " (" + c.loc.String() + ")"
}

// hourly describes a schedule that repeats every hour of every day.
func (c *cronSchedule) hourly() string {
	if !c.everyHour() || !everyDay(c.bits) || !everyMonth(c.bits) {
		return ""
	}
	minutes := values(c.bits.Minute, 59)
	switch {
	case len(minutes) == 60:
		return "every minute"
	case len(minutes) == 1 && minutes[0] == 0:
		return "every hour"
	case len(minutes) == 1:
		return fmt.Sprintf("every hour at minute %d", minutes[0])
	case minutes[0] == 0 && 60%len(minutes) == 0 && evenly(minutes, 60/len(minutes)):
		return fmt.Sprintf("every %d minutes", 60/len(minutes))
	}
	return ""
}

// daily describes a schedule with one slot a day.
func (c *cronSchedule) daily() string {
	hours, minutes := values(c.bits.Hour, 23), values(c.bits.Minute, 59)
	if len(hours) != 1 || len(minutes) != 1 {
		return ""
	}
	at := fmt.Sprintf("at %02d:%02d ", hours[0], minutes[0])
	days, months, weekdays := values(c.bits.Dom, 31), values(c.bits.Month, 12), values(c.bits.Dow, 6)
	anyDay, anyWeekday := isStar(c.bits.Dom), isStar(c.bits.Dow)
	switch {
	case everyDay(c.bits) && everyMonth(c.bits):
		return at + "every day"
	case anyDay && everyMonth(c.bits):
		return at + "on " + weekdayNames(weekdays)
	case c.ends != nil && c.ends.other == 0 && anyWeekday && everyMonth(c.bits):
		return at + "on the last day of every month"
	case anyWeekday && len(days) == 1 && everyMonth(c.bits):
		return fmt.Sprintf("%son day %d of every month", at, days[0])
	case anyWeekday && len(days) == 1 && len(months) == 1:
		return fmt.Sprintf("%son %d %s", at, days[0], time.Month(months[0]))
	}
	return ""
}

// isStar reports whether the cron library read the field as a star. The library marks such a field in the highest bit. If one of the two
// day fields is a star, only the other day field decides.
func isStar(field uint64) bool { return field&(1<<63) != 0 }

func everyDay(s *cron.SpecSchedule) bool   { return isStar(s.Dom) && isStar(s.Dow) }
func everyMonth(s *cron.SpecSchedule) bool { return len(values(s.Month, 12)) == 12 }

// values returns the numbers of the bits that are set in a field, up to the field's highest value.
func values(field uint64, highest int) []int {
	field &= 1<<(highest+1) - 1
	list := make([]int, 0, bits.OnesCount64(field))
	for ; field != 0; field &= field - 1 {
		list = append(list, bits.TrailingZeros64(field))
	}
	return list
}

func evenly(list []int, step int) bool {
	for i := 1; i < len(list); i++ {
		if list[i]-list[i-1] != step {
			return false
		}
	}
	return true
}

func weekdayNames(days []int) string {
	if len(days) > 2 && evenly(days, 1) {
		return fmt.Sprintf("%s to %s", time.Weekday(days[0]), time.Weekday(days[len(days)-1]))
	}
	names := make([]string, len(days))
	for i, day := range days {
		names[i] = time.Weekday(day).String()
	}
	return strings.Join(names, ", ")
}
