package deadcmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

// How much of a long text a list shows, in characters.
const (
	reasonShown = 90
	recordShown = 60
)

func newDeadListCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var f deadFlags
	var n int
	var counted bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List dead letters, the newest first",
		Long: "List dead letters, the newest first: of all databases, also of jobs that are\n" +
			"not configured any more. --count counts them by job and reason instead. Long\n" +
			"texts are cut, but not with -o json; baton dead show has the whole letter.",
		Example: "  baton dead list --job users --since 1h\n  baton dead list --count\n" +
			"  baton dead list --text '\"city\":\"99\"' -n 1000 -o json",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if n < 1 {
				return cmdline.UsageError(fmt.Errorf("-n %d: want 1 at least", n))
			}
			return withDead(cmd, e, func(d operate.Operator) error {
				if counted {
					reasons, err := d.Reasons(cmd.Context(), f.LetterFilter)
					if errors.Is(err, operate.ErrDeadUsage) {
						return err
					}
					return errors.Join(out.Print(e.Stdout, reasons, func(w io.Writer) error { return printReasons(w, reasons) }), err)
				}
				f.Whole = out.Data()
				letters, err := d.Letters(cmd.Context(), f.LetterFilter, n)
				if errors.Is(err, operate.ErrDeadUsage) {
					return err
				}
				return errors.Join(out.Print(e.Stdout, readable(letters), func(w io.Writer) error {
					return printLetters(w, letters, n, err == nil)
				}), err)
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	f.add(cmd, e)
	cmdline.AddNumberFlag(cmd, &n, 50, "list at most so many")
	cmd.Flags().BoolVar(&counted, "count", false, "count them by job and reason instead")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printLetters(out io.Writer, letters []operate.Letter, most int, whole bool) error {
	if len(letters) == 0 {
		if !whole {
			return nil // the error names the missing ones
		}
		return show.Say(out, "no dead letters\n")
	}
	several := false
	for _, l := range letters {
		several = several || l.Database != letters[0].Database
	}
	w := show.NewTable(out)
	p := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
	in := func(database string) show.Shown {
		if several {
			return show.Shown(show.Clean(database) + "\t")
		}
		return ""
	}
	p("ID\tAT\t%sJOB\tREASON\tRECORD\n", in("DATABASE"))
	for _, l := range letters {
		p("%s\t%s\t%s%s\t%s\t%s\n", cmdline.ShortID(l.ID), show.Here(l.At), in(l.Database), l.Job,
			show.Plain(l.Error, reasonShown), show.Plain(l.Record, recordShown))
	}
	if err := w.Flush(); err != nil || len(letters) < most {
		return err
	}
	return show.Say(out, "These are the newest %d, there may be more: -n lists more, --count counts them.\n", most)
}

func printReasons(out io.Writer, reasons []operate.LetterReason) error {
	if len(reasons) == 0 {
		return show.Say(out, "no dead letters\n")
	}
	w := show.NewTable(out)
	p := func(format string, args ...any) { _ = show.Say(w, format, args...) }
	p("LETTERS\tJOB\tOLDEST\tNEWEST\tEXAMPLE\tREASON\n")
	for _, r := range reasons {
		p("%d\t%s\t%s\t%s\t%s\t%s\n", r.Letters, r.Job, show.Here(r.Oldest), show.Here(r.Newest),
			cmdline.ShortID(r.Example), show.Plain(r.Reason, 2*reasonShown))
	}
	return w.Flush()
}
