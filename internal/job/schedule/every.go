package schedule

import (
	"errors"
	"fmt"
	"time"
)

// These are the shortest and the longest interval of "@every". A ledger cannot follow a shorter interval. A longer interval is better
// written as a date in a cron expression.
const (
	minEvery = 100 * time.Millisecond
	maxEvery = 366 * 24 * time.Hour
)

// everySchedule has its slots at the multiples of an interval since the Unix epoch, so that a node that takes over continues in the
// same phase.
type everySchedule struct {
	interval time.Duration
	loc      *time.Location
}

func parseEvery(args []string, loc *time.Location) (Schedule, error) {
	if len(args) != 1 {
		return nil, errors.New(`@every takes one duration, as in "@every 1m30s"`)
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		return nil, fmt.Errorf("%q is not a duration; write 500ms, 5s, 1m30s or 2h", args[0])
	}
	switch {
	case d < minEvery:
		return nil, fmt.Errorf("an interval of %v is too short; the shortest is %v", d, minEvery)
	case d > maxEvery:
		return nil, fmt.Errorf("an interval of %v is too long; above %v use cron", d, maxEvery)
	case d%time.Millisecond != 0:
		return nil, fmt.Errorf("an interval of %v is not a whole number of milliseconds", d)
	}
	return everySchedule{d, loc}, nil
}

// Next implements [Schedule].
func (e everySchedule) Next(after time.Time) time.Time {
	ms, interval := after.UnixMilli(), e.interval.Milliseconds()
	into := ms % interval
	if into < 0 {
		into += interval // before 1970
	}
	return time.UnixMilli(ms - into + interval).In(e.loc)
}
