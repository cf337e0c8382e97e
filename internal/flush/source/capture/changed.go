package capture

import (
	"context"
	"maps"
	"slices"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/redisconn"
)

// changed reads the changed keys, page by page.
type changed struct {
	*Capture
	conn  redisconn.Conn // to the master, if there is only one
	batch *batch
	rows  flush.RowFinder // nil: missing keys need no reading of the table
	yield func(flush.Page) error
	last  *flush.Page // not yielded yet: it may be the last one
}

// read yields the rows of the batch. The last page moves the place after the changes.
//
// Only the table knows which members of a key are gone. Their rows come first, so that another row may take over a unique value of
// theirs.
func (r *changed) read(ctx context.Context) error {
	names := slices.Collect(maps.Keys(r.batch.keys))
	if r.rows != nil && r.keys.HasMembers() {
		if err := r.readGone(ctx, names); err != nil {
			return err
		}
	}
	if err := r.keys.ReadKeys(ctx, r.conn, names, func(p flush.Page) error { return r.add(ctx, p) }); err != nil {
		return err
	}
	if r.last == nil {
		r.last = &flush.Page{Part: -1}
	}
	return r.give(true)
}

// goneRows is the least number of rows of missing members in a page, except in the last one.
const goneRows = 1000

// readGone yields the rows of missing members, for deletion.
func (r *changed) readGone(ctx context.Context, names []string) error {
	slices.Sort(names)
	var gone []row.Record
	give := func() error {
		some := gone
		gone = nil
		return r.add(ctx, flush.Page{Part: -1, Records: some})
	}
	for some := range slices.Chunk(names, goneRows) {
		err := r.gone(ctx, some, func(records []row.Record) error {
			if gone = append(gone, records...); len(gone) >= goneRows {
				return give()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return give()
}

// gone calls each with the records of rows that the keys have in the table, but not in Redis.
func (r *changed) gone(ctx context.Context, names []string, each func([]row.Record) error) error {
	named := make([]row.Record, len(names))
	for i, name := range names {
		named[i] = r.keys.Named(name)
	}
	return r.rows.RowsOf(ctx, named, func(records []row.Record) error {
		missing, err := r.keys.Missing(ctx, r.conn, records)
		if err != nil {
			return err
		}
		return each(missing)
	})
}

// add adds the next page.
func (r *changed) add(ctx context.Context, p flush.Page) error {
	if r.rows != nil && !r.keys.HasMembers() {
		if err := r.withRows(ctx, &p); err != nil {
			return err
		}
	}
	heads, err := r.noteSeen(ctx, r.conn, r.batch)
	if err != nil {
		return err
	}
	if err := r.spareRows(ctx, &p, r.batch, heads); err != nil {
		return err
	}
	if r.last != nil {
		if err := r.give(false); err != nil {
			return err
		}
	}
	r.last = &p
	return nil
}

// withRows drops missing keys without a row from the page.
func (r *changed) withRows(ctx context.Context, p *flush.Page) error {
	var names []string
	p.Records = slices.DeleteFunc(p.Records, func(record row.Record) bool {
		if record.Gone {
			names = append(names, record.Key)
		}
		return record.Gone
	})
	return r.gone(ctx, names, func(records []row.Record) error {
		p.Records = append(p.Records, records...)
		return nil
	})
}

// give yields the newest page.
func (r *changed) give(final bool) error {
	r.last.Lane, r.last.Move = flush.InOrder, r.feed().move(r.batch, final)
	return r.yield(*r.last)
}
