package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

// waitFlags are the flags of a command that waits until its order takes effect.
type waitFlags struct {
	wait time.Duration
	not  bool
}

func (w *waitFlags) addFlags(cmd *cobra.Command, forWhat string) {
	cmd.Flags().DurationVar(&w.wait, "wait", 30*time.Second, "how long to wait for "+forWhat)
	cmd.Flags().BoolVar(&w.not, "no-wait", false, "give the order, and do not wait")
}

// limit returns the maximum wait, as an order contains it. A negative number means that the command does not wait.
func (w *waitFlags) limit() time.Duration {
	if w.not || w.wait <= 0 {
		return -1
	}
	return w.wait
}

func newPauseCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var reason string
	var wait waitFlags
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Pause the election: no node leads until resume",
		Long: "Pause the election: the leader starts no more runs, ends the runs in progress\n" +
			"and releases the lock. No node takes the lock until you run `baton resume`,\n" +
			"even after a restart. The pause also applies to the separate locks of jobs. If\n" +
			"the election is paused already, the new reason replaces the old one. The exit\n" +
			"code is 1 if a node still leads after --wait.",
		Example: "  baton pause --reason 'database upgrade'\n  baton pause --reason 'restore of main' --wait 2m",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithElection(cmd, e, func(r operate.Operator) error {
				o := operate.Order{Kind: operate.KindPause, By: cmdline.UserName(), Reason: reason, Wait: wait.limit()}
				done, err := r.Do(cmd.Context(), o)
				if err != nil {
					return err
				}
				return out.Print(e.Stdout, done, func(w io.Writer) error { return printPause(w, o, done) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, shown with the pause")
	wait.addFlags(cmd, "the leader to stop")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printPause(out io.Writer, o operate.Order, done operate.Outcome) error {
	now := "no node led"
	switch {
	case done.From != "" && done.Code == operate.CodeDone:
		now = fmt.Sprintf("no node leads, %d ms after the order; %s led before", done.Took.Milliseconds(), done.From)
	case done.From != "":
		now = done.From + " has the order to stop"
	}
	if done.Was != nil {
		return show.Say(out, "the election was paused already, %s; the reason is now: %s; %s\n", done.Was.Reason, o.Signature(), now)
	}
	return show.Say(out, "paused %s: %s\n", o.Signature(), now)
}

func newResumeCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var reason string
	var wait waitFlags
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End a pause: a node leads again at once",
		Long: "End the pause of all locks: the standby nodes campaign at once. The exit code\n" +
			"is 3 if no node leads after --wait, although the pause has ended. Without a\n" +
			"pause the command does nothing.",
		Example: "  baton resume\n  baton resume --reason 'upgrade done' --no-wait",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.WithElection(cmd, e, func(r operate.Operator) error {
				d, err := r.Do(cmd.Context(),
					operate.Order{Kind: operate.KindResume, By: cmdline.UserName(), Reason: reason, Wait: wait.limit()})
				if errors.Is(err, operate.ErrNoLeader) {
					return cmdline.WithCode(cmdline.ExitNoLeader, err)
				}
				if err != nil {
					return err
				}
				return out.Print(e.Stdout, d, func(w io.Writer) error { return printResume(w, d) })
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the event history")
	wait.addFlags(cmd, "a node to lead")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printResume(out io.Writer, d operate.Outcome) error {
	switch {
	case d.Was == nil:
		return show.Say(out, "the election was not paused\n")
	case d.NodeID == "":
		return show.Say(out, "resumed; it was paused %s\n", d.Was.Reason)
	}
	return show.Say(out, "resumed; it was paused %s; %s leads: epoch %d, %d ms after the order\n",
		d.Was.Reason, d.NodeID, d.Epoch, d.Took.Milliseconds())
}
