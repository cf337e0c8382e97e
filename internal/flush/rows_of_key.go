package flush

import (
	"context"
	"slices"

	"baton/internal/flush/row"
)

// RowFinder finds rows of a job's table.
type RowFinder interface {
	// RowsOf finds the rows that were made from these keys of the source. It passes the records of these rows to the function each, in one
	// or several calls. An element of the argument keys is a record with only the inputs that the key's name contains. If the job sets the
	// columns of a vanished row to NULL, RowsOf skips rows in which only the key is not NULL.
	RowsOf(ctx context.Context, keys []row.Record, each func([]row.Record) error) error
}

// keysAtOnce is the maximum number of keys whose rows are found by one statement.
const keysAtOnce = 64

// finder returns a RowFinder for a source of changes, if only the table shows the rows of a key that is no longer in Redis. Otherwise it
// returns nil.
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

// rowsOf finds the rows of some keys. It uses one statement for all keys if there are few rows, and otherwise one statement for each key.
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
