package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

func newStepDownCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var to, reason string
	var wait waitFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "stepdown",
		Short: "Hand the lead over, and wait for the successor",
		Long: "Order the leader to hand over: it starts no more runs, ends the runs in\n" +
			"progress, and releases the lock. Another node takes the lock at once: the node\n" +
			"of --to, or any node that is ready.",
		Example: "  baton stepdown\n  baton stepdown --to db2 --reason 'kernel upgrade'\n  baton stepdown --all-locks",
		Args:    noSuccessor,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithElection(cmd, e, func(r operate.Operator) error {
				o := operate.Order{Kind: operate.KindStepDown, By: cmdline.UserName(), Reason: reason, To: to, Wait: wait.limit()}
				if all {
					handed, err := operate.StepDownAll(cmd.Context(), r, o)
					if errors.Is(err, operate.ErrNoLeader) {
						err = cmdline.WithCode(cmdline.ExitNoLeader, err)
					}
					if handed == nil {
						return err
					}
					return errors.Join(err, out.Print(e.Stdout, handed, func(w io.Writer) error { return printHandovers(w, handed) }))
				}
				done, err := r.Do(cmd.Context(), o)
				if errors.Is(err, operate.ErrNoLeader) {
					return noneToStepDown(cmd.Context(), r)
				}
				if err != nil && (done.NodeID == "" || !out.Data()) {
					return err
				}
				return errors.Join(err, out.Print(e.Stdout, done, sentence(done)))
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&to, "to", "", "the `node` to hand over to (default: whichever is ready first)")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the event history")
	cmd.Flags().BoolVar(&all, "all-locks", false, "also hand over the separate locks of jobs")
	wait.addFlags(cmd, "the next term")
	cmdline.NodeNames(e).AsFlag(cmd, "to")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// noSuccessor rejects an argument, because a user could think that the argument names the node to step down, or its successor.
func noSuccessor(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return fmt.Errorf("only the leader can step down; to make %s the next leader: baton stepdown --to %[1]s", args[0])
	}
	return cmdline.NoArgs(cmd, args)
}

// noneToStepDown returns the error that no node leads, with the reason if there is one.
func noneToStepDown(ctx context.Context, r operate.Operator) error {
	s, err := r.Election(ctx)
	if err != nil || s.Leader != nil { // a node leads by now
		s.Vacancy = ""
	}
	return cmdline.NoLeader(s.LockKey, s.Vacancy)
}

func printHandovers(w io.Writer, all []operate.LockHandover) error {
	for _, h := range all {
		if h.From == "" {
			continue // the returned error gives the reason
		}
		if err := show.Say(w, "%s: %s\n", h.Lock, h.Text); err != nil {
			return err
		}
	}
	return nil
}

// sentence returns a function that prints the result of an order as a sentence.
func sentence(done operate.Outcome) func(io.Writer) error {
	return func(w io.Writer) error { return show.Say(w, "%s\n", done.Text) }
}
