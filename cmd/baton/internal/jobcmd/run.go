package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
	"baton/internal/text"
)

func newJobRunCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var reason string
	var watch, force bool
	cmd := &cobra.Command{
		Use:   "run JOB",
		Short: "Run a job now, on the leader",
		Long: "Order the leader to run a job now, in addition to its schedule. The order is\n" +
			"refused if no node leads (exit code 3), if the job is paused, or if a run of\n" +
			"the job is in progress and the job's overlap is \"forbid\". --force runs the job\n" +
			"beside a run in progress, and the history says so. The job runs once or not at\n" +
			"all, even if another node takes over. --watch shows the progress until the run\n" +
			"has ended; the exit code is 1 if the run did not succeed. Ctrl-C stops\n" +
			"watching, but not the run.",
		Example: "  baton job run users\n  baton job run users --watch\n  baton job run report --force --reason 'the last one hangs'",
		Args:    cmdline.OneJob(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
				job := args[0]
				done, err := r.Do(cmd.Context(),
					operate.Order{Kind: operate.KindRun, By: cmdline.UserName(), Reason: reason, Job: job, Force: force})
				switch {
				case errors.Is(err, operate.ErrNoLeader):
					return nobodyRuns(cmd.Context(), r, job)
				case err != nil:
					return cmdline.JobError(err)
				case watch:
					return watchRun(cmd.Context(), e.Stdout, r, job, done.RunID, out)
				}
				return out.Print(e.Stdout, done, func(w io.Writer) error {
					if done.Queued {
						return show.Say(w, "%s; baton job show %s shows its progress\n", done.Text, job)
					}
					return show.Say(w, "%s; baton job show %s shows its result\n", done.Text, job)
				})
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show the progress until the run has ended")
	cmd.Flags().BoolVar(&force, "force", false, "run the job even while another run of it is in progress")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the history")
	cmdline.JobNames(e).AsArguments(cmd, 1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// nobodyRuns returns the error that no node leads under a job's lock.
func nobodyRuns(ctx context.Context, r operate.Operator, name string) error {
	return cmdline.NoLeader(operate.Vacant(ctx, r, name))
}

// watchRun shows a run until the run has ended, and returns the run's result as an error.
func watchRun(ctx context.Context, w io.Writer, r operate.Operator, job, id string, out show.Output) error {
	command := operate.IsCommand(r.Configured(ctx), job)
	bar := progress{w: w, inPlace: show.IsTerminal(w), command: command}
	ended, err := operate.WatchRun(ctx, r, job, id, func(now operate.JobRun) {
		if !out.Data() {
			bar.show(now.Run, time.Now())
		}
	})
	bar.end()
	switch {
	case operate.Ended(err):
		return show.Say(w, "no longer watching; run %s goes on, baton job show %s shows its result\n", id, job)
	case err != nil:
		return err
	}
	err = out.Print(w, ended, func(w io.Writer) error {
		took := ended.Run.Duration.Duration()
		did := soFar(ended.Run)
		if ended.Run.ExitCode != nil || command {
			did = exit(ended.Run)
		}
		return show.Say(w, "%s: %s in %s%s\n", ended.Run.State, did, text.Duration(took), perSecond(ended.Run.Rows, took))
	})
	if !ended.Succeeded() {
		return errors.Join(err, fmt.Errorf("run %s of job %q: %s: %s", ended.Run.ID, ended.Job, ended.Run.State, ended.Run.Error))
	}
	return err
}
