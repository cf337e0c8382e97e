package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/operate"
	"baton/internal/text"
)

func newJobRunCommand(e env) *cobra.Command {
	var out output
	var reason string
	var watch, force bool
	cmd := &cobra.Command{
		Use:   "run JOB",
		Short: "Have the leader run a job now",
		Long: "Have the leader run a job now, beside its schedule. It is refused if nobody leads (exit\n" +
			"code 3), if the job is paused, or if a run of it goes on and its overlap is forbid: --force\n" +
			"runs it all the same, and the history says so. It happens once, or not at all, whoever\n" +
			"leads meanwhile. With --watch it shows how far the run is until it has ended, and the exit\n" +
			"code is 1 if that was not well; Ctrl-C ends the watching, and not the run.",
		Example: "  baton job run users\n  baton job run users --watch\n  baton job run report --force --reason 'the last one hangs'",
		Args:    oneJob(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRemote(cmd, e, func(r operate.Operator) error {
				job := args[0]
				done, err := r.Do(cmd.Context(), operate.Order{Kind: operate.KindRun, By: userName(), Reason: reason, Job: job, Force: force})
				switch {
				case errors.Is(err, operate.ErrNobodyLeads):
					return nobodyRuns(cmd.Context(), r, job)
				case err != nil:
					return jobError(err)
				case watch:
					return watchRun(cmd.Context(), e.stdout, r, job, done.RunID, out)
				}
				return out.print(e.stdout, done, func(w io.Writer) error {
					if done.Queued {
						return say(w, "%s; baton job show %s tells how that goes\n", done.Text, job)
					}
					return say(w, "%s; baton job show %s tells how it ends\n", done.Text, job)
				})
			})
		},
	}
	addRemoteFlags(cmd, e)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show how far it is until it has ended")
	cmd.Flags().BoolVar(&force, "force", false, "whatever else of the job runs")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	jobNames(e).asArguments(cmd, 1)
	out.addFlag(cmd, e)
	return cmd
}

// nobodyRuns says that nobody leads who could do something about a job.
func nobodyRuns(ctx context.Context, r operate.Operator, name string) error {
	return noLeader(operate.Vacant(ctx, r, name))
}

// watchRun shows a run until it has ended, and answers with its result.
func watchRun(ctx context.Context, w io.Writer, r operate.Operator, job, id string, out output) error {
	command := operate.IsCommand(r.Configured(ctx), job)
	bar := progress{w: w, inPlace: isTerminal(w), command: command}
	ended, err := operate.WatchRun(ctx, r, job, id, func(now operate.JobRun) {
		if !out.data() {
			bar.show(now.Run, time.Now())
		}
	})
	bar.end()
	switch {
	case operate.Ended(err):
		return say(w, "no longer watching; run %s goes on, baton job show %s tells how it ends\n", id, job)
	case err != nil:
		return err
	}
	err = out.print(w, ended, func(w io.Writer) error {
		took := time.Duration(ended.Run.DurationMS) * time.Millisecond
		did := soFar(ended.Run)
		if ended.Run.ExitCode != nil || command {
			did = exit(ended.Run)
		}
		return say(w, "%s: %s in %s%s\n", ended.Run.State, did, text.Duration(took), perSecond(ended.Run.Rows, took))
	})
	if !ended.Succeeded() {
		return errors.Join(err, fmt.Errorf("run %s of job %q: %s: %s", ended.Run.ID, ended.Job, ended.Run.State, ended.Run.Error))
	}
	return err
}
