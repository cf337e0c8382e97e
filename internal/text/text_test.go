package text

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestDurationHasWhatMatters(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 45678 * time.Nanosecond: "50µs", 1234 * time.Microsecond: "1.2ms", 420400 * time.Microsecond: "420ms",
		8123 * time.Millisecond: "8.1s", 200400 * time.Millisecond: "3m20s", 312*time.Minute + 10*time.Second: "5h12m",
		47 * time.Hour: "47h", 5 * time.Minute: "5m", 300 * time.Hour: "12d",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestExactLosesNothing(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Second: "1m30s", time.Minute: "1m", 10 * time.Second: "10s",
		10 * time.Minute: "10m", 10 * time.Hour: "10h", 61 * time.Minute: "1h1m", time.Hour + 10*time.Second: "1h0m10s",
		250 * time.Millisecond: "250ms", 20*time.Hour + 30*time.Minute: "20h30m",
	} {
		if got := Exact(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
		if back, err := time.ParseDuration(Exact(d)); err != nil || back != d {
			t.Errorf("%s reads back as %v, %v", Exact(d), back, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 420 * time.Millisecond: "420 ms", time.Second: "1 s", 8190 * time.Millisecond: "8.1 s",
		9999 * time.Millisecond: "9.9 s", 42900 * time.Millisecond: "42 s", time.Minute: "1 min", 200 * time.Second: "3 min 20 s",
		time.Hour: "1 h", 47*time.Hour + 59*time.Minute: "47 h 59 min", 48 * time.Hour: "2 d", 291 * time.Hour: "12 d 3 h",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestNumberHasItsThousandsApart(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := Number(n); got != want {
			t.Errorf("Number(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestCountIsOfOneOrMore(t *testing.T) {
	for n, want := range map[int]string{0: "0 jobs", 1: "1 job", 12400: "12,400 jobs"} {
		if got := Count(n, "job"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	const most = 600
	if got := Clip("short", most); got != "short" {
		t.Errorf("%q", got)
	}
	for pad := range 4 {
		got := Clip(strings.Repeat("x", pad)+strings.Repeat("語", most), most)
		if !utf8.ValidString(got) || len(got) > most+len("…") || len(got) < most || !strings.HasSuffix(got, "…") {
			t.Errorf("cut to %d bytes, valid %v", len(got), utf8.ValidString(got))
		}
	}
}

func TestNamesCountsThoseBeyond(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b, c": {"a", "b", "c"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := Names(names, 3); got != want {
			t.Errorf("Names(%v) = %q, want %q", names, got, want)
		}
	}
}

func TestOneLineHasNoControlCharacters(t *testing.T) {
	if got := OneLine(" a\nB=c\t\x00ü\u202eb\xff\u009b31m\x1b[2J "); got != "a B=c üb31m [2J" {
		t.Errorf("%q", got)
	}
}

func TestStampIsInUTC(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	if got := Stamp(at); got != "2026-01-02 02:04:05 UTC" {
		t.Errorf("%q", got)
	}
}
