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
	conn  redisconn.Conn // to the only master; nil in a Cluster
	batch *batch
	rows  flush.RowFinder // nil if the rows of missing keys need no search in the table
	yield func(flush.Page) error
	last  *flush.Page // a page that is not yielded yet, because it may be the last page
}

// read yields the rows of the batch. The last page moves the position to the end of the changes.
//
// Only the table shows which members of a key have vanished. The rows of these members are deleted first, so that other rows can use their
// unique values.
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

// goneRows is the minimum number of rows that a page from readGone deletes. The last of these pages may delete fewer rows.
const goneRows = 1000

// readGone yields pages that delete the rows of members that are no longer in Redis.
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

// gone finds the rows of these keys in the table. It passes the records of those rows that are missing in Redis to the function each.
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

// add prepares a page, and yields the page that was added before it.
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

// withRows removes the records of missing keys from the page, unless the table has a row of the key.
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

// give sets the move of the page in the field last, and yields this page. If final is true, it is the last page of the batch.
func (r *changed) give(final bool) error {
	r.last.Lane, r.last.Move = flush.InOrder, r.feed().move(r.batch, final)
	return r.yield(*r.last)
}
