package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/daemon"
)

// waiting are the flags of a command that waits for what it has asked.
type waiting struct {
	wait time.Duration
	not  bool
}

func (w *waiting) addFlags(cmd *cobra.Command, forWhat string) {
	cmd.Flags().DurationVar(&w.wait, "wait", 30*time.Second, "how long to wait for "+forWhat)
	cmd.Flags().BoolVar(&w.not, "no-wait", false, "ask, and do not wait")
}

func (w *waiting) limit() time.Duration {
	if w.not {
		return 0
	}
	return w.wait
}

func newPauseCommand(e env) *cobra.Command {
	var out output
	var reason string
	var wait waiting
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Have nobody lead, until resume",
		Long: "Have nobody lead: the leader starts nothing more, ends what runs and releases the lock,\n" +
			"and no node takes it until baton resume, whatever restarts meanwhile. The same goes for the\n" +
			"locks that jobs of the configuration have of their own. The pause is kept in Redis, with who\n" +
			"asked for it and why; every node shows it. Paused again, the election stays paused under the\n" +
			"new reason. Exit code 1 if somebody still leads after --wait.",
		Example: "  baton pause --reason 'database upgrade'\n  baton pause --reason 'restore of main' --wait 2m",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withElection(cmd, e, func(r daemon.Asked) error {
				p, err := r.Pause(cmd.Context(), by(reason), wait.limit())
				if err != nil {
					return err
				}
				return out.print(e.stdout, p, func(w io.Writer) error { return printPause(w, p, wait.limit() > 0) })
			})
		},
	}
	addRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for all who will wonder")
	wait.addFlags(cmd, "the leader to stop")
	out.addFlag(cmd, e)
	return cmd
}

func printPause(out io.Writer, p daemon.Paused, waited bool) error {
	now := "nobody led"
	switch {
	case p.Leader != "" && waited:
		now = fmt.Sprintf("nobody leads, %d ms after the order; %s did", p.TookMS, p.Leader)
	case p.Leader != "":
		now = p.Leader + " was told to stop"
	}
	if p.Already != "" {
		return say(out, "was paused already, %s; the reason is now: %s; %s\n", p.Already, p.Reason, now)
	}
	return say(out, "paused %s: %s\n", p.Reason, now)
}

func newResumeCommand(e env) *cobra.Command {
	var out output
	var reason string
	var wait waiting
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "End a pause: a node leads again at once",
		Long: "End a pause, of all locks: the nodes that stand by ask for them at once. Exit code 3 if\n" +
			"nobody leads after --wait; the pause has ended all the same. Without a pause it does nothing.",
		Example: "  baton resume\n  baton resume --reason 'upgrade done' --no-wait",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withElection(cmd, e, func(r daemon.Asked) error {
				d, err := r.Resume(cmd.Context(), by(reason), wait.limit())
				if errors.Is(err, daemon.ErrNoLeader) {
					return &exitError{exitNoLeader, err}
				}
				if err != nil {
					return err
				}
				return out.print(e.stdout, d, func(w io.Writer) error { return printResume(w, d) })
			})
		},
	}
	addRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the event history")
	wait.addFlags(cmd, "a node to lead")
	out.addFlag(cmd, e)
	return cmd
}

func printResume(out io.Writer, d daemon.Resumed) error {
	text := "resumed; it was paused " + d.Was
	switch {
	case d.Was == "":
		text = "was not paused"
	case d.Leader != "":
		text = fmt.Sprintf("resumed; it was paused %s; %s leads: epoch %d, %d ms after the order", d.Was, d.Leader, d.Epoch, d.TookMS)
	}
	return say(out, "%s\n", text)
}
