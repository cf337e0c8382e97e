package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show/showtest"
	"baton/internal/config"
	"baton/internal/diagnose"
)

// TestTimesOfAnElectionSayTheirZone checks that each printed time contains its zone.
func TestTimesOfAnElectionSayTheirZone(t *testing.T) {
	at := time.Date(2027, 3, 28, 1, 2, 3, 0, time.UTC)
	j := diagnose.Job{Name: "users", LastRun: &diagnose.Run{State: "failed", Error: "x", Started: at},
		Paused: &diagnose.Pause{Since: at, Until: at.Add(time.Hour), Reason: "by ada"}}
	showtest.Times(t, "events", at, func(w io.Writer) error { return printEvents(w, []diagnose.Event{{At: at, Event: "won"}}) })
	showtest.Times(t, "status", at, func(w io.Writer) error { return printStatus(w, diagnose.Snapshot{Now: at, Jobs: []diagnose.Job{j}}) })
}

func TestTheLogIsInUTC(t *testing.T) {
	var out strings.Builder
	log := newLogger(cmdline.Env{Stderr: &out, Getenv: func(string) (string, bool) { return "", false }}, config.Log{Level: "info"}, zap.NewAtomicLevel())
	log.Info("x", zap.Time("slot", time.Date(2027, 3, 28, 1, 0, 0, 0, time.FixedZone("CST", -6*3600))))
	if line := out.String(); !strings.Contains(line, `"slot":"2027-03-28T07:00:00.000Z"`) || !regexp.MustCompile(`"time":"[^"]+Z"`).MatchString(line) {
		t.Error(line)
	}
}
