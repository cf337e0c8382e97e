package capture

import (
	"context"
	"errors"
	"slices"

	"baton/internal/flush"
	"baton/internal/flush/row"
)

// Finds implements flush.KeySweeper.
func (c *Capture) Finds(inputs []string) error { return c.keys.Finds(inputs) }

// Passed implements flush.KeySweeper.
func (c *Capture) Passed(st flush.Stage) flush.Passed {
	b, err := c.batchOf(st)
	if err != nil {
		return flush.Passed{Everything: true, Missed: err}
	}
	return flush.Passed{Everything: b.passesOwed > 0, Missed: b.missed, Confirmed: b.owed == owesDelete}
}

// reread is a reason to read all keys again.
type reread struct {
	reason Reason
	why    string
}

// Reread implements flush.KeySweeper.
func (c *Capture) Reread(changed flush.Changed, why string) {
	c.reread = reread{otherMapping, why}
	if changed == flush.OtherTable {
		c.reread.reason = otherTable
	}
}

// owe records that a pass over all keys is required, unless the same reason already requires one.
func (f *feed) owe(r reread) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passesOwed == f.passesDone || f.reread != r {
		f.oweLocked(r.reason, r.why)
		f.reread = r
	}
}

// StillMissing implements flush.KeySweeper. It leaves out records whose keys have a pending change. If a command has emptied the database
// during the pass, it returns an error. With the setting "on_flush: delete" it returns no error, because the next pass handles the missing
// records.
func (c *Capture) StillMissing(ctx context.Context, records []row.Record) ([]row.Record, error) {
	missing, err := c.keys.StillMissing(ctx, records)
	if err != nil || c.batch == nil {
		return missing, err
	}
	// A failover may lose the command after which a key is there, or missing.
	heads, err := c.noteSeen(ctx, nil, c.batch)
	if err != nil || len(missing) == 0 || c.batch.owed == owesDelete {
		return missing, err
	}
	f := c.feed()
	if err := f.awaitReceived(ctx, heads); err != nil {
		return nil, c.fail("search for keys of", err)
	}
	switch {
	case !f.wasEmptied():
		return f.unaccounted(c.batch, missing), nil
	case c.options.OnFlush == flushDelete:
		return nil, nil
	}
	return nil, c.fail("search for keys of", errors.New("the database was emptied during the pass; no row was deleted for that reason"))
}

// Unaccounted implements flush.KeySweeper.
func (c *Capture) Unaccounted(ctx context.Context, records []row.Record) ([]row.Record, error) {
	if c.batch == nil {
		return records, nil
	}
	heads, err := c.heads(ctx, nil)
	if err == nil {
		err = c.feed().awaitReceived(ctx, heads)
	}
	if err != nil {
		return nil, c.fail("look for changes of", err)
	}
	return c.feed().unaccounted(c.batch, records), nil
}

// unaccounted returns the missing records whose keys have no pending change. If a key is pending, the next batch writes the key's present
// state to the row. After a break of the stream, pending changes are no proof, so unaccounted returns all missing records.
func (f *feed) unaccounted(b *batch, missing []row.Record) []row.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.breaks != b.breaks {
		return missing
	}
	return slices.DeleteFunc(missing, func(r row.Record) bool {
		_, there := f.pending[r.Key]
		return there
	})
}

// broke reports whether the stream broke after the batch was taken.
func (f *feed) broke(b *batch) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.breaks != b.breaks
}
