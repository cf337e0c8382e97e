package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
)

func newStepDownCommand(e env) *cobra.Command {
	var out output
	var to, reason string
	var wait waiting
	var all bool
	cmd := &cobra.Command{
		Use:   "stepdown",
		Short: "Have the leader hand over, in order, and wait for its successor",
		Long: "Have the leader hand over: it starts nothing more, ends what runs, and releases the\n" +
			"lock. Another node takes it at once: the one that --to names, or any that is ready. With\n" +
			"--all-locks whoever leads hands over every lock of the configuration, one after the other.",
		Example: "  baton stepdown\n  baton stepdown --to db2 --reason 'kernel upgrade'\n  baton stepdown --all-locks",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withElection(cmd, e, func(r daemon.Asked) error {
				if all {
					handed, err := stepDownAll(cmd.Context(), r, to, orderedBy(reason), wait.limit())
					if handed == nil {
						return err
					}
					return errors.Join(err, out.print(e.stdout, handed, func(w io.Writer) error { return printHandovers(w, handed) }))
				}
				h, err := r.StepDown(cmd.Context(), to, orderedBy(reason), wait.limit())
				if errors.Is(err, daemon.ErrNoLeader) {
					return noneToStepDown(cmd.Context(), r)
				}
				if err != nil && (h.To == "" || !out.data()) {
					return err
				}
				return errors.Join(err, out.print(e.stdout, h, func(w io.Writer) error { return printHandover(w, h) }))
			})
		},
	}
	addRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&to, "to", "", "the `node` to hand over to (default: whichever is ready first)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the event history")
	cmd.Flags().BoolVar(&all, "all-locks", false, "of the locks that jobs have of their own, too")
	wait.addFlags(cmd, "the next term")
	nodeNames(e).asFlag(cmd, "to")
	out.addFlag(cmd, e)
	return cmd
}

func printHandover(w io.Writer, h daemon.Handover) error {
	if h.To == "" {
		return say(w, "%s was asked to step down\n", h.From)
	}
	return say(w, "%s leads after %s: epoch %d, %d ms after the order\n", h.To, h.From, h.Epoch, h.TookMS)
}

// noneToStepDown says that nobody leads, and why, as far as that is known.
func noneToStepDown(ctx context.Context, r daemon.Asked) error {
	leader, vacant, err := r.Leader(ctx)
	if err != nil || leader != nil { // somebody does by now
		vacant = ""
	}
	return noLeader(r.LockKey(), vacant)
}

// orderedBy says who asks, for those who read the event history later.
func orderedBy(reason string) string { return "asked " + by(reason) }

// by is "by alice: reason".
func by(reason string) string {
	who := "somebody"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if reason == "" {
		return "by " + who
	}
	return fmt.Sprintf("by %s: %s", who, reason)
}
