package page

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"baton/internal/text"
)

// instant is a point in time in the forms that the page shows.
type instant struct {
	ISO   string // for programs, and shown when the pointer is over the time
	Clock string // such as "14:02:11 UTC"; with the date if the time is on another day
	Near  string // such as "3 min 20 s ago" or "in 8 s"
	MS    int64  // Unix time for the script, which updates Near and replaces Clock with the reader's local time
	Own   string // the time in a job's own time zone, if that is not UTC
}

// atOwn returns t in UTC, together with the time in the zone of t. The page shows the time in that zone when the pointer is over the
// time in UTC.
func atOwn(t, now time.Time, zone string) instant {
	i := at(t.UTC(), now)
	if _, offset := t.Zone(); offset != 0 && !t.IsZero() {
		own := at(t, now)
		i.Own = strings.TrimSuffix(own.Clock, t.Format("MST")) + t.Format("-07:00") + " " + zone
	}
	return i
}

// at returns the time t as seen at the time now, in the zone of t. For the zero time it returns the zero instant.
func at(t, now time.Time) instant {
	if t.IsZero() {
		return instant{}
	}
	layout := "15:04:05 MST"
	switch local := now.In(t.Location()); {
	case t.Year() != local.Year():
		layout = "2 Jan 2006 15:04:05 MST"
	case t.YearDay() != local.YearDay():
		layout = "2 Jan 15:04:05 MST"
	}
	return instant{ISO: t.Format(time.RFC3339), Clock: t.Format(layout), Near: near(t.Sub(now)), MS: t.UnixMilli()}
}

func near(d time.Duration) string {
	switch {
	case d > -time.Second && d <= 0:
		return "just now"
	case d > 0 && d < time.Second:
		return "in a moment"
	case d < 0:
		return text.Span(wholeSeconds(-d)) + " ago"
	default:
		return "in " + text.Span(wholeSeconds(d))
	}
}

// wholeSeconds removes fractions of seconds, so that countdowns do not show them.
func wholeSeconds(d time.Duration) time.Duration { return d.Truncate(time.Second) }

// words returns the name of a state or event as readable words, such as "timed out".
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// maxText is the maximum length of one message on the page, in bytes. The API returns the whole message.
const maxText = 600

func clip(s string) string { return text.Clip(s, maxText) }

// perSecond formats a rate for people. It formats a small rate with one decimal.
func perSecond(rate float64) string {
	if rate > 0 && rate < 10 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", rate), ".0")
	}
	return text.Number(int64(math.Round(rate)))
}

// namesShown is the maximum number of names on one line of the page.
const namesShown = 3

// sentence makes a sentence from a clause: it adds a capital letter and a full stop.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(clause)
	return string(unicode.ToUpper(first)) + clip(clause[size:]) + "."
}

// visible makes the output of a program safe to show. It replaces control characters with visible characters that have no effect. It also
// replaces the characters that would reverse the direction of the text.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	const pictures = 0x2400 // the first of Unicode's symbols for control characters
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ':
			return pictures + r
		case r == 0x7F:
			return 0x2421
		case r >= 0x80 && r < 0xA0, unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Cf, r):
			return '\uFFFD'
		}
		return r
	}, text)
}
