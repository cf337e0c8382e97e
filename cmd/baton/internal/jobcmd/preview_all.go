package jobcmd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/operate/direct"
	"baton/internal/text"
)

// allFlags are the flags of a preview of all keys.
type allFlags struct {
	set, resume bool
	rate        int
}

// run makes a plan, and prints the changes that a pass over all keys would make.
func (f allFlags) run(e cmdline.Env, examples int, out show.Output, plan func(direct.PlanOptions) (direct.Plan, error)) error {
	told := time.Now()
	p, err := plan(direct.PlanOptions{
		Rate: f.rate, Examples: examples, Resume: f.resume,
		Progress: func(part float64, records, rows int64) {
			const seldom = 10 * time.Second
			if time.Since(told) > seldom {
				told = time.Now()
				// The error is ignored, because the process ends when its terminal is closed.
				_ = show.Say(e.Stderr, "%3.0f %%  %d records, %d rows\n", part*100, records, rows)
			}
		},
	})
	if err != nil {
		return cmdline.JobError(err)
	}
	if err := out.Print(e.Stdout, p, func(w io.Writer) error { return printPlan(w, p) }); err != nil {
		return err
	}
	if p.Stops {
		return cmdline.WithCode(cmdline.ExitFailure, nil)
	}
	return nil
}

// planKinds maps each kind of example to the change that a pass over all keys would make to the example's row.
var planKinds = map[string]string{"missing": "insert", "different": "change", "extra": "delete", "unfit": "dead letter"}

func printPlan(out io.Writer, p direct.Plan) error {
	w := show.NewTable(out)
	f := func(format string, args ...any) { _ = show.Say(w, format, args...) } // Flush returns a write error
	f("A pass over all keys of %s into table %s of database %s:\n\n", p.Keys, p.Table, p.Database)
	f("insert\t%s\n", text.Count(p.Insert, "row"))
	f("change\t%s\n", text.Count(p.Change, "row"))
	f("delete\t%s\n", text.Count(p.Delete, "row"))
	if p.Unfit > 0 {
		f("dead letter\t%s\n", text.Count(p.Unfit, "record"))
	}
	f("\ncompared\t%s, %s\n", text.Count(p.Records, "record"), text.Count(p.Rows, "row"))
	if p.Moving > 0 {
		f("moving\t%s\n", text.Count(p.Moving, "record"))
	}
	for i, one := range p.Examples {
		if i == 0 {
			f("\n")
		}
		f("%s\t%s\t%s\n", planKinds[string(one.Kind)], show.Plain(one.Key, widest), planExample(one))
	}
	for i, note := range p.Notes {
		if i == 0 {
			f("\n")
		}
		f("- %s\n", note)
	}
	if p.Stops {
		f("\nThe pass would stop and delete nothing: %d of %d rows are more than max_pct allows (%d %%).\n", p.Delete, p.Rows, p.MaxPct)
	}
	return w.Flush()
}

// planExample returns a text that says which columns of a row a pass over all keys would change, or why a record would be a dead letter.
func planExample(one direct.PlanExample) show.SafeText {
	if one.Why != "" {
		return show.SafeText(show.Clean(one.Why))
	}
	parts := make([]string, len(one.Columns))
	for i, c := range one.Columns {
		parts[i] = fmt.Sprintf("%s: %s becomes %s", c.Name, show.Plain(c.Table, widest), show.Plain(c.Redis, widest))
	}
	if one.Member != "" {
		parts = append([]string{"member " + show.Plain(one.Member, widest)}, parts...)
	}
	return show.SafeText(strings.Join(parts, ", "))
}
