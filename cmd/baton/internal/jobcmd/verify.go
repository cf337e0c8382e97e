package jobcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"baton/cmd/baton/internal/cmdline"
	"baton/cmd/baton/internal/show"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/text"
)

// operationFlags are the flags of "baton job verify" and "baton job backfill".
type operationFlags struct {
	show.Output
	order  operate.Order
	detach bool
}

func (f *operationFlags) add(cmd *cobra.Command, e cmdline.Env) {
	cmdline.AddRemoteFlags(cmd, e)
	cmd.Flags().IntVar(&f.order.Rate, "rate", 0,
		"limit the `keys` that Redis reads per second for this, including keys of other jobs; 0: no limit")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "give the order, but do not wait for the end")
	cmd.Flags().StringVar(&f.order.Reason, "reason", "", "reason, for the history")
	cmdline.JobNames(e).AsArguments(cmd, 1)
	f.AddFlag(cmd, e.Getenv)
}

// sampleFlag is the share of all keys to verify, written as "1%" or as "0.01".
type sampleFlag struct{ part *float64 }

func (s sampleFlag) String() string {
	if s.part == nil || *s.part == 0 {
		return ""
	}
	return strconv.FormatFloat(*s.part*100, 'g', -1, 64) + "%"
}
func (sampleFlag) Type() string { return "part" }
func (s sampleFlag) Set(given string) error {
	number, percent := strings.CutSuffix(given, "%")
	part, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		part /= 100
	}
	if err != nil || !(part > 0 && part <= 1) {
		return errors.New("must be a part of all keys such as 1%, above 0 % and up to 100 %")
	}
	*s.part = part
	return nil
}

func newJobVerifyCommand(e cmdline.Env) *cobra.Command {
	f := operationFlags{order: operate.Order{Kind: operate.KindVerify}}
	cmd := &cobra.Command{
		Use:   "verify JOB",
		Short: "Compare what Redis has with the rows of the table",
		Long: "Compare all keys of a job with all rows of its table. The leader compares them\n" +
			"while the job continues to run; after a takeover the next leader continues. A\n" +
			"verification changes nothing, unless you give --repair: then the job flushes\n" +
			"the differing keys again, and deletes no more rows than max_pct allows. The\n" +
			"exit code is 1 if anything differs. Ctrl-C stops watching; `baton job cancel`\n" +
			"stops the verification. A verification works for hashes, zset, scan and\n" +
			"capture.",
		Example: "  baton job verify users\n  baton job verify users --sample 1% -o json\n  baton job verify users --repair --rate 5000",
		Args:    cmdline.OneJob(e),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args[0]) },
	}
	cmd.Flags().Var(sampleFlag{&f.order.Sample}, "sample", "only this part of all keys, chosen by their hash, such as 1%")
	cmd.Flags().BoolVar(&f.order.Repair, "repair", false, "let the job flush the differing keys again")
	cmd.Flags().IntVar(&f.order.Examples, "examples", 0, "show this many differences of each kind; 0 means five")
	f.add(cmd, e)
	return cmd
}

func newJobBackfillCommand(e cmdline.Env) *cobra.Command {
	f := operationFlags{order: operate.Order{Kind: operate.KindBackfill}}
	cmd := &cobra.Command{
		Use:   "backfill JOB",
		Short: "Mark all keys that exist, so that the job flushes them",
		Long: "Mark every key of a job in Redis as changed, so that its next runs also flush\n" +
			"the data that was in Redis before baton was introduced. Repeating a backfill\n" +
			"does no harm. The leader marks the keys while the job continues to run; after\n" +
			"a takeover the next leader continues. Ctrl-C stops watching; `baton job\n" +
			"cancel` stops the backfill. A backfill works for hashes, zset and capture; a\n" +
			"scan, or a job of totals, reads everything in each run anyway. Rows that the\n" +
			"job never wrote stay unchanged until you run `baton job accept`.",
		Example: "  baton job backfill users\n  baton job backfill users --rate 2000 --detach",
		Args:    cmdline.OneJob(e),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, e, args[0]) },
	}
	f.add(cmd, e)
	return cmd
}

// run orders an operation, which is a verification or a backfill, and watches the operation until it ends.
func (f *operationFlags) run(cmd *cobra.Command, e cmdline.Env, name string) error {
	return cmdline.WithRemote(cmd, e, func(r operate.Operator) error {
		o := f.order
		o.Job, o.By = name, cmdline.UserName()
		done, err := r.Do(cmd.Context(), o)
		switch {
		case errors.Is(err, operate.ErrNoLeader):
			return nobodyRuns(cmd.Context(), r, name)
		case errors.Is(err, operate.ErrInvalid):
			return cmdline.UsageError(err)
		case err != nil:
			return cmdline.JobError(err)
		case f.detach || done.Code == operate.CodeNothing:
			return f.Print(e.Stdout, done, func(w io.Writer) error { return show.Say(w, "%s\n", done.Text) })
		}
		return f.watch(cmd.Context(), e, r, name, done.RunID)
	})
}

// watch shows an operation until the operation ends. It returns an error if the operation has failed or has found differences.
func (f *operationFlags) watch(ctx context.Context, e cmdline.Env, r operate.Operator, name, id string) error {
	bar := operationBar{w: e.Stderr, inPlace: show.IsTerminal(e.Stderr)}
	ended, err := operate.WatchOperation(ctx, r, name, id, func(now diagnose.Operation) { bar.show(now, time.Now()) })
	bar.end()
	switch {
	case operate.Ended(err):
		return show.Say(e.Stderr, "no longer watching; %s %s goes on, baton job show %s shows its result\n", f.order.Kind, id, name)
	case err != nil:
		return err
	}
	err = f.Print(e.Stdout, ended, func(w io.Writer) error { return printOperation(w, ended) })
	if ended.State != "succeeded" {
		return errors.Join(err, fmt.Errorf("%s %s of job %q: %s: %s", ended.Kind, id, name, ended.State, ended.Error))
	}
	return err
}

// operationBar shows the progress of an operation, which is a verification or a backfill. On a terminal it updates one line; otherwise it
// prints a line every few seconds.
type operationBar struct {
	w       io.Writer
	inPlace bool
	shown   time.Time
}

func (b *operationBar) show(o diagnose.Operation, now time.Time) {
	const seldom = 10 * time.Second
	if !b.inPlace && now.Sub(b.shown) < seldom {
		return
	}
	first := b.shown.IsZero()
	if b.shown = now; first && !b.inPlace {
		return // most operations end soon
	}
	full := int(o.Progress.Part * barWidth)
	bar := strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
	line := fmt.Sprintf("[%s] %3.0f %%  %s", bar, o.Progress.Part*100, operationSoFar(o))
	if b.inPlace {
		_ = show.Say(b.w, "\r\x1b[K%s", line) // the process ends when its terminal is closed
		return
	}
	_ = show.Say(b.w, "%s\n", line)
}

// end removes the progress line from the terminal.
func (b *operationBar) end() {
	if b.inPlace && !b.shown.IsZero() {
		_ = show.Say(b.w, "\r\x1b[K")
	}
}

// operationSoFar returns a text such as "1000 records, 2 missing".
func operationSoFar(o diagnose.Operation) string {
	v := o.Progress.Result
	if o.Kind == string(operate.KindBackfill) {
		return fmt.Sprintf("%d keys marked", v.Marked)
	}
	parts := []string{fmt.Sprintf("%d records", v.Records)}
	if v.Rows > 0 {
		parts = append(parts, fmt.Sprintf("%d rows", v.Rows))
	}
	return strings.Join(append(parts, differences(v)...), ", ")
}

func differences(v diagnose.Verified) (parts []string) {
	for _, of := range []struct {
		n    int64
		what string
	}{{v.Missing, "missing"}, {v.Different, "different"}, {v.Extra, "extra"}, {v.Unfit, "unfit"}} {
		if of.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", of.n, of.what))
		}
	}
	return parts
}

// printOperation prints how an operation, which is a verification or a backfill, ended.
func printOperation(w io.Writer, o diagnose.Operation) error {
	v := o.Progress.Result
	took := text.Duration(o.Finished.Sub(o.Started))
	if o.Kind == string(operate.KindBackfill) {
		return show.Say(w, "%s: %s marked in %s; the next runs flush them\n", o.State, text.Count(v.Marked, "key"), took)
	}
	found := strings.Join(differences(v), ", ")
	switch {
	case found != "":
	case o.State == "succeeded":
		found = "no differences"
	default:
		found = "the comparison is incomplete; no differences so far"
	}
	sample := ""
	if o.Sample > 0 {
		sample = fmt.Sprintf(" (a sample of %s)", sampleFlag{&o.Sample})
	}
	records, rows := text.Count(v.Records, "record"), text.Count(v.Rows, "row")
	if err := show.Say(w, "%s and %s compared in %s%s: %s\n", records, rows, took, sample, found); err != nil {
		return err
	}
	for _, d := range v.Examples {
		if err := printDifference(w, d); err != nil {
			return err
		}
	}
	if v.Moving > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%d records changed each time they were read, "+
			"so it is not known whether their rows are correct", v.Moving))
	}
	if v.Marked > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%d keys are marked: the next runs of the job flush them", v.Marked))
	}
	for _, note := range v.Notes {
		if err := show.Say(w, "note: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

func printDifference(w io.Writer, d diagnose.Difference) error {
	line := fmt.Sprintf("  %-9s  %s", d.Kind, difference(d))
	if d.Why != "" {
		line += ": " + d.Why
	}
	columns := make([]string, len(d.Columns))
	for i, c := range d.Columns {
		columns[i] = fmt.Sprintf("%s is %q in Redis and %q in the table", c.Name, c.Redis, c.Table)
	}
	if len(columns) > 0 {
		line += ": " + strings.Join(columns, "; ")
	}
	return show.Say(w, "%s\n", line)
}

// showOperations prints the operation that is in progress for a job, and the job's last verification.
func showOperations(p func(string, ...any), j diagnose.Job, now time.Time) {
	if o := j.Operation; o != nil && o.State == "running" {
		p("%s\t%.0f %% done, %s, on %s\n", o.Kind, o.Progress.Part*100, operationSoFar(*o), o.NodeID)
	}
	o := j.Verified
	if o == nil {
		return
	}
	found := strings.Join(differences(o.Progress.Result), ", ")
	if found == "" {
		found = "no differences"
	}
	p("verified\t%s: %s of %d records\n", text.Duration(now.Sub(o.Finished))+" ago", found, o.Progress.Result.Records)
	for _, d := range o.Progress.Result.Examples {
		p("\t%s %s\n", d.Kind, difference(d))
	}
}

// difference returns a text that names a record that differs, by its key and its member.
func difference(d diagnose.Difference) string {
	if d.Member == "" {
		return fmt.Sprintf("%q", d.Key)
	}
	return fmt.Sprintf("%q, member %q", d.Key, d.Member)
}
