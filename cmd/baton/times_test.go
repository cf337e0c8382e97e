package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status"
)

// Whoever reads a time knows which zone it is in.
func TestEveryTimeSaysItsZone(t *testing.T) {
	at := time.Date(2027, 3, 28, 1, 2, 3, 0, time.UTC)
	run := diagnose.Run{ID: "r", State: "failed", Error: "x", Started: at, Slot: at}
	j := diagnose.Job{Name: "users", LastRun: &run, NextRun: at.In(time.FixedZone("CST", -6*3600)), Retry: &status.Retry{Slot: at, At: at},
		Paused: &status.Pause{Since: at, Until: at.Add(time.Hour), Reason: "by ada"}}
	letter := operate.Letter{ID: "3f2a9c41d07b", Job: "users", At: at}
	for name, print := range map[string]func(io.Writer) error{
		"events":       func(w io.Writer) error { return printEvents(w, []diagnose.Event{{At: at, Event: "won"}}) },
		"dead list":    func(w io.Writer) error { return printLetters(w, []operate.Letter{letter}, 10, true) },
		"dead reasons": func(w io.Writer) error { return printReasons(w, []operate.LetterReason{{Oldest: at, Newest: at}}) },
		"dead show":    func(w io.Writer) error { return printLetter(w, letter, true) },
		"job show":     func(w io.Writer) error { return printJob(w, j, []diagnose.Run{run}, at) },
		"status":       func(w io.Writer) error { return printStatus(w, diagnose.Snapshot{Now: at, Jobs: []diagnose.Job{j}}) },
	} {
		var text strings.Builder
		if err := print(&text); err != nil {
			t.Fatal(err)
		}
		times := regexp.MustCompile(`\d{4}-\d\d-\d\d.\d\d:\d\d\S*(?: \S+)?`).FindAllString(text.String(), -1)
		if len(times) == 0 {
			t.Errorf("%s tells no time:\n%s", name, text.String())
		}
		for _, told := range times {
			parsed := time.Time{}
			for _, layout := range []string{"2006-01-02 15:04:05 -07:00", "2006-01-02 15:04:05.000 -07:00"} {
				if p, err := time.Parse(layout, strings.TrimRight(told, ";,:")); err == nil {
					parsed = p
				}
			}
			if d := parsed.Sub(at); d != 0 && d != time.Hour {
				t.Errorf("%s tells %q of %v", name, told, at)
			}
		}
	}
}

func TestTimesOfAnElectionAreInTheZoneOfTheTerminal(t *testing.T) {
	at := time.Date(2027, 3, 28, 1, 2, 3, 0, time.FixedZone("elsewhere", 5*3600+1800))
	if got, want := here(at), at.Local().Format("2006-01-02 15:04:05 -07:00"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := moment(at); got != "2027-03-28 01:02:03 +05:30" {
		t.Error(got)
	}
}

func TestTheLogIsInUTC(t *testing.T) {
	var out strings.Builder
	log := newLogger(env{stderr: &out, getenv: func(string) (string, bool) { return "", false }}, config.Log{Level: "info"}, zap.NewAtomicLevel())
	log.Info("x", zap.Time("slot", time.Date(2027, 3, 28, 1, 0, 0, 0, time.FixedZone("CST", -6*3600))))
	if line := out.String(); !strings.Contains(line, `"slot":"2027-03-28T07:00:00.000Z"`) || !regexp.MustCompile(`"time":"[^"]+Z"`).MatchString(line) {
		t.Error(line)
	}
}
