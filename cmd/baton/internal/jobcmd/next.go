package jobcmd

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
	"baton/internal/text"
)

// mostSlots is the maximum number of slots that "baton job next" lists.
const mostSlots = 1000

func newJobNextCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var name string
	var n int
	var from string
	cmd := &cobra.Command{
		Use:   "next [JOB]",
		Short: "List the next slots of a job",
		Long: "List the next slots of a job (the times of its schedule) in its time zone, the\n" +
			"start with jitter, and the effect of daylight saving. The command reads only\n" +
			"the configuration, so it ignores pauses. JOB is optional if there is only one\n" +
			"job.",
		Example: "  baton job next report\n  baton job next report -n 100 -o json\n  baton job next report --from 2027-03-27",
		Args:    cmdline.OneOrTheJob(e, &name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || n > mostSlots {
				return cmdline.UsageError(fmt.Errorf("-n %d: must be from 1 to %d", n, mostSlots))
			}
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				now := time.Now()
				if from != "" {
					var err error
					if now, err = parseFrom(from, r.Zone(cmd.Context(), name)); err != nil {
						return cmdline.UsageError(err)
					}
				}
				coming, err := r.Next(cmd.Context(), name, now, n)
				if err != nil {
					return cmdline.JobError(err)
				}
				coming.Shifts = nil // each slot already has its note
				return out.Print(e.Stdout, coming, func(w io.Writer) error { return printNext(w, coming, now) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	cmdline.AddNumberFlag(cmd, &n, 10, "number of slots")
	cmd.Flags().StringVar(&from, "from", "",
		"slots after this `time`, in the job's zone: 2027-03-28, \"2027-03-28 02:30\", or RFC 3339 (default now)")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// parseFrom parses a time in one of the usual formats. A time without a zone is in the given zone.
func parseFrom(text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{
		time.RFC3339, time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05",
	} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--from %q is no time: write 2027-03-28, \"2027-03-28 02:30\" or 2027-03-28T02:30:00+01:00", text)
}

func printNext(out io.Writer, c operate.Coming, now time.Time) error {
	if c.Always {
		return show.Say(out, "%s: %s: it has no slots, and is started again whenever it ends\n", c.Job, c.Words)
	}
	head := c.Job + ": " + c.Words
	if c.Offset > 0 {
		head += fmt.Sprintf(", started %s after each slot by its jitter", text.Duration(c.Offset.Duration()))
	}
	if err := show.Say(out, "%s\n", head); err != nil {
		return err
	}
	w := show.NewTable(out)
	p := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
	starts := c.Offset > 0
	if p("SLOT\tIN\t"); starts {
		p("STARTS\t")
	}
	if slices.ContainsFunc(c.Next, func(s operate.ComingSlot) bool { return s.Note != "" }) {
		p("NOTE")
	}
	for _, s := range c.Next {
		if p("\n%s\t%s\t", show.SlotTime(s.Slot), text.Duration(s.Start.Sub(now))); starts {
			p("%s\t", show.ClockTime(s.Start))
		}
		p("%s", s.Note)
	}
	p("\n")
	return w.Flush()
}
