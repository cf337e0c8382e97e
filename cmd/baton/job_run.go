package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
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
			return withRemote(cmd, e, func(r daemon.Asked) error {
				run, err := r.RunJob(cmd.Context(), args[0], by(reason), force)
				switch {
				case errors.Is(err, daemon.ErrNoLeader):
					return nobodyRuns(cmd.Context(), r, args[0])
				case err != nil:
					return jobError(err)
				case watch:
					return watchRun(cmd.Context(), e.stdout, r, run, out)
				}
				return out.print(e.stdout, run, func(w io.Writer) error {
					if run.Queued {
						return say(w, "run %s of job %q waits for another one to end; baton job show %s tells how that goes\n", run.Run.ID, run.Job, run.Job)
					}
					return say(w, "run %s of job %q has begun on %s; baton job show %s tells how it ends\n", run.Run.ID, run.Job, run.Run.NodeID, run.Job)
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
func nobodyRuns(ctx context.Context, r daemon.Asked, name string) error {
	return noLeader(r.Vacant(ctx, name))
}

// watchRun shows a run until it has ended, and answers with its result.
func watchRun(ctx context.Context, w io.Writer, r daemon.Asked, run daemon.JobRun, out output) error {
	bar := progress{w: w, inPlace: isTerminal(w), command: r.IsCommand(run.Job)}
	ended, err := daemon.WatchRun(ctx, r, run.Job, run.Run.ID, func(now daemon.JobRun) {
		if !out.data() {
			bar.show(now.Run, time.Now())
		}
	})
	bar.end()
	switch {
	case daemon.Ended(err):
		return say(w, "no longer watching; run %s goes on, baton job show %s tells how it ends\n", run.Run.ID, run.Job)
	case err != nil:
		return err
	}
	err = out.print(w, ended, func(w io.Writer) error {
		took := time.Duration(ended.Run.DurationMS) * time.Millisecond
		did := soFar(ended.Run)
		if ended.Run.ExitCode != nil || r.IsCommand(ended.Job) {
			did = exit(ended.Run)
		}
		return say(w, "%s: %s in %s%s\n", ended.Run.State, did, text.Duration(took), perSecond(ended.Run.Rows, took))
	})
	if !ended.Succeeded() {
		return errors.Join(err, fmt.Errorf("run %s of job %q: %s: %s", ended.Run.ID, ended.Job, ended.Run.State, ended.Run.Error))
	}
	return err
}
