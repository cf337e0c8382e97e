package status

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 420 * time.Millisecond: "420 ms", time.Second: "1 s", 8190 * time.Millisecond: "8.1 s",
		9999 * time.Millisecond: "9.9 s", 42900 * time.Millisecond: "42 s", time.Minute: "1 min", 200 * time.Second: "3 min 20 s",
		time.Hour: "1 h", 47*time.Hour + 59*time.Minute: "47 h 59 min", 48 * time.Hour: "2 d", 291 * time.Hour: "12 d 3 h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestInstantIsShownInItsOwnZoneWithTheDateOfAnotherDay(t *testing.T) {
	now := time.Date(2026, 7, 22, 23, 30, 0, 0, time.UTC)
	shanghai := time.FixedZone("CST", 8*3600)
	for _, c := range []struct {
		at          time.Time
		clock, near string
	}{
		{time.Time{}, "", ""},
		{now, "23:30:00 UTC", "just now"},
		{now.Add(300 * time.Millisecond), "23:30:00 UTC", "in a moment"},
		{now.Add(3900 * time.Millisecond), "23:30:03 UTC", "in 3 s"},
		{now.Add(-90 * time.Second), "23:28:30 UTC", "1 min 30 s ago"},
		{now.Add(time.Hour), "23 Jul 00:30:00 UTC", "in 1 h"},
		{now.Add(time.Hour).In(shanghai), "08:30:00 CST", "in 1 h"},
		{now.AddDate(-1, 0, 0), "22 Jul 2025 23:30:00 UTC", "365 d ago"},
	} {
		got := at(c.at, now)
		if got.Clock != c.clock || got.Near != c.near {
			t.Errorf("at(%s) = %+v, want %q, %q", c.at, got, c.clock, c.near)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	if got := clip("short"); got != "short" {
		t.Errorf("%q", got)
	}
	for pad := range 4 {
		got := clip(strings.Repeat("x", pad) + strings.Repeat("語", maxText))
		if !utf8.ValidString(got) || len(got) > maxText+5 || !strings.HasSuffix(got, " …") {
			t.Errorf("clip cut to %d bytes, valid %v", len(got), utf8.ValidString(got))
		}
	}
}

func TestSomeNamesTheFirst(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := some(names); got != want {
			t.Errorf("some(%v) = %q, want %q", names, got, want)
		}
	}
}

func TestWhatAProgramPrintedDoesNothingAndIsSeen(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\r\nnext": "plain\ttext\nnext", "\x1b[2J": "\u241b[2J", "50 %\r51 %": "50 %\u240d51 %", "a\x00b\x7f": "a\u2400b\u2421",
		"\xff": "\uFFFD", "a\u202eb\u2066": "a\uFFFDb\uFFFD", "\u009b31m": "\uFFFD31m", "grüße 漢字": "grüße 漢字",
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
