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
	var wait waiting
	var all bool
	cmd := &cobra.Command{
		Use:   "stepdown",
		Short: "Hand the lead over, and wait for the successor",
		Long: "Order the leader to hand over: it starts nothing more, ends what runs, and\n" +
			"releases the lock. Another node takes it at once: the one that --to names, or\n" +
			"any that is ready. With --all-locks every lock of the configuration is handed\n" +
			"over, one after the other.",
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
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the event history")
	cmd.Flags().BoolVar(&all, "all-locks", false, "of the locks that jobs have of their own, too")
	wait.addFlags(cmd, "the next term")
	cmdline.NodeNames(e).AsFlag(cmd, "to")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// noSuccessor refuses arguments: a node there could be the one to step down, or its successor.
func noSuccessor(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return fmt.Errorf("it is always the leader that steps down; for %s to lead next: baton stepdown --to %[1]s", args[0])
	}
	return cmdline.NoArgs(cmd, args)
}

// noneToStepDown is the error that no node leads, with the reason if there is a known one.
func noneToStepDown(ctx context.Context, r operate.Operator) error {
	s, err := r.Election(ctx)
	if err != nil || s.Leader != nil { // one does by now
		s.Vacancy = ""
	}
	return cmdline.NoLeader(s.LockKey, s.Vacancy)
}

func printHandovers(w io.Writer, all []operate.LockHandover) error {
	for _, h := range all {
		if h.From == "" {
			continue // the error says why
		}
		if err := show.Say(w, "%s: %s\n", h.Lock, h.Text); err != nil {
			return err
		}
	}
	return nil
}

// sentence prints what an order came to.
func sentence(done operate.Outcome) func(io.Writer) error {
	return func(w io.Writer) error { return show.Say(w, "%s\n", done.Text) }
}
