package jobcmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/text"
)

// StateColour returns the colour of a state. The first word of the state decides the colour.
func StateColour(state string) show.Colour {
	word, _, _ := strings.Cut(strings.TrimSuffix(state, ","), " ")
	switch word {
	case "leading", "succeeded":
		return show.Good
	case "failed", "failing", "late", "timed_out", "lost", diagnose.StateSilent:
		return show.Bad
	case "paused", "stands", "cancelled", "missed", "not":
		return show.Uneasy
	case "observer", "never":
		return show.Dim
	}
	return ""
}

// painted returns a state in its colour.
func painted(w io.Writer, state string) show.SafeText {
	return show.Paint(w, StateColour(state), state)
}

// paintLate returns a text that says how far a job's table is behind Redis. The text is coloured if the job's data is late.
func paintLate(w io.Writer, j diagnose.Job, now time.Time) show.SafeText {
	if j.IsDataLate(now) {
		return show.Paint(w, show.Bad, behind(j))
	}
	return show.SafeText(behind(j))
}

// jobState describes the current state of a job in one or two words.
func jobState(j diagnose.Job, now time.Time) string {
	paused := "paused"
	if j.Paused != nil && j.Paused.All {
		paused = "paused with all"
	}
	if j.Paused != nil && !j.Paused.Until.IsZero() {
		paused += " for another " + text.Duration(j.Paused.Until.Sub(now))
	}
	switch {
	case j.Paused != nil && j.Running != nil:
		return paused + ", still running"
	case j.Paused != nil:
		return paused
	case len(j.Open) > 1:
		return fmt.Sprintf("%d runs, the latest for %s", len(j.Open), text.Duration(now.Sub(j.Running.Started)))
	case j.Running != nil:
		return "running for " + text.Duration(now.Sub(j.Running.Started))
	case j.Retry != nil:
		return "failing, tries again " + show.Soon(j.Retry.At, now)
	case j.IsFailing():
		return "failing"
	case j.Unscheduled != nil:
		return j.Unscheduled.Words()
	case j.IsLate(now) != "":
		return "late"
	}
	return "ready"
}

func lastRun(j diagnose.Job, now time.Time) string {
	r := j.Ended()
	switch {
	case r == nil && j.LastRun != nil:
		return "-"
	case r == nil:
		return "never"
	}
	state := r.State
	if code := r.ExitCode; code != nil && *code != 0 {
		state += fmt.Sprintf(" (exit code %d)", *code)
	}
	return fmt.Sprintf("%s %s ago", state, text.Duration(now.Sub(r.Started)))
}

// NextRun returns a text that says when a job is due next. It names no time while no node leads under the job's lock.
func NextRun(j diagnose.Job, s diagnose.Snapshot) string {
	leader := s.LeaderOf(j)
	switch {
	case j.Paused != nil && j.Paused.Until.IsZero(), leader == nil && s.Paused != nil:
		return "paused"
	case leader == nil || leader.Foreign:
		return "once a node leads"
	case j.Unscheduled != nil:
		return j.Unscheduled.Words()
	case j.NextRun.IsZero():
		return "-"
	}
	return "in " + text.Duration(j.NextRun.Sub(s.Now))
}

// WaitingChanges returns how many changes a job still has to write. If the number is unknown, it returns "unknown" if [diagnose.Job]
// contains the reason, otherwise "?".
func WaitingChanges(j diagnose.Job) string {
	switch {
	case j.Command:
		return "-"
	case j.Backlog == nil && j.BacklogUnknown != "":
		return "unknown"
	case j.Backlog == nil:
		return "?"
	}
	return fmt.Sprint(*j.Backlog)
}

// waiting returns the number of waiting changes with its unit, or the reason why the number is unknown.
func waiting(j diagnose.Job) string {
	if j.Backlog == nil && j.BacklogUnknown != "" {
		return "unknown: " + text.OneLine(j.BacklogUnknown)
	}
	return WaitingChanges(j) + " changes"
}

func behind(j diagnose.Job) string {
	switch {
	case j.Command:
		return "-"
	case j.LagSeconds == nil:
		return "?"
	}
	return text.Duration(time.Duration(*j.LagSeconds * float64(time.Second)))
}
