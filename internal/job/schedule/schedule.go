package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
)

// Schedule returns the slots of a job. Slots are whole milliseconds, so that a ledger can keep them exactly, and every node computes
// the same slots.
type Schedule interface {
	// Next returns the first slot after the given time, in the schedule's zone, or the zero time if no slot follows.
	Next(after time.Time) time.Time
	// Describe describes the slots in words: "at 02:30 every day".
	Describe() string
}

// descriptors lists the names that can be written instead of a cron expression, for an error message.
const descriptors = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @always and @every DURATION"

// Parse reads five-field cron, a descriptor such as @hourly, "@every 5s", or "@always" ([IsAlways]). The slots of cron and of
// descriptors are wall clock times in loc; a nil loc means UTC.
//
// Sunday is 0, 7 or sun, L is the last day of the month, and a range may go over the end: 22-2, fri-mon. If the clock is put forward, a
// slot in the gap is due once right after the gap. If the clock is put back, a slot at a fixed hour is due only the first time. A
// schedule for every hour follows elapsed time instead: it has no slot in a gap, and slots in both passes of a repeated hour.
func Parse(spec string, loc *time.Location) (Schedule, error) {
	s, err := parse(strings.TrimSpace(spec), loc)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", spec, err)
	}
	return s, nil
}

// ParseIn parses spec like Parse, but takes the name of the time zone, because a job's settings contain this name.
func ParseIn(spec, timeZone string) (Schedule, error) {
	loc, err := time.LoadLocation(timeZone)
	if err != nil {
		return nil, err
	}
	return Parse(spec, loc)
}

func parse(spec string, loc *time.Location) (Schedule, error) {
	if loc == nil {
		loc = time.UTC
	}
	fields := strings.Fields(spec)
	switch {
	case len(fields) == 0:
		return nil, errors.New(`it is empty; write five-field cron ("30 2 * * *"), @hourly or "@every 5s"`)
	// The library panics on some of these texts, and Describe must see the zone.
	case strings.HasPrefix(spec, "TZ="), strings.HasPrefix(spec, "CRON_TZ="):
		return nil, errors.New("the time zone does not belong here; use the job's time_zone setting")
	case fields[0] == "@every":
		return parseEvery(fields[1:], loc)
	case fields[0] == "@always":
		if len(fields) > 1 {
			return nil, errors.New("@always takes no argument: the job runs as long as its node leads")
		}
		return alwaysSchedule{}, nil
	case strings.HasPrefix(spec, "@"):
		bits, err := cron.ParseStandard(spec)
		if err != nil {
			return nil, errors.New("no such descriptor; the descriptors are " + descriptors)
		}
		return newCronSchedule(spec, bits, nil, loc)
	}
	return parseFields(spec, fields, loc)
}

func parseFields(spec string, fields []string, loc *time.Location) (Schedule, error) {
	known := cronFields()
	if len(fields) != len(known) {
		return nil, fmt.Errorf("it has %d fields, not five: minute, hour, day of month, month, day of week "+
			`(for seconds use "@every 5s")`, len(fields))
	}
	normal := make([]string, len(fields))
	var ends *monthEnds
	for i, field := range fields {
		f := known[i]
		if err := checkElements(field, f.size()); err != nil {
			return nil, fmt.Errorf("%s %q: %w", f.name, field, err)
		}
		numbers, last, err := f.rewrite(field)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", f.name, field, err)
		}
		if last {
			ends = &monthEnds{}
			numbers, err = ends.widen(numbers)
		}
		if err == nil {
			_, err = cron.NewParser(f.option).Parse(numbers)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", f.name, field, err)
		}
		normal[i] = numbers
	}
	if err := checkDays(fields[2], fields[4]); err != nil {
		return nil, err
	}
	bits, err := cron.ParseStandard(strings.Join(normal, " "))
	if err != nil {
		return nil, err
	}
	return newCronSchedule(spec, bits, ends, loc)
}

// checkElements refuses text that would make the cron library misread it or panic.
func checkElements(field string, size int) error {
	if strings.Contains(field, "=") {
		return errors.New("the time zone does not belong here; use the job's time_zone setting")
	}
	if i := strings.IndexFunc(field, func(r rune) bool { return r > unicode.MaxASCII || strings.ContainsRune("+._", r) }); i >= 0 {
		return errors.New("write only ASCII digits, names and * ? - , /")
	}
	for element := range strings.SplitSeq(field, ",") {
		values, stepText, _ := strings.Cut(element, "/")
		step, _ := strconv.Atoi(stepText)
		switch {
		case element == "":
			return errors.New("an element of the list is empty")
		case len(values) > 1 && strings.ContainsAny(values, "*?"):
			return fmt.Errorf("%q combines * with other text; write * alone, or no *", element)
		case step > size:
			return fmt.Errorf("the step %d is larger than the field, which has %d values, so only the first value would match; "+
				`for an interval use "@every"`, step, size)
		}
	}
	return nil
}

// checkDays refuses a star with a step in one of the fields for days if the other field is restricted. In this case some cron
// implementations require that a day matches both fields, and others require only that it matches one of the fields.
func checkDays(month, week string) error {
	for _, f := range []struct{ name, field, other, instead string }{
		{"day of month", month, week, "1-31"}, {"day of week", week, month, "0-6"},
	} {
		values, step, stepped := strings.Cut(f.field, "/")
		stepped = stepped && step != "1" && (values == "*" || values == "?")
		if stepped && !slices.Contains([]string{"*", "?", "*/1", "?/1"}, f.other) {
			return fmt.Errorf("%s %q together with a restriction in the other day field: some crons run on days that match both fields, "+
				"others on days that match one of them; write %s/%s instead to match one of them, or make "+
				"two jobs", f.name, f.field, f.instead, step)
		}
	}
	return nil
}
