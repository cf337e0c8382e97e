package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
	"baton/internal/text"
)

func newJobLogsCommand(e cmdline.Env) *cobra.Command {
	o := operate.JobLogs{}
	cmd := &cobra.Command{
		Use:   "logs [JOB]",
		Short: "Show the output of a job's command",
		Long: "Show the output of a job's command, standard output and standard error\n" +
			"together. If no run is in progress on any host, the last run's output is\n" +
			"shown. With -f the exit code is 0 if the run succeeded, otherwise 1; Ctrl-C\n" +
			"stops watching, but not the run. On a terminal all control characters except\n" +
			"colours are printed as text; elsewhere the output is unchanged. JOB is\n" +
			"optional if there is only one job.",
		Example: "  baton job logs report\n  baton job logs report -f\n  baton job logs report --tail 20 --run 3f0c…",
		Args:    cmdline.OneOrTheJob(e, &o.Job),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				o.Note = func(text string) { _ = show.Say(e.Stderr, "baton: %s\n", text) }
				run, err := showLogs(cmd.Context(), r, o, e.Stdout)
				switch {
				case o.Follow && operate.Ended(err):
					return nil
				case errors.Is(err, operate.ErrNoOutput):
					return cmdline.UsageError(err)
				case err != nil || !o.Follow:
					return cmdline.JobError(err)
				}
				return ended(run, o.Note)
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "show further output until the run has ended")
	cmd.Flags().StringVar(&o.RunID, "run", "", "the run's `ID`, as baton job show prints it (default: the open run, or else the last run)")
	cmdline.RunIDs(e, false).AsFlag(cmd, "run")
	cmd.Flags().IntVar(&o.Tail, "tail", -1, "begin with this `many` of the last lines (default: all kept lines)")
	return cmd
}

// showLogs writes the output of a job's program. If w is no terminal, the output is unchanged. On a terminal only the lines, tabs and
// colours of the output have an effect.
func showLogs(ctx context.Context, r operate.Operator, o operate.JobLogs, w io.Writer) (operate.JobRun, error) {
	if !show.IsTerminal(w) {
		return operate.ShowLogs(ctx, r, o, w)
	}
	screen := show.NewRaw(w)
	run, err := operate.ShowLogs(ctx, r, o, screen)
	return run, errors.Join(err, screen.End())
}

// ended prints how a run ended, and returns the run's result as an error.
func ended(run operate.JobRun, note func(string)) error {
	text := fmt.Sprintf("run %s of job %q: %s in %s", run.Run.ID, run.Job, run.Run.State,
		text.Duration(run.Run.Duration.Duration()))
	if run.Succeeded() {
		note(text)
		return nil
	}
	if run.Run.Error != "" {
		text += ": " + run.Run.Error
	}
	return errors.New(text)
}
