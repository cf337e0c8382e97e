package flush

import (
	"context"
	"slices"

	"baton/internal/flush/row"
)

// RowFinder finds rows of a job's table.
type RowFinder interface {
	// RowsOf finds the rows that were made of keys of the source, and calls each with the records of some of them. Each key is a record
	// with the inputs that its name gives. Where a row vanishes by NULL in all columns but its key, a row with nothing but its key is
	// left out.
	RowsOf(ctx context.Context, keys []row.Record, each func([]row.Record) error) error
}

// keysAtOnce is how many keys one statement gets the rows of.
const keysAtOnce = 64

// finder is the RowFinder for a source of changes, if only the table knows which rows a vanished key has; otherwise nil.
func (r *run) finder() RowFinder {
	v := r.vanished
	if v == nil || v.lister == nil || !v.HasMembers() && !v.empties {
		return nil
	}
	return r
}

// RowsOf implements RowFinder.
func (r *run) RowsOf(ctx context.Context, keys []row.Record, each func([]row.Record) error) error {
	for some := range slices.Chunk(keys, keysAtOnce) {
		if err := r.rowsOf(ctx, some, each); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf finds the rows of some keys: by one statement if they are few, otherwise key by key.
func (r *run) rowsOf(ctx context.Context, keys []row.Record, each func([]row.Record) error) error {
	var of [][]row.Value
	for i := range keys {
		if lead, ok := r.vanished.Lead(&keys[i]); ok {
			of = append(of, lead)
		}
	}
	if len(of) == 0 {
		return nil
	}
	found := func(texts [][]string) error { return each(r.vanished.records(texts)) }
	texts, err := r.keyRows(ctx, KeyRange{Of: of, Limit: sweepRows + 1})
	if err != nil {
		return err
	}
	if len(texts) <= sweepRows {
		return found(r.vanished.live(texts))
	}
	for i := range of {
		if err := r.eachKeyPage(ctx, KeyRange{Of: of[i : i+1], Limit: sweepRows}, found); err != nil {
			return err
		}
	}
	return nil
}
