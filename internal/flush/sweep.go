package flush

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// sweepRows is the maximum number of rows that one transaction of a sweep deletes.
const sweepRows = 1000

// ErrTooManyVanished means that more rows have vanished than one sweep may delete. A row has vanished if its record is gone from the
// source.
var ErrTooManyVanished = errors.New("flush: too many rows have vanished")

// TooManyVanishedError contains the numbers of rows that led to an ErrTooManyVanished. It matches ErrTooManyVanished.
type TooManyVanishedError struct {
	Source, Table string
	Stale, All    int64 // rows that the pass did not find, among the rows written by passes
	MaxPct        int
	// Deleted is the number of rows that were deleted before the sweep found too many.
	Deleted int64
	// Again means that every later run would begin with the same pass, so a run is useless until an operator has made a decision.
	Again bool
}

func (e *TooManyVanishedError) Error() string {
	stays := "no row was deleted"
	if e.Deleted > 0 {
		stays = fmt.Sprintf("only %d rows were deleted", e.Deleted)
	}
	return fmt.Sprintf("a complete pass did not find the records of %d of %d rows of table %q in %s, but max_pct allows "+
		"%d %%, so %s. Check the key's pattern and the Redis server and database number. Was Redis emptied (FLUSHDB), or restarted "+
		"without its data? "+
		"To delete the rows, raise max_pct for one run", e.Stale, e.All, e.Table, e.Source, e.MaxPct, stays)
}

// Is makes errors.Is(err, ErrTooManyVanished) true.
func (e *TooManyVanishedError) Is(target error) bool { return target == ErrTooManyVanished }

// Sweeper is a Source that reads all of its data in each pass. A record that a pass did not find has vanished, or was added during the
// pass.
type Sweeper interface {
	Source
	// Finds fails unless StillMissing can search for records with only these inputs.
	Finds(inputs []string) error
	// Pass returns the InputGeneration of the last pass, once Read has returned without an error. If the pass may have missed records that
	// existed all the time, missed is the reason.
	Pass(s Stage) (generation int64, missed error)
	// StillMissing returns which of the records do not exist now.
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
}

// StaleFinder is a Sink that can find rows by the pass that wrote them last. A pass has a number, its generation. The first columns of the
// plan are the key, in the order of its index. The last column is the generation. If the generation is NULL, or not above 0, no pass has
// written the row, and StaleFinder never reports it.
type StaleFinder interface {
	Sink
	// CountStale counts the rows of passes other than the current one, and the rows of all passes.
	CountStale(ctx context.Context, p *row.Plan, current int64) (stale, all int64, err error)
	// StaleRows reads rows of passes other than the current one, as texts in the order of the plan's columns. It returns the next rows
	// after the key in the argument behind, in key order, or the first rows if behind is nil. At the end of the table it returns none.
	StaleRows(ctx context.Context, p *row.Plan, current int64, behind []row.Value, limit int) ([][]string, error)
}

// vanished finds and deletes the vanished rows of a job.
type vanished struct {
	*mapping.Vanished
	finder  StaleFinder // nil: the sweep searches for the records of all rows, see sweepKeys
	lister  KeyLister
	empties bool // a row with NULL in all columns but its key counts as vanished
}

// live returns the rows that have a value outside of their key.
func (v *vanished) live(texts [][]string) [][]string {
	return slices.DeleteFunc(texts, func(one []string) bool { return !v.Live(one) })
}

// records returns the records from which the rows with these texts were made.
func (v *vanished) records(texts [][]string) []row.Record {
	records := make([]row.Record, len(texts))
	for i := range texts {
		records[i] = v.Record(texts[i])
	}
	return records
}

// searcher is a Source that can search again for given records.
type searcher interface {
	Source
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
}

// compileSweep prepares the sweep. It refuses a job whose stale rows have too few inputs to search for their records. It returns nil for a
// job that keeps vanished rows.
func (p *Pipeline) compileSweep(m *mapping.Mapping, sources []Source) (*vanished, error) {
	if p.cfg.VanishedPct == 0 {
		return nil, nil
	}
	if p.cfg.Inputs.Guarantee == row.ByChanges {
		return p.compileKeySweep(m, sources)
	}
	if p.cfg.Mapping.Generation == "" {
		return nil, fmt.Errorf("table %q: `vanished: delete` needs `generation`, a column that tells which rows the last scan has found",
			m.Plan().Table.Name)
	}
	finder, ok := p.cfg.Sink.(StaleFinder)
	if !ok {
		return nil, errors.New("`vanished: delete` needs a database that can find rows by their generation")
	}
	v, inputs, err := m.Vanished(p.cfg.Mapping.Generation)
	if err != nil {
		return nil, err
	}
	return &vanished{Vanished: v, finder: finder}, allFind[Sweeper](v, inputs, sources, "vanished: delete")
}

// allFind returns an error if one of the sources cannot search for records with only these inputs.
func allFind[S interface{ Finds(inputs []string) error }](v *mapping.Vanished, inputs []string, sources []Source, setting string) error {
	for _, source := range sources {
		finder, ok := any(source).(S)
		if !ok {
			return fmt.Errorf("`%s` needs a source of type scan or capture, because it must read all keys; %s is "+
				"neither", setting, source.Name())
		}
		if err := finder.Finds(inputs); err != nil {
			return fmt.Errorf("table %q: `%s` has to find the record of a row by its `key` (%s): %w",
				v.Plan().Table.Name, setting, v.KeyText(), err)
		}
	}
	return nil
}

// sweep deletes the rows whose records a complete pass over the source did not find, if the job is configured to delete them. It begins
// when all pages of the pass are committed.
//
// sweep deletes a row only under three conditions. A second search, right before the deletion, must also not find the record. The row must
// have the same generation as when it was found. The fence must still be ours. If the record appears after the second search, the row is
// missing until the next pass writes it again.
func (r *run) sweep(ctx context.Context, source Source, stage Stage) error {
	v := r.vanished
	if v == nil {
		return nil
	}
	if v.finder == nil {
		return r.sweepKeys(ctx, source, stage)
	}
	sweeper := source.(Sweeper) // checked by compileSweep
	if err := ended(ctx); err != nil {
		return err
	}
	generation, missed := sweeper.Pass(stage)
	if missed != nil {
		r.note(fmt.Sprintf("%s: skipped deleting vanished rows, because this pass may have missed keys: %v", source.Name(),
			missed))
		return nil
	}
	since := int64(1)
	var err error
	if stage.changeLimit != nil {
		since, err = r.checkGuarded(ctx, sweeper, stage.changeLimit, generation)
	} else {
		err = r.checkShare(ctx, source, generation, -1)
	}
	if err != nil {
		return err
	}
	began := time.Now()
	return r.eachStale(ctx, generation, since, func(texts [][]string) error { return r.sweepPage(ctx, sweeper, texts, began) })
}

// checkShare returns an error if more than max_pct of the rows would be deleted. The argument vanished is the number of rows to delete. If
// it is negative, all rows that other passes have written are to be deleted.
func (r *run) checkShare(ctx context.Context, source Source, generation, vanished int64) error {
	v := r.vanished
	type counts struct{ stale, all int64 }
	n, err := retry(ctx, r.cfg.Retry, func() (n counts, err error) {
		n.stale, n.all, err = v.finder.CountStale(ctx, v.Plan(), generation)
		return n, err
	})
	if err != nil {
		return fmt.Errorf("count the rows of table %q that have vanished: %w", r.cfg.Mapping.Table, err)
	}
	if vanished >= 0 {
		n.stale = vanished
	}
	if n.stale*100 > n.all*int64(r.cfg.VanishedPct) {
		return &TooManyVanishedError{Source: source.Name(), Table: r.cfg.Mapping.Table, Stale: n.stale, All: n.all,
			MaxPct: r.cfg.VanishedPct}
	}
	return nil
}

// sweepPage searches for the records of stale rows once more, and deletes the rows whose records are still missing.
func (r *run) sweepPage(ctx context.Context, source searcher, texts [][]string, began time.Time) error {
	missing, err := r.missing(ctx, source, r.vanished.records(texts))
	if err != nil {
		return err
	}
	return r.deleteVanished(ctx, source, missing, began)
}

// deleteVanished deletes the rows of records that are missing.
func (r *run) deleteVanished(ctx context.Context, source Source, missing []row.Record, began time.Time) error {
	if len(missing) == 0 {
		return nil
	}
	v, plan := r.vanished, r.vanished.Plan()
	compare, made := v.Compare, v.Row
	if v.empties {
		plan, compare = r.m.Plan(), r.m.Plan().CompareKeys
		made = func(record row.Record) (row.Row, error) {
			one, _, err := r.cfg.OnMissing.Row(r.m, record)
			return one, err
		}
	}
	// The ID is the same in every pass. Therefore a row that the database refuses to delete becomes only one dead letter.
	b := Batch{ID: source.Name(), Shard: source.Name(), Part: -1, DeadLimit: r.cfg.DeadLimit, Keep: Keep{r.cfg.KeepDeleted, WhyVanished}}
	for _, record := range missing {
		row, err := made(record)
		if err != nil {
			return fmt.Errorf("table %q: %w", r.cfg.Mapping.Table, err)
		}
		b.Rows = append(b.Rows, row)
	}
	slices.SortFunc(b.Rows, func(x, y row.Row) int { return compare(&x, &y) })
	return r.applyPlan(ctx, source, plan, b, began)
}

// missing returns the records that do not exist in the source now.
func (r *run) missing(ctx context.Context, source searcher, records []row.Record) ([]row.Record, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	missing, err := source.StillMissing(ctx, records)
	if err != nil {
		return nil, failedSource(ctx, "look again for vanished records of", source, err)
	}
	return missing, nil
}

// note reports a problem to the operator while the run continues.
func (r *run) note(text string) { r.say(false, text) }

// say works like note. The argument expected says that the text reports nothing wrong.
func (r *run) say(expected bool, text string) {
	r.counting.Lock()
	defer r.counting.Unlock()
	switch {
	case expected && r.cfg.OnExpected != nil:
		r.cfg.OnExpected(text)
	case r.cfg.OnNote != nil:
		r.cfg.OnNote(text)
	}
}
