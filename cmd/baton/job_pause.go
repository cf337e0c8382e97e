package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
)

func newJobPauseCommand(e env) *cobra.Command {
	var out output
	var reason string
	cmd := &cobra.Command{
		Use:   "pause JOB",
		Short: "Have nobody run a job, until job resume",
		Long: "Have nobody run a job: its slots are missed until baton job resume, whoever leads. What\n" +
			"it would flush waits in Redis. A run that goes on is allowed to end, but one of @always\n" +
			"is ended. baton pauses a job by itself when more records of one batch do not fit than\n" +
			"dead_letters.per_batch allows, and when a stream has a gap: the reason says which.",
		Example: "  baton job pause users --reason 'new column'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRemote(cmd, e, func(r *daemon.Remote, _ string) error {
				p, err := r.PauseJob(cmd.Context(), args[0], by(reason))
				if err != nil {
					return jobError(err)
				}
				return out.print(e.stdout, p, func(w io.Writer) error {
					if p.Was != nil {
						_, err = fmt.Fprintf(w, "job %q was paused already, %s; the reason is now: %s\n", p.Job, p.Was.Reason, p.Reason)
					} else {
						_, err = fmt.Fprintf(w, "job %q is paused %s\n", p.Job, p.Reason)
					}
					return err
				})
			})
		},
	}
	addTargetFlags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for all who will wonder")
	out.addFlag(cmd)
	return cmd
}

func newJobResumeCommand(e env) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "resume JOB",
		Short: "End the pause of a job",
		Long: "End the pause of a job: it runs at its next slot, and one of @always at once. Slots that\n" +
			"have passed meanwhile are not run; baton job run does not wait for the next one. Without\n" +
			"a pause it does nothing.",
		Example: "  baton job resume users\n  baton job resume users && baton job run users --watch",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRemote(cmd, e, func(r *daemon.Remote, _ string) error {
				p, err := r.ResumeJob(cmd.Context(), args[0])
				if err != nil {
					return jobError(err)
				}
				return out.print(e.stdout, p, func(w io.Writer) error {
					if p.Was == nil {
						_, err = fmt.Fprintf(w, "job %q was not paused\n", p.Job)
					} else {
						_, err = fmt.Fprintf(w, "job %q is resumed; it was paused %s, for %s\n", p.Job, p.Was.Reason, short(time.Since(p.Was.Since)))
					}
					return err
				})
			})
		},
	}
	addTargetFlags(cmd)
	out.addFlag(cmd)
	return cmd
}
