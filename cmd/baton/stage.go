package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/operate/direct"
	"baton/internal/text"
)

func newStageCommand(e cmdline.Env) *cobra.Command {
	return cmdline.Parent(&cobra.Command{
		Use:   "stage",
		Short: "List or drop stages of jobs that are gone",
		Long: "A flush moves changes into a stage in Redis before it writes them to the\n" +
			"table. If the job or its key is removed from the configuration before the\n" +
			"write, no job flushes these changes until a job with the old table has the old\n" +
			"key again.",
		Example: "  baton stage list\n  baton stage drop changed:user",
	}, newStageListCommand(e), newStageDropCommand(e))
}

// withStages runs the function work with direct access to the stages in Redis.
func withStages(cmd *cobra.Command, e cmdline.Env, work func(r *direct.Site) error) error {
	r, err := cmdline.OpenOrAsk(cmd, e, cmdline.LoadConfig, direct.Open)
	if err != nil {
		return err
	}
	return errors.Join(work(r), r.Close())
}

func newStageListCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the stages that no job flushes",
		Example: "  baton stage list\n  baton stage list -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withStages(cmd, e, func(r *direct.Site) error {
				left, unknown := r.LeftStages(cmd.Context())
				return errors.Join(out.Print(e.Stdout, left, func(w io.Writer) error {
					// The text "none" would be wrong if some stages could not be read.
					return printStages(w, left, unknown == nil)
				}), unknown)
			})
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printStages(out io.Writer, left []diagnose.LeftStage, all bool) error {
	switch {
	case len(left) == 0 && all:
		return show.Say(out, "every stage has a job that flushes it\n")
	case len(left) == 0:
		return nil
	}
	w := show.NewTable(out)
	elsewhere := slices.ContainsFunc(left, func(s diagnose.LeftStage) bool { return s.Store != "" })
	if elsewhere {
		_ = show.Say(w, "STORE\t")
	}
	_ = show.Say(w, "KEY\tCHANGES\tSTAGED BY JOB\tBATCH\n") // Flush returns a write error
	for _, s := range left {
		if elsewhere {
			_ = show.Say(w, "%s\t", cmp.Or(s.Store, "redis"))
		}
		_ = show.Say(w, "%s\t%d\t%s\t%s\n", s.Key, s.Records, s.Job, s.BatchID)
	}
	return w.Flush()
}

func newStageDropCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var yes bool
	var store string
	cmd := &cobra.Command{
		Use:     "drop KEY",
		Aliases: []string{"rm"},
		Short:   "Remove a stage that no job flushes, for good",
		Long: "Remove a stage that no job flushes: its changes are lost. On a terminal it\n" +
			"asks first; elsewhere it needs --yes. No stage is dropped while a node runs\n" +
			"with another configuration.",
		Example: "  baton stage drop changed:user\n  baton stage drop changed:user --yes",
		Args:    cmdline.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStages(cmd, e, func(r *direct.Site) error {
				left, err := r.LeftStages(cmd.Context())
				at := slices.IndexFunc(left, func(s diagnose.LeftStage) bool { return s.Key == args[0] && s.Store == store })
				if at < 0 {
					return errors.Join(fmt.Errorf("there is no stage at %q: baton stage list shows all stages", args[0]), err)
				}
				s := left[at]
				if !yes {
					question := fmt.Sprintf("Drop %s of job %s for good? No table has them.", text.Count(int(s.Records), "change"), s.Job)
					if err := cmdline.Confirm(cmd.Context(), e, question); err != nil {
						return err
					}
				}
				if err := r.DropStage(cmd.Context(), s); err != nil {
					return err
				}
				return out.Print(e.Stdout, s, func(w io.Writer) error {
					return show.Say(w, "%s of job %s dropped\n", text.Count(int(s.Records), "change"), s.Job)
				})
			})
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmd.Flags().StringVar(&store, "store", "", "`name` of the store that contains the key (default redis)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}
