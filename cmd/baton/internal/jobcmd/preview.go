package jobcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate/direct"
	"baton/internal/text"
)

// examples is the number of example records that a preview shows.
const examples = 10

func newJobPreviewCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var rows int
	var all allFlags
	var name string
	cmd := &cobra.Command{
		Use:   "preview [JOB]",
		Short: "Show what a job would do, without touching anything",
		Long: "Show what a run of the job would do now: its keys and the waiting changes, the\n" +
			"table that it would make, the mapping of each column, ten rows, and the\n" +
			"problems. The command needs no leader, and changes nothing. JOB is optional if\n" +
			"there is only one job. With --all it compares all keys with the table, and\n" +
			"shows how many rows a pass would insert, change and delete, with examples. The\n" +
			"exit code is 1 if there is a problem, or if the pass would stop.",
		Example: "  baton job preview users\n  baton job preview users -n 100 -o json\n  baton job preview users --all --rate 5000",
		Args:    cmdline.OneOrTheJob(e, &name),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cmdline.LoadConfig(cmd, e)
			if err != nil {
				return err
			}
			switch {
			case all.rate > 0 && !all.set:
				return cmdline.UsageError(errors.New("--rate can only be used with --all"))
			case all.resume && !all.set:
				return cmdline.UsageError(errors.New("--resume can only be used with --all"))
			}
			if all.set {
				return all.run(e, rows, out, func(o direct.PlanOptions) (direct.Plan, error) {
					return direct.PlanJob(cmd.Context(), c, name, o)
				})
			}
			p, err := direct.PreviewJob(cmd.Context(), c, name, rows)
			if err != nil {
				return cmdline.JobError(err)
			}
			if err := out.Print(e.Stdout, p, func(w io.Writer) error { return printPreview(w, p) }); err != nil {
				return err
			}
			if len(p.Problems) > 0 {
				return cmdline.WithCode(cmdline.ExitFailure, nil)
			}
			return nil
		},
	}
	cmdline.AddTargetFlags(cmd, e)
	cmdline.JobNames(e).AsArguments(cmd, 1)
	cmdline.AddNumberFlag(cmd, &rows, examples, "how many records to show; with --all, of each kind")
	cmd.Flags().BoolVar(&all.set, "all", false, "compare all keys with all rows, and show what a pass would do to the table")
	cmd.Flags().IntVar(&all.rate, "rate", 0, "with --all, read at most this many `keys` and rows per second; 0: no limit")
	cmd.Flags().BoolVar(&all.resume, "resume", false, "with --all, continue the last preview if it was interrupted")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func printPreview(out io.Writer, p direct.Preview) error {
	w := show.NewTable(out)
	f := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
	f("SOURCE\tWAITING\n")
	for _, s := range p.Shards {
		waiting := "?"
		switch {
		case s.BacklogUnknown != "":
			waiting = "unknown: " + text.OneLine(s.BacklogUnknown)
		case s.Backlog != nil:
			waiting = fmt.Sprint(*s.Backlog)
		}
		f("%s\t%s\n", s.Name, waiting)
	}
	f("\nTable %s of database %s", p.Table, p.Database)
	if p.Mode != "" {
		f(", %s", p.Mode)
	}
	f("\n")
	if p.DDL != "" {
		f("\nThe table is missing. The first run would make it:\n\n%s;\n", show.LinesOf(p.DDL))
	}
	if len(p.Columns) > 0 {
		f("\nCOLUMN\tTYPE\tFROM\tREAD AS\tOP\tMISSING\tEMPTY\n")
	}
	for _, c := range p.Columns {
		name := c.Name
		if c.Key {
			name += " (key)"
		}
		f("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, c.DBType, c.From, c.Read, c.Op, c.Missing, c.Empty)
	}
	previewRows(f, p)
	if len(p.Problems) > 0 {
		f("\nWrong:\n")
	}
	for _, problem := range p.Problems {
		f("- %s\n", problem)
	}
	return w.Flush()
}

func previewRows(f func(string, ...any), p direct.Preview) {
	if len(p.Columns) == 0 {
		return
	}
	if len(p.Rows) == 0 {
		f("\nNothing waits.\n")
		return
	}
	f("\n")
	for _, c := range p.Columns {
		f("%s\t", strings.ToUpper(c.Name))
	}
	f("\n")
	for _, r := range p.Rows {
		f("%s\n", previewRow(p.Columns, r))
	}
}

// widest is the maximum length of a shown value, in characters.
const widest = 40

func previewRow(columns []direct.PreviewColumn, r direct.PreviewRow) show.SafeText {
	if r.Error != "" {
		return show.SafeText("dead letter: " + show.Clean(r.Record))
	}
	var b strings.Builder
	for i := range columns {
		text := "NULL"
		switch v := r.Values[i]; {
		case v != nil:
			text = cmp.Or(show.Plain(*v, widest), "''")
		case r.Delete:
			text = ""
		}
		b.WriteString(text + "\t")
	}
	if r.Delete {
		b.WriteString("(the row is deleted)")
	}
	return show.SafeText(b.String())
}
