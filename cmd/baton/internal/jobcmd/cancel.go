package jobcmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

func newJobCancelCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var reason, run string
	cmd := &cobra.Command{
		Use:   "cancel JOB",
		Short: "Cancel the open runs of a job",
		Long: "Order the leader to end the runs of a job: a command gets SIGTERM, and after\n" +
			"the time \"grace\" SIGKILL; a flush stops after its current batch. Queued runs,\n" +
			"and the retry of a failed run, are also dropped. The schedule continues;\n" +
			"`baton job pause` stops it. The exit code is 1 if there was nothing to cancel,\n" +
			"and 3 if no node leads.",
		Example: "  baton job cancel report\n  baton job cancel report --run 0d6c… --reason 'wrong parameters'",
		Args:    cmdline.OneJob(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				job := args[0]
				done, err := r.Do(cmd.Context(),
					operate.Order{Kind: operate.KindCancel, By: cmdline.UserName(), Reason: reason, Job: job, RunID: run})
				switch {
				case errors.Is(err, operate.ErrNoLeader):
					return nobodyRuns(cmd.Context(), r, job)
				case err != nil:
					return cmdline.JobError(err)
				case done.Code == operate.CodeNothing && run != "":
					return fmt.Errorf("run %s of job %q is not open: nothing was cancelled; "+
						"baton job show %s lists open runs", run, job, job)
				case done.Code == operate.CodeNothing:
					return fmt.Errorf("job %q has no open run and no retry: nothing was cancelled", job)
				}
				return out.Print(e.Stdout, done, func(w io.Writer) error { return printCancelled(w, job, done) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&run, "run", "", "the ID of the run to end")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the history")
	cmdline.JobNames(e).AsArguments(cmd, 1)
	cmdline.RunIDs(e, true).AsFlag(cmd, "run")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printCancelled(w io.Writer, job string, done operate.Outcome) error {
	for _, id := range done.Runs {
		if err := show.Say(w, "run %s of job %q has the order to end; baton job history %s shows its result\n", id, job, job); err != nil {
			return err
		}
	}
	if done.Retry == 0 {
		return nil
	}
	return show.Say(w, "the pending attempt %d of job %q is dropped\n", done.Retry, job)
}
