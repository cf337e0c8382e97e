package page

import (
	"testing"
	"time"
)

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
