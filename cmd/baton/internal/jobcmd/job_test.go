package jobcmd

import (
	"io"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/show/showtest"
	"baton/internal/diagnose"
)

func TestUntilIsATimeToCome(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 28, 12, 30, 0, 0, berlin) // the following night has only 23 hours
	for _, c := range []struct{ text, want string }{
		{"2026-03-28T12:00:00Z", "2026-03-28T13:00:00+01:00"},
		{"2026-03-29 12:00", "2026-03-29T12:00:00+02:00"},
		{"12:31", "2026-03-28T12:31:00+01:00"},
		{"12:30", "2026-03-29T12:30:00+02:00"},
		{"02:30", "2026-03-29T03:30:00+02:00"}, // this time does not exist in that night
		{"00:00", "2026-03-29T00:00:00+01:00"},
		{"2026-03-28 12:30", "has passed: it is 2026-03-28 12:30:00 +01:00"},
		{"2026-03-28T11:29:59Z", "has passed"},
		{"25:00", "write a time such as"},
		{"in 2h", "write a time such as"},
	} {
		got, err := parseUntil(c.text, berlin, now)
		if err == nil && got.Format(time.RFC3339) != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v, want %s", c.text, got.Format(time.RFC3339), err, c.want)
		}
	}
}

func TestProgressOfARun(t *testing.T) {
	began := time.Now()
	var out strings.Builder
	bar := progress{w: &out}
	for i, rows := range []int64{0, 100, 200, 300} {
		bar.show(diagnose.Run{Rows: rows, Backlog: new(int64(1000))}, began.Add(time.Duration(i)*time.Second/2))
	}
	bar.end()
	want := "[..............................]   0 %  0 rows of 1000 changes\n" +
		"[######........................]  20 %  200 rows of 1000 changes, 200 rows/s, 4s left\n"
	if out.String() != want {
		t.Errorf("a line a second:\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	bar = progress{w: &out, inPlace: true}
	bar.show(diagnose.Run{Rows: 5000, Dead: 3, Backlog: new(int64(1000))}, began)
	bar.show(diagnose.Run{Rows: 6000}, began.Add(time.Second))
	bar.end()
	if want := "\r\x1b[K[##############################] 100 %  5000 rows of 1000 changes, 3 dead letters\r\x1b[K6000 rows, 997 rows/s\r\x1b[K"; out.String() != want {
		t.Errorf("in place:\n%q\nwant\n%q", out.String(), want)
	}
}

func TestTimesOfAJobSayTheirZone(t *testing.T) {
	at := time.Date(2027, 3, 28, 1, 2, 3, 0, time.UTC)
	run := diagnose.Run{ID: "r", State: "failed", Error: "x", Started: at, Slot: at}
	j := diagnose.Job{Name: "users", LastRun: &run, NextRun: at.In(time.FixedZone("CST", -6*3600)), Retry: &diagnose.Retry{Slot: at, At: at},
		Paused: &diagnose.Pause{Since: at, Until: at.Add(time.Hour), Reason: "by ada"}}
	showtest.Times(t, "job show", at, func(w io.Writer) error { return printJob(w, j, []diagnose.Run{run}, at) })
}
