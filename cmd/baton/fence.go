package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate/direct"
	"baton/internal/text"
)

func newFenceCommand(e cmdline.Env) *cobra.Command {
	return cmdline.Parent(&cobra.Command{
		Use:   "fence",
		Short: "List the fences of the jobs, or reset refused ones",
		Long: "An epoch is a number that rises with every leader. A fence is the highest\n" +
			"epoch that has written for a job; the job's database refuses leaders with a\n" +
			"lower epoch. Epochs follow a clock. If an epoch is more than 30 days ahead,\n" +
			"baton refuses it: the job with that fence, or all jobs under that lock, do not\n" +
			"run until the epoch is reset.",
		Example: "  baton fence list\n  baton fence reset",
	}, newFenceListCommand(e), newFenceResetCommand(e))
}

func newFenceListCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the epochs of the locks and the fences of the jobs",
		Long: "List the locks' epochs in Redis and the jobs' fences in the databases, and\n" +
			"mark those that baton refuses. If a database does not answer, the others are\n" +
			"listed, and the exit code is 1.",
		Example: "  baton fence list\n  baton fence list -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cmdline.LoadConfig(cmd, e)
			if err != nil {
				return err
			}
			f, err := direct.ListFences(cmd.Context(), c)
			if len(f.Locks) == 0 {
				return err
			}
			return errors.Join(out.Print(e.Stdout, f, func(w io.Writer) error { return printFences(w, f) }), err)
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func newFenceResetCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var yes bool
	var reason string
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Reset the epochs and fences that are refused",
		Long: "Reset the epochs and fences that are more than 30 days ahead of Redis' clock,\n" +
			"and no others. First correct the wrong clock. The command takes the locks of\n" +
			"the affected jobs, as a node does, and waits until no earlier leader still\n" +
			"trusts its lease. These jobs do not run while the command waits. On a terminal\n" +
			"it asks first; elsewhere it needs --yes.",
		Example: "  baton fence reset\n  baton fence reset --yes --reason 'redis was restored from the wrong dump'",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cmdline.LoadConfig(cmd, e)
			if err != nil {
				return err
			}
			f, err := direct.ListFences(cmd.Context(), c)
			if err != nil {
				return err
			}
			reset := []direct.FenceState{}
			if f.Refused() {
				if !yes {
					const question = "Reset the refused epochs and fences? No job of their locks runs for about one lease."
					if err := errors.Join(printFences(e.Stderr, f), cmdline.Confirm(cmd.Context(), e, question)); err != nil {
						return err
					}
				}
				var done []direct.FenceState
				done, err = direct.ResetFences(cmd.Context(), c, direct.FencesOptions{
					Reason: breaker(reason), Version: version, Exit: e.Exit,
					Note: func(text string) { _ = show.Say(e.Stderr, "%s\n", text) },
				})
				reset = append(reset, done...)
			}
			return errors.Join(err, out.Print(e.Stdout, reset, func(w io.Writer) error {
				switch {
				case err != nil && len(reset) == 0:
					return nil
				case !f.Refused():
					return show.Say(w, "nothing to reset\n")
				}
				for _, r := range reset {
					// show.Say below returns the error if the output cannot be written.
					_ = show.Say(w, "job %s in database %s: the fence has epoch %d now\n", r.Job, r.Database, r.Epoch)
				}
				return show.Say(w, "%s reset\n", text.Count(len(reset), "fence"))
			}))
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the event `history`")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printFences(out io.Writer, f direct.Fences) error {
	w := show.NewTable(out)
	p := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
	verdict := func(refused bool) string {
		if refused {
			return "REFUSED"
		}
		return "ok"
	}
	p("LOCK\tEPOCH\tSTATE\n")
	for _, l := range f.Locks {
		p("%s\t%d\t%s\n", l.LockKey, l.Epoch, verdict(l.Refused))
	}
	if len(f.Fences) > 0 {
		p("\nJOB\tDATABASE\tEPOCH\tSTATE\tOWNER\n")
	}
	for _, s := range f.Fences {
		p("%s\t%s\t%d\t%s\t%s\n", s.Job, s.Database, s.Epoch, verdict(s.Refused), s.Owner)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
