package flush

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// KeySweeper is a Source that delivers changes, and reads all of its data after it has missed changes. After such a pass, baton searches in
// the source for every row of the table.
type KeySweeper interface {
	Source
	// Finds fails unless StillMissing can search for records with only these inputs.
	Finds(inputs []string) error
	// Passed describes the reading of a stage, once Read has returned without an error.
	Passed(s Stage) Passed
	// Reread makes the next stage read everything. why is for the operator.
	Reread(changed Changed, why string)
	// Unaccounted returns the records that have no pending change.
	Unaccounted(ctx context.Context, records []row.Record) ([]row.Record, error)
	// StillMissing returns the records that do not exist now. It leaves out records that the source will deliver later as changes.
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
}

// Passed says how a KeySweeper has read a stage.
type Passed struct {
	Everything bool  // all data was read, and not only the changes
	Missed     error // why the reading may have missed records that existed all the time
	// Confirmed means that an operator has allowed the deletion of all rows, so VanishedPct does not apply.
	Confirmed bool
}

// KeyLister is a Sink that can list the keys of a table. The first columns of the plan are the key, in the
// order of its index. A row with NULL in its key is not listed.
type KeyLister interface {
	Sink
	// KeyRows reads the keys of rows as texts in the order of the plan's columns. At the end of the range it returns none. If the plan has
	// more columns than the key, each row has one more text, which is row.Listed if one of the other columns is not NULL.
	KeyRows(ctx context.Context, p *row.Plan, which KeyRange) ([][]string, error)
}

// KeyRange selects some rows of a table by their keys.
type KeyRange struct {
	// Of, if set, are prefixes of keys: the range has only rows with one of these prefixes. With several prefixes the rows have no order.
	// With one prefix, or if Of is nil, the rows are in key order.
	Of [][]row.Value
	// Behind, if set, limits the range to rows after the key Behind. If Behind is nil, the range begins with the first row. Behind must be
	// nil if Of has several prefixes.
	Behind []row.Value
	Limit  int
}

// compileKeySweep prepares the sweep for sources that deliver changes.
func (p *Pipeline) compileKeySweep(m *mapping.Mapping, sources []Source) (*vanished, error) {
	lister, ok := p.cfg.Sink.(KeyLister)
	if !ok {
		return nil, errors.New("this database cannot list the keys of a table: set `on_missing: ignore`")
	}
	found, inputs, err := m.Vanished("")
	if err != nil {
		return nil, err
	}
	v := &vanished{Vanished: found, lister: lister, empties: p.cfg.OnMissing == mapping.MissingNull}
	if v.empties {
		err = v.Empties(m)
	}
	if err == nil && v.HasMembers() {
		err = v.FindsRows()
	}
	return v, errors.Join(err, allFind[KeySweeper](found, inputs, sources, "on_missing: "+string(p.cfg.OnMissing)))
}

// sweepKeys deletes the rows whose records do not exist, after a complete pass. It first counts all rows, and the rows without a record.
// Then it searches for the missing records again, and deletes at most as many rows as max_pct or an operator allows. If a record appears
// after the search, the source delivers it later as a change.
func (r *run) sweepKeys(ctx context.Context, source Source, stage Stage) error {
	sweeper := source.(KeySweeper) // checked by compileKeySweep
	passed := sweeper.Passed(stage)
	switch {
	case !passed.Everything:
		return nil
	case passed.Missed != nil:
		r.note(fmt.Sprintf("%s: skipped deleting vanished rows, because this pass may have missed keys: %v", source.Name(),
			passed.Missed))
		return nil //nolint:nilerr // Missed is no error of this run
	}
	tooMany := func(gone, all, deleted int64) error {
		if passed.Confirmed || gone*100 <= all*int64(r.cfg.VanishedPct) {
			return nil
		}
		return &TooManyVanishedError{
			Source: source.Name(), Table: r.cfg.Mapping.Table, Stale: gone, All: all, MaxPct: r.cfg.VanishedPct, Deleted: deleted,
			Again: true,
		}
	}
	var all int64
	if !passed.Confirmed || stage.changeLimit != nil {
		var gone int64
		err := r.eachKeyPage(ctx, KeyRange{Limit: sweepRows}, func(texts [][]string) error {
			missing, err := r.missing(ctx, sweeper, r.vanished.records(texts))
			gone, all = gone+int64(len(missing)), all+int64(len(texts))
			return err
		})
		if err == nil && stage.changeLimit.leaves(gone) {
			return nil
		}
		if err == nil {
			err = tooMany(gone, all, 0)
		}
		if err != nil || gone == 0 {
			return err
		}
	}
	began, deleted := time.Now(), int64(0)
	err := r.eachKeyPage(ctx, KeyRange{Limit: sweepRows}, func(texts [][]string) error {
		missing, err := r.missing(ctx, sweeper, r.vanished.records(texts))
		gone := deleted + int64(len(missing))
		if err == nil && stage.changeLimit.leaves(gone) {
			return errLeft
		}
		if err == nil {
			err = tooMany(gone, all, deleted) // since the first count more records may be missing
		}
		if err != nil {
			return err
		}
		deleted = gone
		return r.deleteVanished(ctx, sweeper, missing, began)
	})
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// errLeft ends a sweep whose next deletions would exceed the number of deletions that an operator has accepted.
var errLeft = errors.New("flush: more rows have vanished than an operator has accepted")

// eachKeyPage reads the rows of the table in key order. It skips rows that have no value outside of their key.
func (r *run) eachKeyPage(ctx context.Context, which KeyRange, do func(texts [][]string) error) error {
	for {
		texts, err := r.keyRows(ctx, which)
		if err != nil || len(texts) == 0 {
			return err
		}
		if which.Behind, err = r.vanished.Key(texts[len(texts)-1]); err != nil {
			return fmt.Errorf("table %q: %w", r.cfg.Mapping.Table, err)
		}
		if err := do(r.vanished.live(texts)); err != nil {
			return err
		}
	}
}

func (r *run) keyRows(ctx context.Context, which KeyRange) ([][]string, error) {
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	defer r.disconnect()
	v := r.vanished
	texts, err := retry(ctx, r.cfg.Retry, func() ([][]string, error) { return v.lister.KeyRows(ctx, v.List(), which) })
	if err != nil {
		return nil, fmt.Errorf("list the keys of table %q: %w", r.cfg.Mapping.Table, err)
	}
	return texts, nil
}
