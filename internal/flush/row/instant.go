package row

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// These are the named formats of a timestamp or date. Any other text is a layout of Go's package time.
const (
	formatUnix      = "unix"
	formatUnixMilli = "unix_ms"
	formatRFC3339   = "rfc3339"
)

// All databases can store the years 1 to 9999, and RFC 3339 has no other years.
const (
	firstSecond = -62135596800 // 0001-01-01T00:00:00Z
	lastSecond  = 253402300799 // 9999-12-31T23:59:59Z
)

// CheckFormat refuses a format that a column of this kind cannot use, such as a format that does not determine the day.
func CheckFormat(k Kind, format string) error {
	switch format {
	case "", formatRFC3339:
		return nil
	case formatUnix, formatUnixMilli:
		if k == KindDate {
			return fmt.Errorf("format %s is for timestamps; a date needs rfc3339 (2006-01-02) or a layout of Go's time package", format)
		}
		return nil
	}
	if strings.Contains(format, "MST") {
		return fmt.Errorf("format %q has a time zone's short name, which is ambiguous: use an offset such as -0700", format)
	}
	day := time.Date(2001, 2, 3, 0, 0, 0, 0, time.UTC)
	for _, other := range []time.Time{day.AddDate(1, 0, 0), day.AddDate(0, 1, 0), day.AddDate(0, 0, 1)} {
		if day.Format(format) == other.Format(format) {
			return fmt.Errorf("format %q is not a layout with year, month and day: write the time 2006-01-02 15:04:05 in "+
				"the form of your data, "+
				"or use unix, unix_ms or rfc3339", format)
		}
	}
	return nil
}

// timestampReader returns a Reader of times. The Reader refuses a time that is finer than a microsecond, or finer than the column's unit. A
// time without an offset is in UTC.
func timestampReader(c Column, format string) Reader {
	unit := max(c.TimeUnit, time.Microsecond)
	parse := instantParser(format)
	return func(s string) (Value, error) {
		t, err := parse(s)
		if err != nil {
			return Value{}, err
		}
		if sec := t.Unix(); sec < firstSecond || sec > lastSecond {
			return Value{}, fmt.Errorf("%s is outside of the years 1 to 9999", Quote(s))
		}
		if t.Nanosecond()%int(unit) != 0 {
			return Value{}, fmt.Errorf("%s is finer than %v, the smallest unit that the column keeps", Quote(s), unit)
		}
		return Timestamp(t), nil
	}
}

func instantParser(format string) func(string) (time.Time, error) {
	switch format {
	case formatUnix:
		return func(s string) (time.Time, error) { return parseUnix(s, 0) }
	case formatUnixMilli:
		return func(s string) (time.Time, error) { return parseUnix(s, 3) }
	case "", formatRFC3339:
		return func(s string) (time.Time, error) { return parseLayout(time.RFC3339, "an RFC 3339 time", s) }
	}
	return func(s string) (time.Time, error) { return parseLayout(format, "of the layout "+Quote(format), s) }
}

func parseLayout(layout, what, s string) (time.Time, error) {
	t, err := time.Parse(layout, s)
	if err != nil {
		return t, fmt.Errorf("%s is not %s", Quote(s), what)
	}
	if tooFine(s) {
		return t, fmt.Errorf("%s is finer than a microsecond", Quote(s))
	}
	return t, nil
}

// tooFine reports whether a fraction of a second has more than nine digits, because package time would silently drop the digits after the
// ninth.
func tooFine(s string) bool {
	for i := 0; i+9 < len(s); i++ {
		if s[i] != '.' && s[i] != ',' {
			continue
		}
		n := countDigits(s[i+1:])
		if n > 9 && strings.Trim(s[i+10:i+1+n], "0") != "" {
			return true
		}
		i += n
	}
	return false
}

// parseUnix parses a decimal number of seconds, whose point is shifted by the given number of digits. It does not use a float, because a
// float would lose microseconds.
func parseUnix(s string, shift int) (time.Time, error) {
	d, ok := scanDecimal(s)
	if !ok || d.shifted {
		return time.Time{}, fmt.Errorf("%s is not a time in decimal digits since 1970", Quote(s))
	}
	fraction := strings.TrimRight(d.fraction, "0")
	if len(fraction) > 9-shift {
		return time.Time{}, fmt.Errorf("%s is finer than a microsecond", Quote(s))
	}
	if len(d.digits) > 18 {
		return time.Time{}, fmt.Errorf("%s is outside of the years 1 to 9999", Quote(s))
	}
	n, _ := strconv.ParseInt("0"+d.digits, 10, 64)
	nanos, _ := strconv.ParseInt("0"+fraction+strings.Repeat("0", 9-shift-len(fraction)), 10, 64)
	if d.negative {
		n, nanos = -n, -nanos
	}
	if shift == 3 {
		return time.Unix(n/1000, n%1000*int64(time.Millisecond)+nanos), nil
	}
	return time.Unix(n, nanos), nil
}

// dateReader returns a Reader of calendar days. The Reader refuses a text with a time of day, because the column would not store the time
// of day.
func dateReader(format string) Reader {
	layout, what := format, "of the layout "+Quote(format)
	if format == "" || format == formatRFC3339 {
		layout, what = time.DateOnly, "a date such as 2006-01-02"
	}
	return func(s string) (Value, error) {
		t, err := parseLayout(layout, what, s)
		if err != nil {
			return Value{}, err
		}
		if h, m, sec := t.Clock(); h+m+sec+t.Nanosecond() != 0 {
			return Value{}, fmt.Errorf("%s has a time of day, which a date cannot hold", Quote(s))
		}
		if t.Year() < 1 || t.Year() > 9999 {
			return Value{}, fmt.Errorf("%s is outside of the years 1 to 9999", Quote(s))
		}
		return Date(t), nil
	}
}
