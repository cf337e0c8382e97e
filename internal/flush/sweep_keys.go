package flush

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// KeySweeper is a Source of changes that reads all of its data after it has missed changes. After such a pass every row of the table is
// searched for in the source.
type KeySweeper interface {
	Source
	// Finds fails unless StillMissing can search for records by these inputs alone.
	Finds(inputs []string) error
	// Passed describes the reading of a stage, once Read has returned without an error.
	Passed(s Stage) Passed
	// Reread makes the next stage read everything. why is for the operator.
	Reread(changed Changed, why string)
	// Unaccounted returns the records that have no pending change.
	Unaccounted(ctx context.Context, records []row.Record) ([]row.Record, error)
	// StillMissing returns the records that do not exist now, except those that the source delivers later as changes.
	StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error)
}

// Passed describes a reading of a KeySweeper.
type Passed struct {
	Everything bool  // not only the changes
	Missed     error // why the reading may have missed records that existed all the time
	// Confirmed: an operator has confirmed that all rows may go, so VanishedPct does not count.
	Confirmed bool
}

// KeyLister is a Sink that can list the keys of a table. The first columns of the plan are the key, in the
// order of its index. A row with NULL in its key is not listed.
type KeyLister interface {
	Sink
	// KeyRows reads the keys of rows as texts in the order of the plan's columns; none when there are no more.
	// Where the plan has more columns than the key, there is one more text: row.Listed if one of these is not NULL.
	KeyRows(ctx context.Context, p *row.Plan, which KeyRange) ([][]string, error)
}

// KeyRange is a range of the rows of a table.
type KeyRange struct {
	// Of, if set, are beginnings of keys: only rows with one of these are in the range. They come in any order if there are several,
	// otherwise in key order.
	Of [][]row.Value
	// Behind, if set, limits the range to rows after that key, not with several Of; nil: from the first row on. from the first one on.
	Behind []row.Value
	Limit  int
}

// compileKeySweep prepares the sweep of a source of changes.
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

// sweepKeys deletes the rows whose records do not exist, after a complete pass: first all rows are
// counted, and those that would go; then these are searched for once more and deleted, no more of them than were allowed. A record that
// appears after it was searched for is a change, which the source delivers later.
func (r *run) sweepKeys(ctx context.Context, source Source, stage Stage) error {
	sweeper := source.(KeySweeper) // checked by compileKeySweep
	passed := sweeper.Passed(stage)
	switch {
	case !passed.Everything:
		return nil
	case passed.Missed != nil:
		r.note(fmt.Sprintf("%s: skipped deleting vanished rows, because this pass may have missed keys: %v", source.Name(),
			passed.Missed))
		return nil //nolint:nilerr // it is none of this run's
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
	if !passed.Confirmed || stage.guard != nil {
		var gone int64
		err := r.eachKeyPage(ctx, KeyRange{Limit: sweepRows}, func(texts [][]string) error {
			missing, err := r.missing(ctx, sweeper, r.vanished.records(texts))
			gone, all = gone+int64(len(missing)), all+int64(len(texts))
			return err
		})
		if err == nil && stage.guard.leaves(gone) {
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
		if err == nil && stage.guard.leaves(gone) {
			return errLeft
		}
		if err == nil {
			err = tooMany(gone, all, deleted) // more may be missing by now
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

// errLeft ends a sweep that has deleted as many rows as it may.
var errLeft = errors.New("flush: more rows have vanished than were accepted")

// eachKeyPage goes through rows of the table in key order, and leaves out those with nothing but their key.
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
