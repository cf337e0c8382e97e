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

// ErrTooManyVanished means that more rows have vanished than one sweep may delete.
var ErrTooManyVanished = errors.New("flush: too many rows have vanished")

// TooManyVanishedError has the numbers. It matches ErrTooManyVanished.
type TooManyVanishedError struct {
	Source, Table string
	Stale, All    int64 // rows that the pass did not find, among the rows written by passes
	MaxPct        int
	// Deleted is how many were deleted before that was found.
	Deleted int64
	// Again: every later run would begin with the same pass, so a run is useless until an operator has decided.
	Again bool
}

func (e *TooManyVanishedError) Error() string {
	stays := "all of them stay"
	if e.Deleted > 0 {
		stays = fmt.Sprintf("%d were deleted, and no more are", e.Deleted)
	}
	return fmt.Sprintf("%d of %d rows of table %q were not found by a complete pass over %s, and max_pct allows %d %%, so %s: "+
		"is the key's pattern right, and is it the right Redis and database number? Or has somebody emptied it (FLUSHDB), or did it "+
		"restart without its data? "+
		"If the rows are to go, raise max_pct for one run", e.Stale, e.All, e.Table, e.Source, e.MaxPct, stays)
}

// Is makes errors.Is(err, ErrTooManyVanished) true.
func (e *TooManyVanishedError) Is(target error) bool { return target == ErrTooManyVanished }

// Sweeper is a Source that reads all of its data in each pass. A record that a pass did not find
// has vanished, or came too late for it.
type Sweeper interface {
	Source
	// Finds fails unless StillMissing can search for records by these inputs alone.
	Finds(inputs []string) error
	// Pass returns the InputGeneration of the last pass, once Read has returned without an
	// error; and the reason why the pass may have missed records that existed all the time,
	// if there is one.
	Pass(s Stage) (generation int64, missed error)
	// StillMissing returns which of the records do not exist now.
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
}

// StaleFinder is a Sink that can find rows by the pass that wrote them last. The
// columns of the plan are the key, in the order of its index, and after them the
// generation. A row whose generation is NULL, or not above 0, was written by no pass
// and is never reported.
type StaleFinder interface {
	Sink
	// CountStale counts the rows of other passes than the current one, and those of
	// all passes.
	CountStale(ctx context.Context, p *row.Plan, current int64) (stale, all int64, err error)
	// StaleRows reads rows of other passes than the current one, as texts in the order
	// of the plan's columns: the next ones in key order behind a key, or the first
	// ones if that is nil; none when there are no more.
	StaleRows(ctx context.Context, p *row.Plan, current int64, behind []row.Value, limit int) ([][]string, error)
}

// vanished finds and deletes the vanished rows of a job.
type vanished struct {
	*mapping.Vanished
	finder  StaleFinder // nil: all rows are searched for, see sweepKeys
	lister  KeyLister
	empties bool // a row vanishes by NULL in all columns but its key
}

// live returns the rows that have more than their key.
func (v *vanished) live(texts [][]string) [][]string {
	return slices.DeleteFunc(texts, func(one []string) bool { return !v.Live(one) })
}

// records are the records that the rows imply.
func (v *vanished) records(texts [][]string) []row.Record {
	records := make([]row.Record, len(texts))
	for i := range texts {
		records[i] = v.Record(texts[i])
	}
	return records
}

// searcher is a Source that can search for records again.
type searcher interface {
	Source
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
}

// compileSweep prepares the sweep. It refuses a job whose stale rows could not be searched for
// again. It returns nil for a job that keeps vanished rows.
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

// allFind fails unless all sources can search for the records of rows by these inputs.
func allFind[S interface{ Finds(inputs []string) error }](v *mapping.Vanished, inputs []string, sources []Source, setting string) error {
	for _, source := range sources {
		finder, ok := any(source).(S)
		if !ok {
			return fmt.Errorf("`%s` is for a scan, or a capture, which can read everything there is; %s is none", setting, source.Name())
		}
		if err := finder.Finds(inputs); err != nil {
			return fmt.Errorf("table %q: `%s` has to find the record of a row by its `key` (%s): %w",
				v.Plan().Table.Name, setting, v.KeyText(), err)
		}
	}
	return nil
}

// sweep deletes the rows that a complete pass over the source did not find, if the job wants
// that. It begins when every page of the pass is committed.
//
// A row is deleted only if its record is missing when it is searched for again, right
// before; if it still has the generation that it was found with; and if the fence is
// still ours. A row that comes back after the search is written by the next pass: the
// record was missing for a moment, and the row is missing for one pass.
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
	if stage.guard != nil {
		since, err = r.checkGuarded(ctx, sweeper, stage.guard, generation)
	} else {
		err = r.checkShare(ctx, source, generation, -1)
	}
	if err != nil {
		return err
	}
	began := time.Now()
	return r.eachStale(ctx, generation, since, func(texts [][]string) error { return r.sweepPage(ctx, sweeper, texts, began) })
}

// checkShare refuses to delete more than max_pct of the rows. vanished is how many would go; below 0: all rows of other passes.
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

// sweepPage searches for the records of stale rows once more and deletes the rows of
// those that are missing still.
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
	// A row that the database refuses to delete becomes a dead letter once, not in each pass.
	b := Batch{ID: source.Name(), Shard: source.Name(), Part: -1, DeadLimit: r.cfg.DeadLimit}
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

// missing returns the records that do not exist now.
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

// note reports something to the operator about a run that goes on.
func (r *run) note(text string) { r.say(false, text) }

// say is note, of something that was to be expected or not.
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
