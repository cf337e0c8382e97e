package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// span writes a length of time for people: "420 ms", "8.1 s", "3 min 20 s", "5 h 12 min", "12 d 3 h".
func span(d time.Duration) string {
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

// two writes d in two units, leaving the smaller out where it is zero.
func two(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// instant is a moment as the page shows it.
type instant struct {
	ISO   string // for programs, and on hovering
	Clock string // "14:02:11 UTC"; with the date where it is another day's
	Near  string // "3 min 20 s ago", "in 8 s"
	MS    int64  // of the epoch, for the script, which lets Near go on
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
		return span(wholeSeconds(-d)) + " ago"
	default:
		return "in " + span(wholeSeconds(d))
	}
}

// wholeSeconds keeps countdowns from showing tenths.
func wholeSeconds(d time.Duration) time.Duration { return d.Truncate(time.Second) }

// count writes n with its thousands apart: 12,400.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// plural is "1 job", "2 jobs".
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + one + "s"
}

// words makes a state or event readable: "timed out".
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// maxText is how much of one message the page shows; the API has all of it.
const maxText = 600

func clip(text string) string { return clipTo(text, maxText) }

func clipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + " …"
}

// some lists the first few names: "a, b and 3 more".
func some(names []string) string {
	const shown = 3
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown-1], ", "), len(names)-shown+1)
}

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
