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

// reasonShown and recordShown limit, in characters, how much of a reason and of a record a list shows.
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
		Long: "List dead letters, the newest first, also of jobs that are no longer\n" +
			"configured. Long texts are cut, except with -o json.",
		Example: "  baton dead list --job users --since 1h\n  baton dead list --count\n" +
			"  baton dead list --text '\"city\":\"99\"' -n 1000 -o json",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if n < 1 {
				return cmdline.UsageError(fmt.Errorf("-n %d: must be 1 or more", n))
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
	cmdline.AddNumberFlag(cmd, &n, 50, "list at most this many")
	cmd.Flags().BoolVar(&counted, "count", false, "count dead letters by job and reason instead")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printLetters(out io.Writer, letters []operate.Letter, most int, whole bool) error {
	if len(letters) == 0 {
		if !whole {
			return nil // the error names the databases that did not answer
		}
		return show.Say(out, "no dead letters\n")
	}
	several := false
	for _, l := range letters {
		several = several || l.Database != letters[0].Database
	}
	w := show.NewTable(out)
	p := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
	in := func(database string) show.SafeText {
		if several {
			return show.SafeText(show.Clean(database) + "\t")
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
	return show.Say(out, "These are the newest %d dead letters; there may be more: -n lists more, --count counts all.\n", most)
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
