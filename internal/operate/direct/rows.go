package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/flush/verify"
	"baton/internal/operate"
	"baton/internal/redisledger"
)

// rowShown is the maximum length in characters of a row in a list. The text of a longer row is left out.
const rowShown = 16 << 10

// DeletedRows returns at most n kept deleted rows, the newest row first. If a database fails, it returns the rows of the other databases
// together with the error.
func (s *Site) DeletedRows(ctx context.Context, f operate.RowFilter, n int) ([]operate.DeletedRow, error) {
	return reading(ctx, s, func(d *deadLetters) ([]operate.DeletedRow, error) {
		if f.ID == 0 {
			return d.deletedRows(ctx, f, n, rowShown)
		}
		r, err := d.deletedRow(ctx, f.ID, f.Database)
		if err != nil {
			return nil, err
		}
		return []operate.DeletedRow{r}, nil
	})
}

// Kept counts the deleted rows of a configured flush job that are kept.
func (s *Site) Kept(ctx context.Context, job string) (operate.KeptCount, error) {
	return reading(ctx, s, func(d *deadLetters) (count operate.KeptCount, err error) {
		if j, ok := d.job(job); ok && !j.IsCommand() {
			count.Rows, count.First, err = d.dbs[j.Flush.To.Database].CountKept(ctx, job, operate.MostKept)
			count.Known = err == nil
		}
		return count, err
	})
}

// deletedRows works like DeletedRows, but leaves out the text of a row that is longer than the argument longest, in characters. If this
// argument is 0, it leaves out no text.
func (d *deadLetters) deletedRows(ctx context.Context, f operate.RowFilter, n, longest int) ([]operate.DeletedRow, error) {
	names, err := d.where(operate.LetterFilter{Job: f.Job, Database: f.Database})
	if err != nil {
		return nil, err
	}
	rows, failed := []operate.DeletedRow{}, []error{}
	for _, name := range names {
		found, err := d.dbs[name].KeptRows(ctx, sql.KeptFilter{ID: f.ID, Job: f.Job, Text: f.Text}, n, longest)
		failed = append(failed, err)
		for _, k := range found {
			rows = append(rows, operate.DeletedRow{
				ID: k.ID, Job: k.Job, Database: name, Table: k.Table, Key: k.Key, Why: string(k.Why), Epoch: k.Epoch, At: k.At, Row: k.Row,
				KeepUntil: k.KeepUntil, PutBackAt: k.PutBackAt,
			})
		}
	}
	slices.SortStableFunc(rows, func(a, b operate.DeletedRow) int { return b.At.Compare(a.At) })
	return rows[:min(n, len(rows))], errors.Join(failed...)
}

// deletedRow returns the only deleted row with this id.
func (d *deadLetters) deletedRow(ctx context.Context, id int64, database string) (operate.DeletedRow, error) {
	rows, err := d.deletedRows(ctx, operate.RowFilter{ID: id, Database: database}, 2, 0)
	switch {
	case err != nil:
		return operate.DeletedRow{}, err
	case len(rows) == 0:
		return operate.DeletedRow{}, fmt.Errorf("%w: %d", sql.ErrNotKept, id)
	case len(rows) > 1:
		return operate.DeletedRow{}, fmt.Errorf("%w: deleted row %d is in database %q and in %q: name one with --database",
			operate.ErrDeadUsage, id, rows[0].Database, rows[1].Database)
	}
	return rows[0], nil
}

// undelete puts a deleted row back, and adds an event without the row's data to the history of the job's lock.
func (s *Site) undelete(ctx context.Context, l session, o operate.Order) (operate.Outcome, error) {
	out, err := reading(ctx, s, func(d *deadLetters) (operate.Outcome, error) { return d.undelete(ctx, o) })
	if err != nil {
		return out, err
	}
	v, err := l.under(out.DeletedRow.Job)
	if err != nil { // the job was removed
		v = l.view(l.Config.Election.LockKey)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CommandTimeout)
	defer cancel()
	err = v.Ledger.AddEvent(ctx, redisledger.Event{
		Event: "row_undeleted", Reason: fmt.Sprintf("deleted row %d of job %s is in table %s again, put back %s", out.DeletedRow.ID,
			out.DeletedRow.Job, out.DeletedRow.Table, o.Signature()),
	})
	if err != nil { // the order has succeeded nevertheless
		out.Text += fmt.Sprintf("; the event history does not show this: %v", err)
	}
	return out, nil
}

// undelete puts a deleted row back. It refuses if the table contains the row's key, or if the job would delete or empty the row again. Its
// texts are written to logs and to the event history. So they contain the row's id, and not the row's key, which may be personal data.
func (d *deadLetters) undelete(ctx context.Context, o operate.Order) (out operate.Outcome, err error) {
	r, err := d.deletedRow(ctx, o.Row, o.Database)
	if err != nil {
		return out, err
	}
	store := d.dbs[r.Database]
	jobs, known, err := d.deletersOf(ctx, store.Table, r)
	if err != nil {
		return out, err
	}
	// The fences are read before Redis. If another node leads by the time the row is written, the answer of Redis may be outdated.
	fences, err := fencesOf(ctx, store, r, jobs)
	if err != nil {
		return out, err
	}
	keeper, record, err := keeperOf(jobs, func(j config.Job) (*deletedRecord, error) { return d.wouldStay(ctx, j, store, r) })
	if err != nil {
		return out, err
	}
	err = store.Undelete(ctx, fences, sql.KeptRow{ID: r.ID, Job: r.Job, Table: r.Table, Key: r.Key, Row: r.Row})
	switch {
	case errors.Is(err, sql.ErrRowThere):
		return out, fmt.Errorf("%w: table %q has a row of that key: compare the rows with baton rows show %d, and delete the present "+
			"row first if you do not need it", operate.ErrRefused, r.Table, r.ID)
	case errors.Is(err, sql.ErrUnfit): // the database's reason may contain values of the row
		return out, &operate.PrivateError{Err: fmt.Errorf("%w: %w", operate.ErrRefused, err)}
	case errors.Is(err, flush.ErrFenced):
		return out, fmt.Errorf("%w: another node has begun to lead: repeat the order", operate.ErrRefused)
	case err != nil:
		return out, err
	}
	r.Row = ""
	out = operate.Outcome{Code: operate.CodeDone, DeletedRow: &r, Text: fmt.Sprintf("deleted row %d is in table %s again, and its copy "+
		"stays until %s because a job may overwrite the row", r.ID, r.Table, r.KeepUntil.Format(time.DateTime+" MST"))}
	out.Text += record.settle(ctx, keeper)
	if !known {
		out.Text += fmt.Sprintf("; no job in this configuration writes table %s, so baton did not look for the key in Redis", r.Table)
	}
	return out, nil
}

// deletersOf returns the jobs that may delete the row again if Redis does not have its key: the row's job or, if that job was renamed or
// now writes another table, all jobs that write the row's table. Jobs that delete no rows are left out. The result known is false if no
// job writes the table. The function tableOf looks for a table in the catalogue. Its error counts only if deletersOf finds no job.
func (d *deadLetters) deletersOf(
	ctx context.Context, tableOf func(ctx context.Context, name string) (row.Table, error), r operate.DeletedRow,
) (jobs []config.Job, known bool, err error) {
	for _, own := range []bool{true, false} {
		var failed error
		for _, j := range d.config.Jobs {
			if j.IsCommand() || j.Flush.To.Database != r.Database || own && j.Name != r.Job {
				continue
			}
			// The configuration and the catalogue may spell the table's name in different ways.
			table, err := tableOf(ctx, j.Flush.To.Table)
			if err == nil && table.Name == r.Table {
				jobs = append(jobs, j)
			} else if err != nil && !errors.Is(err, flush.ErrNoTable) {
				failed = err
			}
		}
		if len(jobs) > 0 {
			return slices.DeleteFunc(jobs, func(j config.Job) bool { return !j.Flush.From.DeletesVanished() }), true, nil
		} else if failed != nil {
			return nil, false, failed
		}
	}
	return nil, false, nil
}

// keeperOf returns the name of the first job for which Redis has the row's key, and the record of the row. If several jobs write the table,
// their patterns may differ, and only the key of one job belongs to the row. So keeperOf fails only if no job has the key. If no job
// deletes rows, keeperOf returns no record.
func keeperOf(jobs []config.Job, wouldStay func(config.Job) (*deletedRecord, error)) (name string, record *deletedRecord, err error) {
	var failed []error
	for _, j := range jobs {
		if record, err = wouldStay(j); err == nil {
			return j.Name, record, nil
		}
		failed = append(failed, err)
	}
	return "", nil, errors.Join(failed...)
}

// fencesOf returns the present fences of these jobs and of the row's job. A job that has no fence yet gets a fence without an epoch.
func fencesOf(ctx context.Context, store *sql.Store, r operate.DeletedRow, jobs []config.Job) ([]flush.Fence, error) {
	names := []string{r.Job}
	for _, j := range jobs {
		names = append(names, j.Name)
	}
	slices.Sort(names) // all transactions lock the fences in the same order
	names = slices.Compact(names)
	held, err := store.Fences(ctx, names)
	fences := make([]flush.Fence, len(names))
	for i, name := range names {
		fences[i].Job = name
		if at := slices.IndexFunc(held, func(h flush.Fence) bool { return h.Job == name }); at >= 0 {
			fences[i] = held[at]
		}
	}
	return fences, err
}

// deletedRecord finds the record of a deleted row in Redis.
type deletedRecord struct {
	source verify.Source
	record row.Record
}

// missing reports whether Redis lacks the record.
func (r *deletedRecord) missing(ctx context.Context) (bool, error) {
	missing, err := r.source.StillMissing(ctx, []row.Record{r.record})
	return len(missing) > 0, err
}

// settle looks for the record once more after the row was put back. The key may have been deleted since the first check, and the job may
// have handled that deletion before the row was back. settle marks such a key, so that the job reads the key again. It returns a text for
// the outcome.
func (r *deletedRecord) settle(ctx context.Context, job string) string {
	if r == nil {
		return ""
	}
	missing, err := r.missing(ctx)
	if err == nil && missing {
		if err = r.source.Mark(ctx, []string{r.source.KeyOf(&r.record)}); err == nil || errors.Is(err, verify.ErrNoMarks) {
			return fmt.Sprintf("; but Redis lost the row's key meanwhile, so job %s deletes the row again, and keeps it again", job)
		}
	}
	if err != nil {
		return fmt.Sprintf("; it is unknown whether Redis still has the row's key: %v: baton job verify %s shows this", err, job)
	}
	return ""
}

// wouldStay returns the record of a deleted row that is to be put back. It returns an error if Redis does not have the row's key, because
// the next pass, change or repair of the job would then delete the row again.
func (d *deadLetters) wouldStay(ctx context.Context, j config.Job, store *sql.Store, r operate.DeletedRow) (*deletedRecord, error) {
	setting := "on_missing"
	if j.Flush.From.Vanished == "delete" {
		setting = "vanished"
	}
	missing := false
	record, err := d.recordOf(ctx, j, store, r)
	if err == nil {
		missing, err = record.missing(ctx)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: it is unknown whether Redis has the key of deleted row %d, so job %q may delete the row again: %w. "+
			"Set `%s: ignore`, and repeat the order", operate.ErrRefused, r.ID, j.Name, err, setting)
	case missing:
		return nil, fmt.Errorf("%w: Redis has no key for deleted row %d, so job %q would delete the row again. Write the key to Redis "+
			"first: the job then writes the row. Or set `%s: ignore` in the job's configuration, reload all nodes, and repeat the order",
			operate.ErrRefused, r.ID, j.Name, setting)
	}
	return record, nil
}

// recordOf returns the record of a row, with the source that can look for the record.
func (d *deadLetters) recordOf(ctx context.Context, j config.Job, store *sql.Store, r operate.DeletedRow) (*deletedRecord, error) {
	c, err := tasks.Flush(j, d.stores.Of(j))
	if err != nil {
		return nil, err
	}
	table, err := store.Table(ctx, r.Table)
	if err != nil {
		return nil, err
	}
	m, err := mapping.Compile(c.Mapping, table, c.Inputs)
	if err != nil {
		return nil, err
	}
	v, inputs, err := m.Vanished("")
	if err != nil {
		return nil, err
	}
	source, err := tasks.Keys(j, d.stores.Of(j), m.Inputs())
	if err == nil {
		err = source.Finds(inputs)
	}
	if err != nil {
		return nil, err
	}
	texts, err := sql.KeptTexts(r.Row, v.Plan().Columns)
	if err != nil {
		return nil, err
	}
	return &deletedRecord{source, v.Record(texts)}, nil
}
