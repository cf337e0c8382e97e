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
		Long: "Show the output of a job's command, standard output and standard error in one:\n" +
			"of the open run, or else of the last one, on any host. -f goes on until the\n" +
			"run has ended, and prints its result: exit code 0 if it succeeded, else 1;\n" +
			"Ctrl-C ends the watching, and not the run. The last 256 KiB of each of the\n" +
			"last 20 runs are kept, without the secrets that the job names. On a terminal\n" +
			"control characters other than those of colours are shown, and have no effect;\n" +
			"elsewhere all is as the command wrote it. JOB may be left out where there is\n" +
			"just one.",
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
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "show what comes until the run has ended")
	cmd.Flags().StringVar(&o.RunID, "run", "", "the run's `ID`, as baton job show has it (default: the one that goes on, or the last)")
	cmdline.RunIDs(e, false).AsFlag(cmd, "run")
	cmd.Flags().IntVar(&o.Tail, "tail", -1, "begin with the last so `many` lines only (default: all that is kept)")
	return cmd
}

// showLogs writes the output of a program unchanged, for other programs. On a terminal only
// its lines, tabs and colours have an effect.
func showLogs(ctx context.Context, r operate.Operator, o operate.JobLogs, w io.Writer) (operate.JobRun, error) {
	if !show.IsTerminal(w) {
		return operate.ShowLogs(ctx, r, o, w)
	}
	screen := show.NewRaw(w)
	run, err := operate.ShowLogs(ctx, r, o, screen)
	return run, errors.Join(err, screen.End())
}

// ended says how a run has ended, and answers with its result.
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
