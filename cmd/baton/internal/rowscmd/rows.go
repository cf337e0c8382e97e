// Package rowscmd implements "baton rows", which lists the deleted rows that jobs with keep_deleted have kept, and puts them back.
package rowscmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate"
)

// New returns the command "baton rows".
func New(e cmdline.Env) *cobra.Command {
	return cmdline.Parent(&cobra.Command{
		Use:   "rows",
		Short: "List, show or put back rows that jobs have deleted",
		Long: "A job with keep_deleted keeps, in its database, the rows that it deletes, and\n" +
			"the rows that its first accepted pass overwrites, with their personal data.",
		Example: "  baton rows list --job users\n  baton rows show 12\n  baton rows undelete 12",
	}, newListCommand(e), newShowCommand(e), newUndeleteCommand(e))
}

// withRows runs the function work with an operator that uses the databases directly, or that asks a node.
func withRows(cmd *cobra.Command, e cmdline.Env, work func(o operate.Operator) error) error {
	o, err := cmdline.AsksLetters(cmd, e)
	if err != nil {
		return err
	}
	err = work(o)
	if errors.Is(err, operate.ErrDeadUsage) {
		err = cmdline.UsageError(err)
	}
	return errors.Join(err, o.Close())
}

// keyShown is the number of characters of a key that a list shows.
const keyShown = 60

func newListCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	var f operate.RowFilter
	var n int
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List deleted rows, the newest first",
		Long: "List the deleted rows that are kept, the newest first, also of removed jobs.\n" +
			"The column WHY shows \"missing\" (a change or a repair found no key), \"vanished\"\n" +
			"(a pass found no key) or \"adopted\" (an accepted pass overwrote the row). For a\n" +
			"row that an operator put back, it adds \"put back\". -o json omits texts above\n" +
			"16 KiB.",
		Example: "  baton rows list --job users --text '\"id\":7' -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 {
				return cmdline.UsageError(fmt.Errorf("-n %d: the number must be at least 1", n))
			}
			return withRows(cmd, e, func(o operate.Operator) error {
				rows, err := o.DeletedRows(cmd.Context(), f, n)
				if errors.Is(err, operate.ErrDeadUsage) || err != nil && rows == nil {
					return err
				}
				return errors.Join(out.Print(e.Stdout, rows, func(w io.Writer) error { return printRows(w, rows, err == nil) }), err)
			})
		},
	}
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().StringVar(&f.Job, "job", "", "only rows of this `job`")
	cmdline.JobNames(e).AsFlag(cmd, "job")
	cmd.Flags().StringVar(&f.Text, "text", "", "only rows whose JSON contains this `text`")
	addDatabase(cmd, e, &f.Database)
	cmdline.AddNumberFlag(cmd, &n, 50, "list at most this many")
	out.AddFlag(cmd, e.Getenv)
	return cmd
}

func addDatabase(cmd *cobra.Command, e cmdline.Env, database *string) {
	cmd.Flags().StringVar(database, "database", "", "only rows in this `database`")
	cmdline.DatabaseNames(e).AsFlag(cmd, "database")
}

func printRows(out io.Writer, rows []operate.DeletedRow, whole bool) error {
	if len(rows) == 0 {
		if !whole {
			return nil // the error names the databases that did not answer
		}
		return show.Say(out, "no deleted rows are kept\n")
	}
	w := show.NewTable(out)
	_ = show.Say(w, "ID\tAT\tDATABASE\tJOB\tTABLE\tWHY\tKEY\n") // Flush returns a write error
	for _, r := range rows {
		_ = show.Say(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.ID, show.Here(r.At), r.Database, r.Job, r.Table, why(r), show.Plain(r.Key, keyShown))
	}
	return w.Flush()
}

// why returns the text of the column WHY.
func why(r operate.DeletedRow) string {
	if r.PutBackAt.IsZero() {
		return r.Why
	}
	return r.Why + ", put back"
}

func newShowCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	return ofOne(e, &out, &cobra.Command{
		Use:     "show ID",
		Short:   "Show a whole deleted row",
		Example: "  baton rows show 12",
	}, func(cmd *cobra.Command, o operate.Operator, id int64, database string) error {
		rows, err := o.DeletedRows(cmd.Context(), operate.RowFilter{ID: id, Database: database}, 1)
		if err != nil {
			return err
		}
		return out.Print(e.Stdout, rows[0], func(w io.Writer) error { return printRow(w, rows[0]) })
	})
}

func printRow(w io.Writer, r operate.DeletedRow) error {
	var b bytes.Buffer
	if json.Indent(&b, []byte(r.Row), "", "  ") != nil {
		b.WriteString(r.Row)
	}
	until, back := "", ""
	if !r.KeepUntil.IsZero() { // a node of an older version does not send the time
		until = "until     " + show.Here(r.KeepUntil) + "\n"
	}
	if !r.PutBackAt.IsZero() {
		back = "put back  " + show.Here(r.PutBackAt) + "\n"
	}
	return show.Say(w, "id        %d\njob       %s\ndatabase  %s\ntable     %s\nkey       %s\nwhy       %s\nat        %s\nepoch     %d\n"+
		"%s%srow       %s\n\nTo put it back:  baton rows undelete %d\n",
		r.ID, r.Job, r.Database, r.Table, r.Key, r.Why, show.Here(r.At), r.Epoch, show.SafeText(until), show.SafeText(back),
		show.SafeText(strings.ReplaceAll(string(show.LinesOf(b.String())), "\n", "\n          ")), r.ID)
}

func newUndeleteCommand(e cmdline.Env) *cobra.Command {
	var out show.Output
	given := operate.Order{Kind: operate.KindUndelete, By: cmdline.UserName()}
	cmd := ofOne(e, &out, &cobra.Command{
		Use:   "undelete ID",
		Short: "Put a deleted row back into its table",
		Long: "Put a deleted row back into its table, as it was. baton refuses if the table\n" +
			"contains the key, or if Redis lacks the key and the job would therefore delete\n" +
			"the row again. The copy stays until its time is over, because the job may\n" +
			"overwrite the row. The event history shows who put the row back.",
		Example: "  baton rows undelete 12",
	}, func(cmd *cobra.Command, o operate.Operator, id int64, database string) error {
		given.Row, given.Database = id, database
		outcome, err := o.Do(cmd.Context(), given)
		if err != nil {
			return err
		}
		return out.Print(e.Stdout, outcome, func(w io.Writer) error { return show.Say(w, "%s\n", outcome.Text) })
	})
	cmd.Flags().StringVar(&given.Reason, "reason", "", "reason, for the history")
	return cmd
}

// ofOne completes the definition of a command that takes the id of one deleted row. The command calls the function do with this id.
func ofOne(
	e cmdline.Env, out *show.Output, cmd *cobra.Command,
	do func(cmd *cobra.Command, o operate.Operator, id int64, database string) error,
) *cobra.Command {
	var database string
	cmd.Args = cmdline.OneArg
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || id < 1 {
			return cmdline.UsageError(fmt.Errorf("%q is not the id of a deleted row: baton rows list shows the ids", args[0]))
		}
		return withRows(cmd, e, func(o operate.Operator) error { return do(cmd, o, id, database) })
	}
	cmdline.AddRemoteFlags(cmd, e)
	addDatabase(cmd, e, &database)
	out.AddFlag(cmd, e.Getenv)
	return cmd
}
