package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"baton/internal/operate"
)

func newDeadCommand(e env) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "dead",
		Short: "List, show, replay or drop records that did not fit their table",
		Long: "Records that did not fit their table wait in the job's database as dead letters, each\n" +
			"whole and with the reason. They are listed and dropped, or replayed once table, job or\n" +
			"record is mended. This works on any host that has the configuration; nobody has to lead.",
		Example: "  baton dead list --count\n  baton dead show 3f2a9c41d07b\n  baton dead replay --job users --all",
	}, newDeadListCommand(e), newDeadShowCommand(e), newDeadReplayCommand(e), newDeadDropCommand(e))
}

// deadFlags pick dead letters.
type deadFlags struct {
	operate.LetterFilter
	all bool
}

func (f *deadFlags) add(cmd *cobra.Command, e env) {
	flags := cmd.Flags()
	flags.StringVar(&f.Job, "job", "", "only those of this `job`")
	flags.DurationVar(&f.Within, "since", 0, "only those put aside within this `time`, such as 1h")
	flags.DurationVar(&f.Before, "older-than", 0, "only those put aside longer ago than this `time`, such as 720h")
	flags.StringVar(&f.Text, "text", "", "only those with this `text` in the record, which is JSON, or in the reason")
	f.addDatabase(cmd, e)
	jobNames(e).asFlag(cmd, "job")
}

func (f *deadFlags) addDatabase(cmd *cobra.Command, e env) {
	cmd.Flags().StringVar(&f.Database, "database", "", "look in this `database` only, by its name in the configuration (default: the job's, else all)")
	databaseNames(e).asFlag(cmd, "database")
}

func (f *deadFlags) check() error {
	for name, d := range map[string]time.Duration{"--since": f.Within, "--older-than": f.Before} {
		if d < 0 || d > 0 && d < time.Second {
			return usageError(fmt.Errorf("%s %v: want a second at least", name, d))
		}
	}
	return nil
}

// which are the letters that ids name, or else all that the flags pick. To mean all of a
// job it must be said.
func (f *deadFlags) which(cmd *cobra.Command, d operate.Operator, ids []string) ([]operate.LetterKey, error) {
	picks := f.Job != "" || f.Within > 0 || f.Before > 0 || f.Text != ""
	switch {
	case len(ids) > 0 && (picks || f.all):
		return nil, usageError(errors.New("give ids, or flags that pick dead letters, not both"))
	case len(ids) == 0 && f.Job == "":
		return nil, usageError(fmt.Errorf("which dead letters? Give their ids, or --job\nsee %s --help", cmd.CommandPath()))
	case len(ids) == 0 && !f.all && f.Within == 0 && f.Before == 0 && f.Text == "":
		return nil, usageError(fmt.Errorf("add --all to mean all dead letters of job %q, or --since, --older-than or --text", f.Job))
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

// letterOf is the one dead letter whose id is, or begins with, id.
func letterOf(ctx context.Context, d operate.Operator, id, database string) (operate.Letter, error) {
	letters, err := d.Letters(ctx, operate.LetterFilter{ID: id, Database: database, Whole: true}, 1)
	if err != nil {
		return operate.Letter{}, err
	}
	return letters[0], nil
}

// withDead does one command's work on the dead letters.
func withDead(cmd *cobra.Command, e env, work func(d operate.Operator) error) error {
	d, err := asksLetters(cmd, e)
	if err != nil {
		return err
	}
	err = work(d)
	if errors.Is(err, operate.ErrDeadUsage) {
		err = usageError(err)
	}
	if closing := d.Close(); closing != nil && err == nil {
		return closing
	}
	return err
}

// idShown is how much of an id is printed. It is more than enough to be the only one.
const idShown = 12

func shortID(id string) string { return id[:min(idShown, len(id))] }

// howFar is one line on a terminal that tells how far a long command is. Elsewhere it
// is nothing.
type howFar struct {
	w     io.Writer
	shown time.Time
	dirty bool
}

func newHowFar(w io.Writer) *howFar {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return &howFar{}
	}
	return &howFar{w: f, shown: time.Now()}
}

const howFarEvery = 200 * time.Millisecond

func (p *howFar) tell(done, all int, what string) {
	if p.w == nil || time.Since(p.shown) < howFarEvery {
		return
	}
	p.shown, p.dirty = time.Now(), true
	_ = say(p.w, "\r%d of %d %s\x1b[K", done, all, what)
}

// clear takes the line away before something else is printed.
func (p *howFar) clear() {
	if p.dirty {
		_ = say(p.w, "\r\x1b[K")
		p.dirty = false
	}
}
