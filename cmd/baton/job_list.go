package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

func newJobListCommand(e env) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the jobs and how they stand",
		Example: "  baton job list\n  baton job list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRemote(cmd, e, func(r operate.Operator) error {
				s, err := r.Snapshot(cmd.Context())
				if err != nil {
					return err
				}
				return out.print(e.stdout, s.Jobs, func(w io.Writer) error { return printJobs(w, s) })
			})
		},
	}
	addRemoteFlags(cmd, e)
	out.addFlag(cmd, e)
	return cmd
}

func printJobs(out io.Writer, s diagnose.Snapshot) error {
	if len(s.Jobs) == 0 {
		return say(out, "the configuration has no jobs\n")
	}
	w := newTable(out)
	_ = say(w, "JOB\tSCHEDULE\tSTATE\tLAST\tNEXT\tWAITING\tBEHIND\n") // Flush tells a write error
	for _, j := range s.Jobs {
		_ = say(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", j.Name, j.Schedule,
			painted(w, jobState(j, s.Now)), painted(w, lastRun(j, s.Now)), nextRun(j, s), waitingChanges(j), paintLate(w, j, s.Clock()))
	}
	return w.Flush()
}

// painted is a state in its colour.
func painted(w io.Writer, state string) shown { return paint(w, stateColour(state), state) }

// paintLate is how far a job is behind.
func paintLate(w io.Writer, j diagnose.Job, now time.Time) shown {
	if j.IsDataLate(now) {
		return paint(w, bad, behind(j))
	}
	return shown(behind(j))
}

// jobState is what a job does now, in a word or two.
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
		return "failing, tries again " + soon(j.Retry.At, now)
	case j.IsFailing():
		return "failing"
	case j.IsLate(now) != "":
		return "late"
	}
	return "ready"
}

// soon is "in 5s", or "now".
func soon(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + text.Duration(at.Sub(now))
}

func lastRun(j diagnose.Job, now time.Time) string {
	if j.LastRun == nil {
		return "never"
	}
	state := j.LastRun.State
	if code := j.LastRun.ExitCode; code != nil && *code != 0 {
		state += fmt.Sprintf(" (exit code %d)", *code)
	}
	return fmt.Sprintf("%s %s ago", state, text.Duration(now.Sub(j.LastRun.Started)))
}

// nextRun is when a job is due: while nobody leads under its lock no time is promised.
func nextRun(j diagnose.Job, s diagnose.Snapshot) string {
	leader := s.LeaderOf(j)
	switch {
	case j.Paused != nil && j.Paused.Until.IsZero(), leader == nil && s.Paused != nil:
		return "paused"
	case leader == nil || leader.Foreign:
		return "once a node leads"
	case j.NextRun.IsZero():
		return "-"
	}
	return "in " + text.Duration(j.NextRun.Sub(s.Now))
}

func waitingChanges(j diagnose.Job) string {
	switch {
	case j.Command:
		return "-"
	case j.Backlog == nil:
		return "?"
	}
	return fmt.Sprint(*j.Backlog)
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

func newJobShowCommand(e env) *cobra.Command {
	var out output
	var name string
	var runs int
	cmd := &cobra.Command{
		Use:     "show [JOB]",
		Short:   "Show one job and its last runs",
		Long:    "Show one job, how it stands, and its last runs. JOB may be left out where there is just one.",
		Example: "  baton job show users\n  baton job show users -n 50",
		Args:    oneOrTheJob(e, &name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRemote(cmd, e, func(r operate.Operator) error {
				j, err := jobOf(cmd.Context(), r, name)
				if err != nil {
					return jobError(err)
				}
				past, err := operate.Runs(cmd.Context(), r, name, runs)
				if err != nil {
					return err
				}
				shown := struct {
					diagnose.Job
					Runs []diagnose.Run `json:"runs"`
				}{j, past}
				return out.print(e.stdout, shown, func(w io.Writer) error { return printJob(w, j, past, time.Now()) })
			})
		},
	}
	addRemoteFlags(cmd, e)
	jobNames(e).asArguments(cmd, 1)
	addNumberFlag(cmd, &runs, 5, "how many of its last runs to show")
	out.addFlag(cmd, e)
	return cmd
}

func printJob(out io.Writer, j diagnose.Job, runs []diagnose.Run, now time.Time) error {
	w := newTable(out)
	p := func(format string, args ...any) { _ = say(w, format, args...) } // Flush tells a write error
	target := "writes to"
	if j.Command {
		target = "runs"
	}
	p("job\t%s\n", j.Name)
	p("%s\t%s\n", target, j.Target)
	p("schedule\t%s: %s\n", j.Schedule, j.ScheduleWords)
	p("lock\t%s\n", j.Lock)
	p("overlap\t%s\n", j.Overlap)
	p("state\t%s\n", painted(w, jobState(j, now)))
	if j.Paused != nil {
		p("paused\t%s\n", pausedSince(j))
	}
	open := j.Open
	if len(open) == 0 && j.Running != nil {
		open = []diagnose.Run{*j.Running}
	}
	for _, r := range open {
		p("run\t%s on %s: %s\n", r.ID, r.NodeID, nowRunning(j, r, now))
	}
	if r := j.Retry; r != nil {
		p("retry\tattempt %d of slot %s, %s\n", r.Attempt, moment(r.Slot.In(j.NextRun.Location())), soon(r.At, now))
	}
	next := "-"
	if !j.NextRun.IsZero() && (j.Paused == nil || !j.Paused.Until.IsZero()) {
		next = moment(j.NextRun)
	}
	p("next\t%s\n", next)
	did := "ROWS\tDEAD"
	if j.Command {
		did = "EXIT"
	} else {
		p("waiting\t%s changes\n", waitingChanges(j))
		p("behind\t%s\n", paintLate(w, j, now))
	}
	if len(runs) > 0 {
		p("\nSTARTED\tRESULT\tTRIGGER\tATTEMPT\t%s\tTOOK\tNODE\tRUN\tERROR\n", did)
	}
	for _, r := range runs {
		did := fmt.Sprintf("%d\t%d", r.Rows, r.Dead)
		if j.Command {
			did = exitCode(r)
		}
		p("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", here(r.Started), painted(w, r.State), r.Trigger, r.Attempt, did,
			text.Duration(time.Duration(r.DurationMS)*time.Millisecond), r.NodeID, r.ID, cmp.Or(errorOrReason(r), "-"))
	}
	return w.Flush()
}

// pausedSince is why a job is paused, for how long, and what ends that.
func pausedSince(j diagnose.Job) string {
	text := j.Paused.Reason + ", since " + here(j.Paused.Since)
	if !j.Paused.Until.IsZero() {
		text += ", until " + here(j.Paused.Until)
	}
	return text + "; " + endsPause(j) + " ends that"
}

// endsPause is the command that ends a job's pause.
func endsPause(j diagnose.Job) string {
	if j.Paused.All {
		return "baton job resume --all"
	}
	return "baton job resume " + j.Name
}

// nowRunning is how far a run is that goes on.
func nowRunning(j diagnose.Job, r diagnose.Run, now time.Time) string {
	text := "for " + text.Duration(now.Sub(r.Started))
	if !j.Command {
		text = soFar(r)
	}
	if why := errorOrReason(r); why != "" {
		text += ", " + why
	}
	return text
}

// soFar is how far a run is.
func soFar(r diagnose.Run) string {
	text := fmt.Sprintf("%d rows", r.Rows)
	if r.Backlog != nil {
		text += fmt.Sprintf(" of %d changes", *r.Backlog)
	}
	if r.Dead > 0 {
		text += fmt.Sprintf(", %d dead letters", r.Dead)
	}
	return text
}
