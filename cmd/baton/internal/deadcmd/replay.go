package deadcmd

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
	"baton/internal/text"
)

func newDeadReplayCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var f deadFlags
	var sets, nulls []string
	o := operate.Order{Kind: operate.KindReplay, By: cmdline.UserName()}
	cmd := &cobra.Command{
		Args:  cobra.ArbitraryArgs,
		Use:   "replay ID... | --job JOB --all",
		Short: "Write dead letters to their tables, each once",
		Long: "Write dead letters to their tables, by the present configuration of their job.\n" +
			"Each letter is written once, even if it is replayed several times, from\n" +
			"several hosts, or interrupted. A record that still does not fit stays a dead\n" +
			"letter. A record of a list or stream also stays a dead letter if its row is\n" +
			"already in the table, because that row may be newer. --overwrite replaces the\n" +
			"row. --set corrects a part of the record, --set-null removes a part; both\n" +
			"flags need a single letter.\n\n" +
			"The exit code is 1 if a letter was not written.",
		Example: "  baton dead replay 3f2a9c41d07b\n" +
			"  baton dead replay 3f2a9c41d07b --set age=41 --set-null nick\n" +
			"  baton dead replay --job page-views --all\n" +
			"  baton dead replay --job orders --text 'constraint \"orders_city_fkey\"'",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			var err error
			if o.Set, err = corrections(sets, nulls); err != nil {
				return cmdline.UsageError(err)
			}
			if len(o.Set) > 0 && len(args) != 1 {
				return cmdline.UsageError(errors.New("--set and --set-null correct one record: give the id of one dead letter"))
			}
			return withDead(cmd, e, func(d operate.Operator) error {
				keys, err := f.which(cmd, d, args)
				if err != nil {
					return err
				}
				o.Letters = keys
				return replayLetters(cmd, e, d, o, out)
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	f.add(cmd, e)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters of the job")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "correct the record: `NAME=VALUE`, a name as in baton dead show; may be repeated")
	cmd.Flags().StringArrayVar(&nulls, "set-null", nil, "correct the record: remove `NAME`; may be repeated")
	cmd.Flags().BoolVar(&o.Overwrite, "overwrite", false, "replace or delete the row of the same key, although that row may be newer")
	cmdline.LetterIDs(e).AsArguments(cmd, -1)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

// corrections returns the values that the flags --set and --set-null give for the inputs of a record. A nil value means NULL.
func corrections(sets, nulls []string) (map[string]*string, error) {
	all := map[string]*string{}
	for _, set := range sets {
		name, value, ok := strings.Cut(set, "=")
		if !ok {
			return nil, fmt.Errorf("--set %q: write NAME=VALUE", set)
		}
		all[name] = &value
	}
	for _, name := range nulls {
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("--set-null %s: --set sets %[1]s already", name)
		}
		all[name] = nil
	}
	return all, nil
}

// listedOneByOne is the maximum number of letters that are listed with one line each.
const listedOneByOne = 20

// replayLetters replays letters and prints the results. If there are few letters, it lists every letter, otherwise only the letters that
// could not be replayed.
func replayLetters(cmd *cobra.Command, e cmdline.Env, d operate.Operator, o operate.Order, out show.Output) error {
	results := []operate.Replayed{}
	ok, all := 0, len(o.Letters)
	line := show.NewCounter(e.Stderr)
	o.Progress = func(some operate.Outcome) {
		for _, r := range some.Letters {
			if r.OK {
				ok++
			}
			if results = append(results, r); !out.Data() && (!r.OK || all <= listedOneByOne) {
				line.Clear()
				_ = show.Say(e.Stdout, "%s  %s  %s: %s\n", cmdline.ShortID(r.ID), r.Job, r.Outcome, r.Text)
			}
		}
		line.Show(len(results), all, "replayed")
	}
	_, err := d.Do(cmd.Context(), o)
	line.Clear()
	if err != nil && len(results) == 0 {
		return err
	}
	printed := out.Print(e.Stdout, results, func(w io.Writer) error {
		if all == 0 {
			return show.Say(w, "no dead letters\n")
		}
		return show.Say(w, "%s replayed, %d not\n", text.Count(ok, "dead letter"), all-ok)
	})
	if err == nil && ok < all {
		err = cmdline.WithCode(cmdline.ExitFailure, nil)
	}
	return errors.Join(err, printed)
}
