// Package deadcmd implements "baton dead", which shows and handles the dead letters of all jobs.
package deadcmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/operate"
)

// New returns the command "baton dead".
func New(e cmdline.Env) *cobra.Command {
	return cmdline.Parent(&cobra.Command{
		Use:   "dead",
		Short: "List, show, replay or drop dead letters",
		Long: "Dead letters are records that did not fit their table. They wait in the job's\n" +
			"database, each with the whole record and the reason. List or drop them, or\n" +
			"replay them after the table, job or record is fixed.",
		Example: "  baton dead list --count\n  baton dead show 3f2a9c41d07b\n  baton dead replay --job users --all",
	}, newDeadListCommand(e), newDeadShowCommand(e), newDeadReplayCommand(e), newDeadDropCommand(e))
}

// deadFlags are the flags that select dead letters.
type deadFlags struct {
	operate.LetterFilter
	all bool
}

func (f *deadFlags) add(cmd *cobra.Command, e cmdline.Env) {
	flags := cmd.Flags()
	flags.StringVar(&f.Job, "job", "", "only dead letters of this `job`")
	flags.DurationVar(&f.Within, "since", 0, "only dead letters newer than this `time`, such as 1h")
	flags.DurationVar(&f.Before, "older-than", 0, "only dead letters older than this `time`, such as 720h")
	flags.StringVar(&f.Text, "text", "", "only dead letters with this `text` in the record, which is JSON, or in the reason")
	f.addDatabase(cmd, e)
	cmdline.JobNames(e).AsFlag(cmd, "job")
}

func (f *deadFlags) addDatabase(cmd *cobra.Command, e cmdline.Env) {
	cmd.Flags().StringVar(&f.Database, "database", "",
		"only dead letters in this `database` (default: the job's, else all)")
	cmdline.DatabaseNames(e).AsFlag(cmd, "database")
}

func (f *deadFlags) check() error {
	for name, d := range map[string]time.Duration{"--since": f.Within, "--older-than": f.Before} {
		if d < 0 || d > 0 && d < time.Second {
			return cmdline.UsageError(fmt.Errorf("%s %v: must be at least a second", name, d))
		}
	}
	return nil
}

// which returns the keys of the letters with the given ids. If no ids are given, it returns the keys of all letters that the flags select.
// To select all letters of a job, the user must give a separate flag.
func (f *deadFlags) which(cmd *cobra.Command, d operate.Operator, ids []string) ([]operate.LetterKey, error) {
	picks := f.Job != "" || f.Within > 0 || f.Before > 0 || f.Text != ""
	switch {
	case len(ids) > 0 && (picks || f.all):
		return nil, cmdline.UsageError(errors.New("give ids, or flags that pick dead letters, not both"))
	case len(ids) == 0 && f.Job == "":
		return nil, cmdline.UsageError(fmt.Errorf("which dead letters? Give their ids, or --job\nsee %s --help", cmd.CommandPath()))
	case len(ids) == 0 && !f.all && f.Within == 0 && f.Before == 0 && f.Text == "":
		return nil, cmdline.UsageError(
			fmt.Errorf("add --all for all dead letters of job %q, or --since, --older-than or --text for some", f.Job))
	case len(ids) == 0:
		return d.LetterKeys(cmd.Context(), f.LetterFilter, math.MaxInt)
	}
	var keys []operate.LetterKey
	for _, id := range ids {
		l, err := letterOf(cmd.Context(), d, id, f.Database)
		if err != nil {
			return nil, err
		}
		keys = append(keys, l.Key())
	}
	return keys, nil
}

// letterOf returns the only dead letter whose id begins with id.
func letterOf(ctx context.Context, d operate.Operator, id, database string) (operate.Letter, error) {
	letters, err := d.Letters(ctx, operate.LetterFilter{ID: id, Database: database, Whole: true}, 1)
	if err != nil {
		return operate.Letter{}, err
	}
	return letters[0], nil
}

// withDead runs the function work with the operator for dead letters.
func withDead(cmd *cobra.Command, e cmdline.Env, work func(d operate.Operator) error) error {
	d, err := cmdline.AsksLetters(cmd, e)
	if err != nil {
		return err
	}
	err = work(d)
	if errors.Is(err, operate.ErrDeadUsage) {
		err = cmdline.UsageError(err)
	}
	if closing := d.Close(); closing != nil && err == nil {
		return closing
	}
	return err
}
