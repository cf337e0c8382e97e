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

func newJobHistoryCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var name string
	var n int
	cmd := &cobra.Command{
		Use:   "history [JOB]",
		Short: "Show a job's ended runs and missed slots",
		Long: "Show the last ended runs of a job, on any node, and its missed slots with the\n" +
			"reason, the newest first. Consecutive missed slots with the same reason share\n" +
			"one line. Consecutive runs of a flush that found nothing to do also share one\n" +
			"line, for up to an hour. -o json also contains the end of each run's output.\n" +
			"JOB is optional if there is only one job.",
		Example: "  baton job history report\n  baton job history report -n 100 -o json",
		Args:    cmdline.OneOrTheJob(e, &name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return cmdline.UsageError(fmt.Errorf("-n %d: must be above 0", n))
			}
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				entries, err := r.History(cmd.Context(), name, "", n)
				if err != nil {
					return cmdline.JobError(err)
				}
				return out.Print(e.Stdout, entries, func(w io.Writer) error {
					return printHistory(w, name, entries, r.Zone(cmd.Context(), name), operate.IsCommand(r.Configured(cmd.Context()), name))
				})
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	cmdline.AddNumberFlag(cmd, &n, 20, "how many entries to show")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printHistory(out io.Writer, name string, entries []operate.Entry, zone *time.Location, command bool) error {
	if len(entries) == 0 {
		return show.Say(out, "there is no record of job %q: no run has ended yet, or redis has lost its data\n", name)
	}
	w := show.NewTable(out)
	result := "ROWS"
	if command {
		result = "EXIT"
	}
	// Flush returns a write error.
	_ = show.Say(w, "WHEN (%s)\tTRIGGER\tATTEMPT\tSTATE\tTOOK\t%s\tNODE\tEPOCH\tERROR OR REASON\n", zone, result)
	for _, e := range entries {
		if m := e.Missed; m != nil {
			_ = show.Say(w, "%s\t-\t-\t%s\t-\t-\t%s\t%s\t%s\n",
				m.First.In(zone).Format(time.DateTime), painted(w, "missed"), m.NodeID, show.Epoch(m.Epoch), missedSlots(*m, zone))
			continue
		}
		r := *e.Run
		did := rows(r)
		if command {
			did = exitCode(r)
		}
		_ = show.Say(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Started.In(zone).Format(time.DateTime), r.Trigger, r.Attempt, painted(w, r.State),
			text.Duration(r.Duration.Duration()), did, r.NodeID, show.Epoch(r.Epoch), remark(r, zone))
	}
	return w.Flush()
}

// missedSlots returns a text such as "12 slots: overlap, 02:00 … 02:11".
func missedSlots(m operate.Missed, zone *time.Location) string {
	first, last := m.First.In(zone), m.Last.In(zone)
	clock := "15:04"
	if first.Second() != 0 || last.Second() != 0 {
		clock = time.TimeOnly
	}
	if m.Count == 0 {
		return fmt.Sprintf("there was no record of the job: it is new, or redis had lost its data; "+
			"its slots count from %s on", last.Format(clock))
	}
	text := "1 slot: " + m.Reason + ", " + first.Format(clock)
	if m.Count > 1 {
		end := clock
		if first.YearDay() != last.YearDay() || first.Year() != last.Year() {
			end = "2006-01-02 " + clock
		}
		text = fmt.Sprintf("%d slots: %s, %s … %s", m.Count, m.Reason, first.Format(clock), last.Format(end))
	}
	if m.Error != "" {
		text += ": " + show.FirstLine(m.Error)
	}
	return text
}

// rows returns a text that says how many rows a flush has written, deleted, and stored as dead letters.
func rows(r diagnose.Run) string {
	said := fmt.Sprint(r.Rows)
	if r.Deleted > 0 {
		said += fmt.Sprintf(", %d deleted", r.Deleted)
	}
	if r.Dead > 0 {
		said += fmt.Sprintf(", %d dead", r.Dead)
	}
	return said
}

// exitCode returns the exit code of a command, or "-" if it has none.
func exitCode(r diagnose.Run) string {
	if r.ExitCode == nil {
		return "-"
	}
	return fmt.Sprint(*r.ExitCode)
}

// exit returns a text with the exit code of a command.
func exit(r diagnose.Run) string {
	if r.ExitCode == nil {
		return "no exit code"
	}
	return fmt.Sprintf("exit code %d", *r.ExitCode)
}

// remark returns the last column of a run's line: the slot of the run, if the run began later than its slot, and [errorOrReason].
func remark(r diagnose.Run, zone *time.Location) string {
	why := errorOrReason(r)
	if r.Idle != nil {
		return fmt.Sprintf("%s, from the slot of %s on", why, r.Idle.First.In(zone).Format(time.DateTime))
	}
	if r.Slot.IsZero() || r.Started.Sub(r.Slot) < time.Second {
		return cmp.Or(why, "-")
	}
	slot := "for the slot of " + r.Slot.In(zone).Format(time.DateTime)
	if why == "" {
		return slot
	}
	return slot + ": " + why
}

// errorOrReason returns the error of a run, and the name of the user who asked for the run.
func errorOrReason(r diagnose.Run) string {
	var parts []string
	if r.Idle != nil {
		parts = append(parts, fmt.Sprintf("the last of %d runs that found nothing to do", r.Idle.Runs))
	}
	if r.Forced {
		parts = append(parts, "forced")
	}
	if r.By != "" {
		parts = append(parts, show.FirstLine(r.By))
	}
	text := strings.Join(parts, " ")
	switch {
	case r.Error == "":
		return text
	case text == "":
		return show.FirstLine(r.Error)
	}
	return fmt.Sprintf("%s (%s)", show.FirstLine(r.Error), text)
}
