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
		Long: "A fence is the highest epoch that has written for a job, in the job's\n" +
			"database: older leaders are refused there. Epochs follow a clock. One that is\n" +
			"more than 30 days ahead was written by another program, or under a wrong\n" +
			"clock: baton refuses to count on from it, and that job, or all jobs under that\n" +
			"lock, stand still until it is reset.",
		Example: "  baton fence list\n  baton fence reset",
	}, newFenceListCommand(e), newFenceResetCommand(e))
}

func newFenceListCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the epochs of the locks and the fences of the jobs",
		Long: "List the epochs of the locks, which are in Redis, and the fences of the jobs,\n" +
			"which are in their databases, and mark those that are refused. Exit code 1 if\n" +
			"one of the databases does not answer; the others are listed.",
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
		Long: "Reset the epochs and fences that are more than 30 days ahead of Redis' clock;\n" +
			"no other is touched. First set right whatever clock is wrong. It takes the\n" +
			"locks of these jobs like a node, waits one lease, so that no earlier leader\n" +
			"trusts its own any more, and gives each fence its own epoch and owner; then\n" +
			"the nodes campaign again. The jobs of these locks do not run meanwhile. On a\n" +
			"terminal it asks first; elsewhere it wants --yes. With nothing to do the exit\n" +
			"code is 0.",
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
					const question = "Reset what is refused? No job of its lock runs for about one lease."
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
					// The last write returns the error.
					_ = show.Say(w, "job %s in database %s: the fence has epoch %d now\n", r.Job, r.Database, r.Epoch)
				}
				return show.Say(w, "%s reset\n", text.Count(len(reset), "fence"))
			}))
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the event `history`")
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
