package direct

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"baton/internal/daemon/site"
	"baton/internal/daemon/tasks"
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/sql"
	"baton/internal/operate"
	"baton/internal/redisledger"
	"baton/internal/text"
)

// longestAuthor is the maximum length of the author of an acceptance in the database, in bytes.
const longestAuthor = 300

// Acceptance counts the rows that the job never wrote and that wait to be accepted as rows of the job.
func (s *Site) Acceptance(ctx context.Context, job string) (operate.Acceptance, error) {
	return reading(ctx, s, func(d *deadLetters) (operate.Acceptance, error) {
		r, err := d.adoption(ctx, job)
		return r.Acceptance, err
	})
}

// adoption is an acceptance, with its record in the database.
type adoption struct {
	operate.Acceptance
	store *sql.Store
	name  string // the name of the record
	text  string
	// kept is the name of the last acceptance's record, and keptText is its text.
	kept, keptText string
}

// adoption reads the record of a job's current mapping.
func (d *deadLetters) adoption(ctx context.Context, name string) (r adoption, err error) {
	j, err := jobNamed(d.config, name)
	if err != nil {
		return r, err
	}
	if !tasks.Adopts(j) {
		return r, fmt.Errorf("%w: job %q never has rows to accept: only jobs of type %s have them", operate.ErrInvalid, name,
			strings.Join(tasks.AdoptingTypes(), ", "))
	}
	r.store = d.dbs[j.Flush.To.Database]
	r.Acceptance = operate.Acceptance{
		Job: name, Database: j.Flush.To.Database, Table: j.Flush.To.Table, Keys: j.Flush.From.Key, State: operate.NothingWaits,
	}
	flushed, err := tasks.Flush(j, d.stores.Of(j))
	if err != nil {
		return r, fmt.Errorf("job %q: %w", name, err)
	}
	r.Ordered = flushed.Inputs.Guarantee == row.ByState
	flushed.NodeID, flushed.Sink = d.config.Node.ID, r.store
	pipeline, err := flush.New(flushed)
	if err != nil {
		return r, err
	}
	digest, err := pipeline.Digest(ctx)
	if errors.Is(err, flush.ErrNoTable) && flushed.Create {
		return r, nil // the first run creates the table
	}
	if err != nil {
		return r, err
	}
	r.name = flush.AdoptionName(digest)
	if r.text, err = r.store.Recorded(ctx, name, r.name); err != nil {
		return r, err
	}
	r.kept = flush.AcceptanceName(digest)
	if r.keptText, err = r.store.Recorded(ctx, name, r.kept); err != nil {
		return r, err
	}
	r.read(flush.AdoptMode(j.Flush.To.Adopt))
	return r, nil
}

// read parses the text of the record. Rows wait only if the job has the setting "adopt: ask". With other settings it is already decided
// whether the rows belong to the job.
func (r *adoption) read(mode flush.AdoptMode) {
	var waits flush.Unaccepted
	var waiting, accepted bool
	if waits, r.By, accepted = flush.ParseAccepted(r.text); !accepted {
		waits, waiting = flush.ParseWaits(r.text)
	}
	switch {
	case flush.IsAdopted(r.text):
		r.State = operate.RowsAdopted
		_, r.By, _ = flush.ParseAccepted(r.keptText)
	case mode != "" && mode != flush.AdoptAsk:
		return
	case accepted:
		r.State = operate.RowsAccepted
	case waiting:
		r.State = operate.RowsWait
	}
	r.Changes, r.Deletes = waits.Changes, waits.Deletes
}

// accept accepts the waiting rows, and adds the acceptance to the event history of the job's lock.
func (s *Site) accept(ctx context.Context, l session, o operate.Order) (operate.Outcome, error) {
	v, err := l.under(o.Job)
	if err != nil {
		return operate.Outcome{}, err
	}
	out, err := reading(ctx, s, func(d *deadLetters) (operate.Outcome, error) { return d.accept(ctx, o) })
	if err != nil || out.Code != operate.CodeDone {
		return out, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CommandTimeout)
	defer cancel()
	err = v.Ledger.AddEvent(ctx, redisledger.Event{
		Event: "rows_accepted", Reason: fmt.Sprintf("%s may %s of table %s, accepted %s", o.Job, out.Acceptance.Rows(),
			out.Acceptance.Table, o.Signature()),
	})
	if err != nil { // the acceptance is already in the database
		out.Text += fmt.Sprintf("; the event history does not contain the acceptance: %v", err)
	}
	return out, nil
}

// accept records that the waiting rows belong to the job. Then the leader makes another pass, which does not change or delete more rows
// than were accepted.
func (d *deadLetters) accept(ctx context.Context, o operate.Order) (out operate.Outcome, err error) {
	r, err := d.adoption(ctx, o.Job)
	if err != nil {
		return out, err
	}
	out = operate.Outcome{Code: operate.CodeNothing, Acceptance: &r.Acceptance}
	switch {
	case r.State == operate.RowsAccepted:
		out.Text = fmt.Sprintf("%s has already accepted that %s of job %s may %s of table %s", r.By, r.Writes(), o.Job, r.Rows(), r.Table)
		return out, nil
	case r.State != operate.RowsWait:
		out.Text = fmt.Sprintf("job %q: nothing waits to be accepted: no pass, backfill or repair has found rows that "+
			"the job never wrote and that it would change or delete", o.Job)
		return out, nil
	case r.Changes > o.Changes || r.Deletes > o.Deletes:
		return out, fmt.Errorf("%w: job %q: the plan has more rows than before: baton would now %s of table %s, "+
			"but the order accepts only %d changes and %d deletions: look at the plan, and accept again",
			operate.ErrRefused, o.Job, r.Rows(), r.Table, o.Changes, o.Deletes)
	}
	by := o.By
	if by == "" {
		by = "somebody"
	}
	accepted, err := flush.Accept(r.text, text.Clip(text.OneLine(by), longestAuthor), time.Now())
	if err != nil {
		return out, fmt.Errorf("job %q: %w", o.Job, err)
	}
	switch err := r.store.Replace(ctx, o.Job, r.name, r.text, accepted); {
	case errors.Is(err, flush.ErrMoved):
		return out, fmt.Errorf("%w: job %q: the leader has counted the rows again in the meantime: look at the plan, and accept again",
			operate.ErrRefused, o.Job)
	case err != nil:
		return out, err
	}
	r.State = operate.RowsAccepted
	_, r.By, _ = flush.ParseAccepted(accepted)
	out.Code = operate.CodeDone
	out.Text = fmt.Sprintf("every row of %s in table %s now belongs to job %s; %s may %s", r.Keys, r.Table, o.Job, r.Writes(), r.Rows())
	if err := r.store.Replace(ctx, o.Job, r.kept, r.keptText, accepted); err != nil { // the rows are accepted even if this fails
		out.Text += fmt.Sprintf("; the database could not store who accepted the rows: %v", err)
	}
	return out, nil
}
