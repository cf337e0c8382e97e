package deadcmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
	"baton/internal/text"
)

func newDeadDropCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var f deadFlags
	var yes bool
	cmd := &cobra.Command{
		Args:    cobra.ArbitraryArgs,
		Use:     "drop ID... | --job JOB --all",
		Aliases: []string{"rm"},
		Short:   "Remove dead letters for good",
		Long: "Remove dead letters for good: the records are lost, unless their source still\n" +
			"has them. On a terminal it asks first; elsewhere it needs --yes. For a job\n" +
			"that is no longer configured, add --database. If one of the ids does not\n" +
			"exist, no letter is dropped and the exit code is 1.",
		Example: "  baton dead drop 3f2a9c41d07b --yes\n" +
			"  baton dead drop --job users --older-than 720h --yes\n" +
			"  baton dead drop --job old-job --database main --all --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return withDead(cmd, e, func(d operate.Operator) error {
				keys, err := f.which(cmd, d, args)
				if err != nil {
					return err
				}
				if len(keys) > 0 && !yes {
					question := fmt.Sprintf("Drop %s for good?", text.Count(len(keys), "dead letter"))
					if err := cmdline.Confirm(cmd.Context(), e, question); err != nil {
						return err
					}
				}
				line := show.NewCounter(e.Stderr)
				gone := 0
				dropped, err := d.Do(cmd.Context(), operate.Order{
					Kind: operate.KindDrop, By: cmdline.UserName(), Letters: keys,
					Progress: func(some operate.Outcome) {
						gone += int(some.Dropped)
						line.Show(gone, len(keys), "dropped")
					},
				})
				line.Clear()
				printed := out.Print(e.Stdout, map[string]int64{"dropped": dropped.Dropped}, func(w io.Writer) error {
					return show.Say(w, "%s dropped\n", text.Count(int(dropped.Dropped), "dead letter"))
				})
				return errors.Join(err, printed)
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	f.add(cmd, e)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the job")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmdline.LetterIDs(e).AsArguments(cmd, -1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}
