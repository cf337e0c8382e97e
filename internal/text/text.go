// Package text formats durations, counts, names and long texts for people, in the same way everywhere.
package text

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Duration formats d for a terminal or a log line, rounded to its significant units, such as "420ms", "8.1s", "3m20s", "5h12m" or "12d". It
// returns "0s" if d is negative.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return Exact(d.Round(time.Second))
	case d < 48*time.Hour:
		return Exact(d.Round(time.Minute))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Exact formats d without loss, in the form of a configuration. For example, it returns "1h" instead of "1h0m0s".
func Exact(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Span formats d in a longer form for the status page, such as "420 ms", "8.1 s", "3 min 20 s", "5 h 12 min" or "12 d 3 h".
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Millisecond:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Truncate(100*time.Millisecond).Seconds()), ".0") + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return two(d, time.Minute, "min", time.Second, "s")
	case d < 2*day:
		return two(d, time.Hour, "h", time.Minute, "min")
	default:
		return two(d, day, "d", time.Hour, "h")
	}
}

// two formats d in two units. It omits the smaller unit if its number is zero.
func two(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := fmt.Sprintf("%d %s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return s
}

// Number formats n with a comma between thousands, such as "12,400".
func Number[N int | int64](n N) string {
	s, sign := strconv.FormatInt(int64(n), 10), ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Count returns a number with a noun whose plural ends in s, such as "1 job" or "12,400 jobs".
func Count[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + one + "s"
}

// Clip shortens s to at most the given number of bytes, without splitting a character. It appends "…" if s was shortened.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// Names returns the names as a text. If there are more names than the argument most, the text contains only the first names and the number
// of the others, such as "a, b and 3 more".
func Names(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most-1], ", "), len(all)-most+1)
}

// OneLine returns a text from outside as one line without invisible characters, so that the text cannot add lines to the output or hide
// parts of it.
func OneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r < ' ':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))), " ")
}

// Stamp formats a time in UTC, with a precision of seconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// IsHost reports whether a text can be the name or the address of a host. It returns false for most pieces of a password that were parsed
// as a host by mistake.
func IsHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_", r)
	})
}

// WithoutMark removes the byte order mark that editors on Windows put before UTF-8.
func WithoutMark(content []byte) []byte { return bytes.TrimPrefix(content, []byte("\ufeff")) }
