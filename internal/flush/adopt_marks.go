package flush

import (
	"context"
	"errors"
	"fmt"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// A backfill and a repair mark keys. The next run treats a marked key like a key that the application has changed, and writes the key's row
// at once. So baton marks no key before the rows belong to the job, or are accepted as the job's rows. How baton knows this depends on the
// source:
//
// For a capture, its pass counts the rows that wait for an acceptance, and records their number. A source that marks its changes
// (row.ByState) makes no pass. For such a source, a backfill and a repair compare all rows before the first mark. They record the counts as
// rows that wait, as a pass does, and mark no more rows than were accepted. After the marks the rows are adopted.
//
// A job that marks its changes also owns all rows if its table was empty at its first run, or if it ran before baton asked for an
// acceptance.

// Recorder is a Sink that also reads and replaces the records that are stored next to a job's position. It needs no fence for this.
type Recorder interface {
	Sink
	// Recorded reads a record. It returns "" for a missing record.
	Recorded(ctx context.Context, job, name string) (string, error)
	// Replace replaces the recorded text with a new one. It returns ErrMoved if the recorded text is not the argument old.
	Replace(ctx context.Context, job, name, old, text string) error
}

// ErrUnaccepted means that keys must not be marked, because the table has rows that were not accepted as the job's rows.
var ErrUnaccepted = errors.New("rows of the table are not accepted as the job's")

// ownership is the record that says whether the rows of the table belong to the job. There is one such record for each mapping.
type ownership struct {
	records Recorder
	name    string // the name of the record
	text    string
}

// ownership reads the record that says whether the rows of the table belong to the job. The result ok is false for a job that needs no
// acceptance.
func (p *Pipeline) ownership(ctx context.Context) (r ownership, ok bool, err error) {
	records, ok := p.cfg.Sink.(Recorder)
	if !ok || p.cfg.Adopt.Differ == nil || p.cfg.Inputs.Guarantee == row.ByPass || p.cfg.Adopt.Mode == AdoptDelete {
		return r, false, nil
	}
	m, err := p.resolve(ctx)
	if errors.Is(err, ErrNoTable) && p.cfg.Create {
		return r, false, nil // the first run creates the table
	}
	if err != nil || !finds(m) {
		return r, false, err
	}
	digest := p.digest(m)
	r = ownership{records: records, name: AdoptionName(digest)}
	if r.text, err = records.Recorded(ctx, p.cfg.Job, r.name); err != nil || r.text != "" || !p.marks() {
		return r, err == nil, err
	}
	before, err := records.Recorded(ctx, p.cfg.Job, RanBefore)
	if err != nil {
		return r, false, err
	}
	recorded, err := records.Recorded(ctx, p.cfg.Job, basisName)
	if was, known := parseBasis(recorded); err == nil && ownsUnasked(was, known, digest, before) {
		r.text = adoptAdopted // the next run records that the rows are adopted
	}
	return r, err == nil, err
}

// marks reports whether the job's source marks its changes. Such a job writes the rows of marked keys, and makes no pass.
func (p *Pipeline) marks() bool { return p.cfg.Inputs.Guarantee == row.ByState }

// finds reports whether the rows of the table can be found by their keys.
func finds(m *mapping.Mapping) bool { return len(m.Plan().Key) > 0 && !m.Adds() }

// ownsUnasked reports whether all rows belong to a job without an acceptance. It is for jobs that mark their changes. The arguments are the
// job's recorded basis, and the text of the record RanBefore.
func ownsUnasked(was basis, known bool, digest, before string) bool {
	return known && was.owned(digest) || !known && before != ""
}

// MustCompare reports whether a backfill must compare all rows before it marks the first key.
func (p *Pipeline) MustCompare(ctx context.Context) (bool, error) {
	if !p.marks() || p.cfg.Adopt.Mode == AdoptOverwrite {
		return false, nil
	}
	r, ok, err := p.ownership(ctx)
	return ok && (r.text != adoptAdopted || p.cfg.Adopt.Mode == AdoptInsertOnly), err
}

// MayMark returns an error if keys must not be marked. The argument would contains the numbers of rows that the marks would change and
// delete, as a comparison has counted them. The result bounded means that the marks must not change or delete more rows than these numbers
// say.
func (p *Pipeline) MayMark(ctx context.Context, would Unaccepted) (bounded bool, err error) {
	mode := p.cfg.Adopt.Mode
	if mode == AdoptOverwrite && would.Deletes == 0 {
		return false, nil
	}
	r, ok, err := p.ownership(ctx)
	if err != nil || !ok || mode != AdoptInsertOnly && r.text == adoptAdopted {
		return false, err
	}
	if p.marks() && would == (Unaccepted{}) {
		return true, nil
	}
	switch {
	case mode != AdoptAsk:
		return false, fmt.Errorf("table %q: %w, and `adopt: %s` keeps them unchanged, so baton marked no key",
			p.cfg.Mapping.Table, ErrUnaccepted, mode)
	case !p.marks():
		return false, fmt.Errorf("table %q: %w, or the first pass of job %q has not ended, so baton marked no key. "+
			"`baton job preview %s --all` shows the changes that a pass would make; `baton job accept %s` accepts them",
			p.cfg.Mapping.Table, ErrUnaccepted, p.cfg.Job, p.cfg.Job, p.cfg.Job)
	}
	var accepted Unaccepted
	if accepted.read(adoptAccepted, r.text) && would.Changes <= accepted.Changes && would.Deletes <= accepted.Deletes {
		return true, nil
	}
	return false, p.letWait(ctx, r, would)
}

// letWait records that rows wait for an acceptance: as many as a backfill or a repair would change and delete. It returns an error that
// contains these numbers.
func (p *Pipeline) letWait(ctx context.Context, r ownership, would Unaccepted) error {
	text := fmt.Sprintf("%s %d %d", adoptWaits, would.Changes, would.Deletes)
	if text != r.text {
		if err := r.records.Replace(ctx, p.cfg.Job, r.name, r.text, text); err != nil {
			return fmt.Errorf("table %q: no key was marked: %w", p.cfg.Mapping.Table, err)
		}
	}
	p.claimed.Store(nil) // the next run checks whether the rows are accepted
	if p.cfg.Adopt.OnUnaccepted != nil {
		p.cfg.Adopt.OnUnaccepted(would)
	}
	return fmt.Errorf("table %q: %w. This command would change %d and delete %d rows that job %q never wrote, so baton marked no key. "+
		"`baton job preview %s --all` shows the rows. If they belong to the job, run `baton job accept %s`, then repeat this command",
		p.cfg.Mapping.Table, ErrUnaccepted, would.Changes, would.Deletes, p.cfg.Job, p.cfg.Job, p.cfg.Job)
}

// Marked records that all rows belong to the job. It is called when all keys whose rows differ are marked.
func (p *Pipeline) Marked(ctx context.Context) error {
	if !p.marks() || p.cfg.Adopt.Mode != AdoptAsk {
		return nil
	}
	r, ok, err := p.ownership(ctx)
	if err != nil || !ok || r.text == adoptAdopted {
		return err
	}
	err = r.records.Replace(ctx, p.cfg.Job, r.name, r.text, adoptAdopted)
	if err != nil && !errors.Is(err, ErrMoved) { // ErrMoved means that a run has just recorded the owner of the rows
		return err
	}
	if p.cfg.Adopt.OnUnaccepted != nil {
		p.cfg.Adopt.OnUnaccepted(Unaccepted{})
	}
	return nil
}

// claimRows records that all rows of the table belong to the job, if one of two conditions holds. The table is empty at the job's first
// run, or the job ran before baton asked for acceptances. It is for jobs that mark their changes. It checks once in each term, and at each
// run while rows wait for an acceptance.
func (r *run) claimRows(ctx context.Context) error {
	if !r.marks() || r.cfg.Adopt.Differ == nil || !finds(r.m) {
		return nil
	}
	now := r.basis()
	of := r.fence.Owner + " " + now.mapping
	if was := r.claimed.Swap(&of); was != nil && *was == of { // stored before the check, because letWait may run during the check
		return nil
	}
	waits, err := r.claim(ctx, now)
	if err != nil || waits {
		r.claimed.Store(nil)
	}
	return err
}

// claim checks whether all rows of the table belong to the job, and records this. The result waits means that rows wait for an acceptance.
func (r *run) claim(ctx context.Context, now basis) (waits bool, err error) {
	found, err := retry(ctx, r.cfg.Retry, func() ([]string, error) {
		return r.cfg.Sink.Positions(ctx, r.fence, []string{basisName, AdoptionName(now.mapping), RanBefore})
	})
	if err != nil {
		return false, fmt.Errorf("read whether the rows of table %q belong to the job: %w", r.cfg.Mapping.Table, err)
	}
	r.recorded, r.adoption = found[0], found[1]
	was, known := parseBasis(r.recorded)
	owned := r.adoption == adoptAdopted || r.adoption == "" && ownsUnasked(was, known, now.mapping, found[2])
	if !owned && r.adoption == "" {
		if owned, err = r.isEmpty(ctx); err != nil {
			return false, err
		}
	}
	if !owned {
		now.waits = begun
	}
	// The basis is recorded first. Only after that it is recorded that the rows belong to the job. So if the job's configuration changes
	// between these two steps, only the rows of this mapping belong to the job.
	if err := r.recordBasis(ctx, now); err != nil {
		return false, err
	}
	if owned {
		err = r.recordAdoption(ctx, adoptAdopted)
	}
	left, waits := ParseWaits(r.adoption)
	if r.cfg.Adopt.Mode != AdoptAsk {
		left, waits = Unaccepted{}, false
	}
	r.waits(left)
	return waits, err
}

// resolve compiles the mapping for the table as it is now.
func (p *Pipeline) resolve(ctx context.Context) (*mapping.Mapping, error) {
	table, err := p.cfg.Sink.Table(ctx, p.cfg.Mapping.Table)
	if err != nil {
		return nil, fmt.Errorf("read the catalogue of table %q: %w", p.cfg.Mapping.Table, err)
	}
	return mapping.Compile(p.cfg.Mapping, table, p.cfg.Inputs)
}

// Digest returns the digest of the job's mapping, after compiling the mapping for the table as it is now.
func (p *Pipeline) Digest(ctx context.Context) (string, error) {
	m, err := p.resolve(ctx)
	if err != nil {
		return "", err
	}
	return p.digest(m), nil
}
