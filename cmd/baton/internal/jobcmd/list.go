package jobcmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

func newJobListCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the jobs and their state",
		Example: "  baton job list\n  baton job list -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				s, err := r.Snapshot(cmd.Context())
				if err != nil {
					return err
				}
				return out.Print(e.Stdout, diagnose.Undefined(s.Jobs), func(w io.Writer) error { return printJobs(w, s) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printJobs(out io.Writer, s diagnose.Snapshot) error {
	if len(s.Jobs) == 0 {
		return show.Say(out, "the configuration has no jobs\n")
	}
	w := show.NewTable(out)
	_ = show.Say(w, "JOB\tSCHEDULE\tSTATE\tNEXT\tLAST\tWAITING\tBEHIND\n") // Flush returns a write error
	for _, j := range s.Jobs {
		_ = show.Say(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", j.Name, j.Schedule,
			painted(w, jobState(j, s.Now)), NextRun(j, s), painted(w, lastRun(j, s.Now)), WaitingChanges(j), paintLate(w, j, s.Clock()))
	}
	return w.Flush()
}

func newJobShowCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var name string
	var runs int
	cmd := &cobra.Command{
		Use:   "show [JOB]",
		Short: "Show one job and its last runs",
		Long: "Show one job, its state and its last runs. JOB is optional if there is only\n" +
			"one job.",
		Example: "  baton job show users\n  baton job show users -n 50",
		Args:    cmdline.OneOrTheJob(e, &name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				j, err := operate.JobOf(cmd.Context(), r, name)
				if err != nil {
					return cmdline.JobError(err)
				}
				if j.Definition, err = r.Definition(cmd.Context(), name); err != nil {
					return err
				}
				past, err := operate.Runs(cmd.Context(), r, name, runs)
				if err != nil {
					return err
				}
				shown := struct {
					diagnose.Job
					Runs []diagnose.Run `json:"runs"`
				}{j, past}
				return out.Print(e.Stdout, shown, func(w io.Writer) error { return printJob(w, j, past, time.Now()) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	cmdline.AddNumberFlag(cmd, &runs, 5, "how many of the job's last runs to show")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printJob(out io.Writer, j diagnose.Job, runs []diagnose.Run, now time.Time) error {
	w := show.NewTable(out)
	p := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
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
		p("retry\tattempt %d of slot %s, %s\n", r.Attempt, show.Moment(r.Slot.In(j.NextRun.Location())), show.Soon(r.At, now))
	}
	next := "-"
	if !j.NextRun.IsZero() && (j.Paused == nil || !j.Paused.Until.IsZero()) {
		next = show.Moment(j.NextRun)
	}
	p("next\t%s\n", next)
	did := "ROWS\tDEAD"
	if j.Command {
		did = "EXIT"
	} else {
		p("waiting\t%s\n", waiting(j))
		p("behind\t%s\n", paintLate(w, j, now))
		showOperations(p, j, now)
	}
	if len(runs) > 0 {
		p("\nSTARTED\tRESULT\tTRIGGER\tATTEMPT\t%s\tTOOK\tNODE\tRUN\tERROR\n", did)
	}
	for _, r := range runs {
		did := fmt.Sprintf("%d\t%d", r.Rows, r.Dead)
		if j.Command {
			did = exitCode(r)
		}
		p("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", show.Here(r.Started), painted(w, r.State), r.Trigger, r.Attempt, did,
			text.Duration(r.Duration.Duration()), r.NodeID, r.ID, cmp.Or(errorOrReason(r), "-"))
	}
	if j.Definition != "" {
		p("\ndefinition, as resolved:\n")
	}
	if err := w.Flush(); err != nil || j.Definition == "" {
		return err
	}
	for line := range strings.Lines(j.Definition) {
		if err := show.Say(out, "%s\n", strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// pausedSince returns a text that says why a job is paused, since when, and when or how the pause ends.
func pausedSince(j diagnose.Job) string {
	text := j.Paused.Reason + ", since " + show.Here(j.Paused.Since)
	if !j.Paused.Until.IsZero() {
		text += ", until " + show.Here(j.Paused.Until)
	}
	return text + "; " + j.EndsPause() + " ends the pause"
}

// nowRunning returns a text with the progress of a run that has not ended.
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

// soFar returns a text with the number of rows that a run has written so far.
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
