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

// instant is a moment as the page shows it.
type instant struct {
	ISO   string // for programs, and on hovering
	Clock string // "14:02:11 UTC"; with the date where it is another day's
	Near  string // "3 min 20 s ago", "in 8 s"
	MS    int64  // of the epoch, for the script, which lets Near go on, and shows the reader's time in the place of Clock
	Own   string // the same in a job's own time zone, where that is not UTC
}

// atOwn describes t in UTC, and on hovering in the zone that t carries.
func atOwn(t, now time.Time, zone string) instant {
	i := at(t.UTC(), now)
	if _, offset := t.Zone(); offset != 0 && !t.IsZero() {
		own := at(t, now)
		i.Own = strings.TrimSuffix(own.Clock, t.Format("MST")) + t.Format("-07:00") + " " + zone
	}
	return i
}

// at describes t as seen at now, in the zone that t carries. The zero t is the
// zero instant.
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

// wholeSeconds keeps countdowns from showing tenths.
func wholeSeconds(d time.Duration) time.Duration { return d.Truncate(time.Second) }

// words makes a state or event readable: "timed out".
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// maxText is how much of one message the page shows; the API has all of it.
const maxText = 600

func clip(s string) string { return text.Clip(s, maxText) }

// perSecond is a rate as people read it: of a small one a decimal.
func perSecond(rate float64) string {
	if rate > 0 && rate < 10 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", rate), ".0")
	}
	return text.Number(int64(math.Round(rate)))
}

// namesShown is how many names one line of the page lists.
const namesShown = 3

// sentence makes a clause one.
func sentence(clause string) string {
	if clause == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(clause)
	return string(unicode.ToUpper(first)) + clip(clause[size:]) + "."
}

// visible makes of what a program printed a text that can be shown: a control character
// does nothing, and can be seen. So can what would turn the order of the letters around.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	const pictures = 0x2400 // where Unicode has a picture of each control character
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
