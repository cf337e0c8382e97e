package direct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/sql"
	"baton/internal/operate"
)

// These are the outcomes of a replay.
const (
	ReplayWritten  = "written"    // the row is in the table, and the letter is removed
	ReplayMarked   = "marked"     // the next flush reads the row's hash, and the letter is removed
	ReplayDropped  = "dropped"    // the next pass of the scan writes the row, and the letter is removed
	ReplayAlready  = "already"    // the letter was replayed earlier
	ReplayGone     = "gone"       // the letter was dropped
	ReplayRefused  = "refused"    // the record still does not fit; the letter stays
	ReplayRowThere = "row_exists" // a row with the key exists, see operate.Order.Overwrite; the letter stays
	ReplayFailed   = "failed"     // it is unknown whether the record fits; the letter stays, or its row was written
)

// replayer writes the records of one job's dead letters.
type replayer struct {
	job     config.Job
	sink    *sql.Store
	mapping *mapping.Mapping // set if the source does not read a record again
	marker  marker           // set if the source reads a record again; nil if each of its passes reads everything
	failed  error
}

// marker is a source that can mark a row, so that the next flush reads the row again.
type marker interface {
	Mark(ctx context.Context, newID string, ids []string) error
}

// deal replays or drops dead letters, depending on the order.
func (d *deadLetters) deal(ctx context.Context, o operate.Order) (out operate.Outcome, err error) {
	keys := o.Letters
	if o.Letter != "" {
		l, err := d.find(ctx, o.Letter, o.Database)
		if err != nil {
			return out, err
		}
		keys = []operate.LetterKey{l.Key()}
	}
	for _, k := range keys {
		if d.dbs[k.Database] == nil {
			return out, fmt.Errorf("%w: there is no database %q in the configuration", operate.ErrDeadUsage, k.Database)
		}
	}
	if o.Progress == nil {
		o.Progress = func(operate.Outcome) {}
	}
	if o.Kind == operate.KindDrop {
		out.Dropped, err = d.drop(ctx, keys, o.Progress)
		out.Text = fmt.Sprintf("%d of %d dead letters dropped", out.Dropped, len(keys))
	} else {
		out, err = d.replayAll(ctx, keys, o)
	}
	out.Code = operate.CodeDone
	if len(keys) == 0 {
		out.Code = operate.CodeNothing
	}
	return out, err
}

// replayAll writes dead letters by the current mapping of their job, and returns the outcome of each letter. If a letter fails, it
// continues with the next letter. It stops when ctx ends. ErrDeadUsage means that the options do not fit the letters, and that nothing was
// changed.
func (d *deadLetters) replayAll(ctx context.Context, keys []operate.LetterKey, o operate.Order) (out operate.Outcome, err error) {
	for _, k := range keys {
		if err := d.allows(k, o); err != nil {
			return out, err
		}
	}
	ok := 0
	for _, k := range keys {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		r := operate.Replayed{LetterKey: k}
		r.Outcome, r.Text, err = d.replay(ctx, k, o)
		if err != nil {
			r.Outcome, r.Text = outcomeOf(err)
		}
		if r.OK = slices.Contains([]string{ReplayWritten, ReplayMarked, ReplayDropped, ReplayAlready}, r.Outcome); r.OK {
			ok++
		}
		out.Letters = append(out.Letters, r)
		o.Progress(operate.Outcome{Letters: []operate.Replayed{r}})
	}
	out.Text = fmt.Sprintf("%d of %d dead letters replayed", ok, len(keys))
	if len(out.Letters) == 1 {
		out.Text = out.Letters[0].Outcome + ": " + out.Letters[0].Text
	}
	return out, nil
}

func (d *deadLetters) allows(k operate.LetterKey, o operate.Order) error {
	j, ok := d.job(k.Job)
	switch {
	case !ok:
		return fmt.Errorf("%w: job %q of dead letter %.12s is not in the configuration, so its columns are unknown: "+
			"add it, or drop the letter", operate.ErrDeadUsage, k.Job, k.ID)
	case j.Flush.To.Database != k.Database:
		const why = "a replay writes the row and removes the letter in one transaction, so both must be in one database"
		return fmt.Errorf("%w: dead letter %.12s of job %q is in database %q, and the job writes to %q now: %s",
			operate.ErrDeadUsage, k.ID, k.Job, k.Database, j.Flush.To.Database, why)
	case len(o.Set) > 0 && rereads(j):
		return fmt.Errorf("%w: job %q is of type %s: its rows are copies of the values in Redis. "+
			"Correct the values in Redis, and replay the letter without new values", operate.ErrDeadUsage, k.Job, j.Flush.From.Type)
	}
	return nil
}

// rereads reports whether the source still contains the current state of the record.
func rereads(j config.Job) bool {
	return j.Flush.From.Kind().Delivers == spec.States
}

func outcomeOf(err error) (outcome, text string) {
	switch {
	case errors.Is(err, sql.ErrReplayed):
		return ReplayAlready, "it was already replayed"
	case errors.Is(err, sql.ErrNoLetter):
		return ReplayGone, "the dead letter no longer exists: it was replayed or dropped in the meantime"
	case errors.Is(err, sql.ErrRowThere):
		return ReplayRowThere, err.Error() + ": --overwrite replaces the row with the record"
	case errors.Is(err, sql.ErrStillRefused), errors.As(err, new(unfitRecordError)):
		return ReplayRefused, err.Error()
	case errors.Is(err, flush.ErrTransient):
		return ReplayFailed, err.Error() + "; replay it again: baton writes the record only once, however often you replay it"
	}
	return ReplayFailed, err.Error()
}

// unfitRecordError is the error of a record that cannot be turned into a row.
type unfitRecordError struct{ error }

func (e unfitRecordError) Unwrap() error { return e.error }

func (d *deadLetters) replay(ctx context.Context, k operate.LetterKey, o operate.Order) (outcome, text string, err error) {
	l, err := d.dbs[k.Database].Letter(ctx, k.ID)
	if err != nil {
		return "", "", err
	}
	r := d.replayer(ctx, k.Job)
	if r.failed != nil {
		return "", "", r.failed
	}
	switch {
	case r.marker != nil:
		return d.mark(ctx, r, l)
	case rereads(r.job): // open has checked that each pass of the source reads everything again
		_, err := r.sink.DropLetters(ctx, []string{l.ID})
		return ReplayDropped, "the next pass of the scan writes the value that Redis has then", err
	}
	row, err := r.row(l, o.Set)
	if err != nil {
		return "", "", err
	}
	err = r.sink.Replay(ctx, sql.Replay{
		ID: l.ID, Job: l.Job, Plan: r.mapping.Plan(), Row: row,
		Overwrite: o.Overwrite, Sum: r.sums(),
	})
	return ReplayWritten, "written to table " + r.job.Flush.To.Table, err
}

// mark marks the row, so that the next flush reads and writes it again, and only then drops the letter. If dropping the letter fails, a
// later replay flushes the row a second time, which changes nothing.
func (d *deadLetters) mark(ctx context.Context, r *replayer, l sql.Letter) (outcome, text string, err error) {
	record, err := row.ParseRecordJSON(nil, l.Record)
	if err != nil && record.Key == "" {
		return "", "", unfitRecordError{err}
	}
	id, err := site.NewID()
	if err != nil {
		return "", "", err
	}
	if err := r.marker.Mark(ctx, id, []string{record.Key}); err != nil {
		return "", "", err
	}
	_, err = r.sink.DropLetters(ctx, []string{l.ID})
	return ReplayMarked, fmt.Sprintf("the next flush writes row %q as it is in Redis then", record.Key), err
}

// sums reports whether replays result in the same rows in any order. If a replay sets a column instead of adding to it, the column must
// come from the key of a counter, because then its value is always the same.
func (r *replayer) sums() bool {
	if r.job.Flush.From.Kind().Delivers == spec.Increments {
		return true
	}
	p := r.mapping.Plan()
	for i, c := range p.Columns {
		if c.Op != row.OpAdd && !slices.Contains(p.Key, i) {
			return false
		}
	}
	return true
}

// row returns the row of a letter, built by the job's mapping. The argument set contains values that replace inputs of the record.
func (r *replayer) row(l sql.Letter, set map[string]*string) (row.Row, error) {
	inputs := r.mapping.Inputs()
	corrections := map[string]row.Raw{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !slices.Contains(inputs, name) {
			return row.Row{}, unfitRecordError{fmt.Errorf("job %q does not use the input %q: it uses %s",
				r.job.Name, name, strings.Join(inputs, ", "))}
		}
		if v := set[name]; v != nil {
			corrections[name] = row.Raw{Text: *v, OK: true}
		} else {
			corrections[name] = row.Raw{}
		}
	}
	record, err := row.RepairRecordJSON(inputs, l.Record, corrections)
	if _, was := row.ParseRecordJSON(inputs, l.Record); errors.Is(was, row.ErrUnreadRecord) && r.job.Flush.From.Kind().Watermark {
		return row.Row{}, unfitRecordError{errors.New("the counter in Redis was not a number, so no increment was lost: " +
			"correct the counter in Redis, where the next flush reads it, and drop the letter")}
	}
	switch {
	case errors.Is(err, row.ErrNoInput), errors.Is(err, row.ErrCutRecord), errors.Is(err, row.ErrUnreadRecord):
		return row.Row{}, unfitRecordError{fmt.Errorf("%w: give it with --set NAME=VALUE, or --set-null NAME", err)}
	case err != nil:
		return row.Row{}, unfitRecordError{err}
	}
	row, err := r.mapping.Row(record)
	if err != nil {
		return row, unfitRecordError{fmt.Errorf("%w: %w", sql.ErrStillRefused, err)}
	}
	return row, nil
}

// replayer returns the replayer of a job, and opens the job at the first call.
func (d *deadLetters) replayer(ctx context.Context, name string) *replayer {
	if r, ok := d.jobs[name]; ok {
		return r
	}
	r := &replayer{}
	d.jobs[name] = r
	r.job, _ = d.job(name)
	r.sink = d.dbs[r.job.Flush.To.Database]
	r.failed = r.open(ctx, d)
	return r
}

func (r *replayer) open(ctx context.Context, d *deadLetters) error {
	c, err := tasks.Flush(r.job, d.stores.Of(r.job))
	if err != nil {
		return err
	}
	if rereads(r.job) {
		sources, err := c.NewSources(nil)
		if err != nil {
			return err
		}
		var marks bool
		if r.marker, marks = sources[0].(marker); !marks && !r.job.Flush.From.Kind().Looks {
			return fmt.Errorf("job %q: its source cannot read a record again: this is a mistake in baton, please report it", r.job.Name)
		}
		return nil
	}
	table, err := r.sink.Table(ctx, c.Mapping.Table)
	if err != nil {
		return fmt.Errorf("read the catalogue of table %q: %w", c.Mapping.Table, err)
	}
	r.mapping, err = mapping.Compile(c.Mapping, table, c.Inputs)
	return err
}
