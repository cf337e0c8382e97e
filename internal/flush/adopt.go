package flush

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
)

// A pass may meet rows that its job never wrote. It inserts missing rows. It leaves every other row as it is until somebody accepts these
// rows as the job's. A change by the application is no pass: its row is written at once.
//
// The acceptance is recorded beside the place, for each digest of the mapping:
//
// waits CHANGES DELETES          a pass has left that many rows as they are
// accepted CHANGES DELETES WHEN BY   somebody has accepted them: the next pass may change and delete that many
// adopted                        a pass has left no row as it was, or found none: the rows are the job's
//
// A pass that would do more than was accepted leaves the other rows, and it waits again. The record is written before the basis of the
// pass, so a crash in between leads to one more pass with the same rights. The basis of a new job is recorded before its first page, as
// begun: a place without a basis belongs to a job of an earlier version, which owns its rows.

// AdoptMode says how a pass may treat existing rows.
type AdoptMode string

// The modes.
const (
	AdoptAsk        AdoptMode = "ask"         // as far as accepted; the default
	AdoptInsertOnly AdoptMode = "insert_only" // neither change nor delete them, ever
	AdoptOverwrite  AdoptMode = "overwrite"   // change them, and delete none
	AdoptDelete     AdoptMode = "delete"      // change and delete them
)

// Differ compares rows with those of their table.
type Differ interface {
	// Differing says for each row whether the table has a row of its key, and whether that row differs.
	Differing(ctx context.Context, sink Sink, m *mapping.Mapping, rows []row.Row) ([]Differs, error)
}

// Differs is the result of comparing a row with that of the table.
type Differs int

// The results.
const (
	RowMissing Differs = iota
	RowEqual
	RowDiffers
)

// Adopt configures how passes treat rows that the job never wrote.
type Adopt struct {
	Mode   AdoptMode
	Differ Differ // nil: a pass may change and delete any row
	// OnWaits, if set, gets the number of rows that wait, the zero value if none do.
	OnWaits func(Waits)
}

// Waits are the rows that a pass has left as they are.
type Waits struct{ Changes, Deletes int64 }

// AdoptionName is the name under which the acceptance of a digest is recorded.
func AdoptionName(digest string) string { return "adoption " + digest }

const (
	adoptWaits    = "waits"
	adoptAccepted = "accepted"
	adoptAdopted  = "adopted"
)

// ErrNothingWaits says that no rows wait to be accepted.
var ErrNothingWaits = errors.New("flush: nothing waits to be accepted")

// ParseWaits reads the rows that wait; ok is false without such rows.
func ParseWaits(text string) (w Waits, ok bool) {
	ok = w.read(adoptWaits, text)
	return w, ok
}

// read reads a record of that state.
func (w *Waits) read(state, text string) bool {
	rest, ok := strings.CutPrefix(text, state+" ")
	if !ok {
		return false
	}
	_, err := fmt.Sscan(rest, &w.Changes, &w.Deletes)
	return err == nil
}

// ParseAccepted reads the bounds of an acceptance, and its author; ok is false without one.
func ParseAccepted(text string) (w Waits, by string, ok bool) {
	if words := strings.SplitN(text, " ", 5); len(words) == 5 {
		by = words[4]
	}
	ok = w.read(adoptAccepted, text)
	return w, by, ok
}

// Accept makes the record of an acceptance of the rows that wait. An earlier acceptance stays as it is.
func Accept(text, by string, at time.Time) (string, error) {
	if _, _, ok := ParseAccepted(text); ok {
		return text, nil
	}
	w, ok := ParseWaits(text)
	if !ok {
		return "", ErrNothingWaits
	}
	return fmt.Sprintf("%s %d %d %s %s", adoptAccepted, w.Changes, w.Deletes, at.UTC().Format(time.RFC3339), by), nil
}

// guard bounds the changes and deletions of one pass in existing rows. nil: no bound.
type guard struct {
	mu             sync.Mutex
	may, did, left Waits
}

// guardOf is the guard of a stage that is a pass.
func (r *run) guardOf(ctx context.Context, source Source, stage Stage) (*guard, error) {
	a := r.cfg.Adopt
	sweeper, ok := source.(KeySweeper)
	if !ok || !sweeper.Passed(stage).Everything || a.Differ == nil || len(r.m.Plan().Key) == 0 || r.m.Adds() {
		return nil, nil
	}
	was, ok := parseBasis(r.recorded)
	if !ok { // before its place: a place without a basis would be of an earlier version
		now := r.basis()
		now.waits = begun
		if err := r.recordBasis(ctx, now); err != nil {
			return nil, err
		}
	}
	switch a.Mode {
	case AdoptInsertOnly:
		return &guard{}, nil
	case AdoptOverwrite:
		return &guard{may: Waits{Changes: math.MaxInt64}}, nil
	case AdoptDelete:
		return nil, nil
	}
	if ok && was.owned(r.basis().mapping) || r.adoption == adoptAdopted {
		return nil, nil
	}
	g := &guard{}
	if g.may.read(adoptAccepted, r.adoption) {
		return g, nil
	}
	empty, err := r.isEmpty(ctx)
	if err != nil || !empty {
		return g, err
	}
	// If the pass dies, the rows that it has written are the job's.
	return nil, r.recordAdoption(ctx, adoptAdopted)
}

// isEmpty reports whether the table has no row.
func (r *run) isEmpty(ctx context.Context) (bool, error) {
	lister, ok := r.cfg.Sink.(KeyLister)
	if !ok {
		return false, nil
	}
	whole := r.m.Plan()
	keys := &row.Plan{Table: whole.Table}
	for i, at := range whole.Key {
		keys.Key, keys.Columns = append(keys.Key, i), append(keys.Columns, row.PlanColumn{Column: whole.Columns[at].Column})
	}
	if err := r.connect(ctx); err != nil {
		return false, err
	}
	defer r.disconnect()
	texts, err := retry(ctx, r.cfg.Retry, func() ([][]string, error) { return lister.KeyRows(ctx, keys, KeyRange{Limit: 1}) })
	if err != nil {
		return false, fmt.Errorf("look for rows in table %q: %w", r.cfg.Mapping.Table, err)
	}
	return len(texts) == 0, nil
}

// keep returns the rows of a page that the pass may write.
func (g *guard) keep(ctx context.Context, r *run, source Source, rows []row.Row) ([]row.Row, error) {
	if g == nil || len(rows) == 0 {
		return rows, nil
	}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	differs, err := retry(ctx, r.cfg.Retry, func() ([]Differs, error) {
		return r.cfg.Adopt.Differ.Differing(ctx, r.cfg.Sink, r.m, rows)
	})
	r.disconnect()
	if err != nil {
		return nil, fmt.Errorf("compare a page of %s with table %q: %w", source.Name(), r.cfg.Mapping.Table, err)
	}
	pending, err := g.pending(ctx, source, rows, differs)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := rows[:0]
	for i := range rows {
		switch {
		case differs[i] == RowMissing && !rows[i].Delete:
		case differs[i] != RowDiffers && !rows[i].Delete, differs[i] == RowMissing, pending[rows[i].Record.Key]:
			continue
		case rows[i].Delete:
			if !take(g.may.Deletes, &g.did.Deletes, &g.left.Deletes) {
				continue
			}
		case !take(g.may.Changes, &g.did.Changes, &g.left.Changes):
			continue
		}
		kept = append(kept, rows[i])
	}
	return kept, nil
}

// take counts a row as done if the bound allows it, otherwise as left.
func take(may int64, did, left *int64) bool {
	if *did < may {
		*did++
		return true
	}
	*left++
	return false
}

// pending are the keys of rows that differ because the application has changed them: the next batch writes them.
func (g *guard) pending(ctx context.Context, source Source, rows []row.Row, differs []Differs) (map[string]bool, error) {
	var records []row.Record
	for i := range rows {
		if differs[i] == RowDiffers {
			records = append(records, rows[i].Record)
		}
	}
	sweeper, ok := source.(KeySweeper)
	if len(records) == 0 || !ok {
		return nil, nil
	}
	pending := make(map[string]bool, len(records))
	for _, one := range records { // before Unaccounted gets them
		pending[one.Key] = true
	}
	others, err := sweeper.Unaccounted(ctx, records)
	if err != nil {
		return nil, failedSource(ctx, "look for changes of", source, err)
	}
	for _, one := range others {
		pending[one.Key] = false
	}
	return pending, nil
}

// leaves reports whether the sweep must delete nothing, since more rows have vanished than may be deleted.
func (g *guard) leaves(vanished int64) bool {
	if g == nil || g.did.Deletes+vanished <= g.may.Deletes {
		return false
	}
	g.left.Deletes += vanished
	return true
}

// leftAlone are the rows that the pass has left as they are.
func (g *guard) leftAlone() Waits {
	if g == nil {
		return Waits{}
	}
	return g.left
}

// recordLeft records the rows that a complete pass has left as they are.
func (r *run) recordLeft(ctx context.Context, left Waits) error {
	a := r.cfg.Adopt
	if a.Differ == nil {
		return nil
	}
	if left == (Waits{}) {
		r.waits(left)
		return r.recordAdoption(ctx, adoptAdopted)
	}
	what := fmt.Sprintf("table %q had rows that job %q never wrote. A pass over all keys would change %d and delete %d of them, and "+
		"has left them as they are", r.cfg.Mapping.Table, r.cfg.Job, left.Changes, left.Deletes)
	if a.Mode != AdoptAsk {
		r.note(fmt.Sprintf("%s, as `adopt: %s` says", what, a.Mode))
		r.waits(Waits{})
		return nil
	}
	r.note(fmt.Sprintf("%s; changes by the application are written. `baton job preview %s --all` shows them, `baton job accept %s` "+
		"accepts that they are the job's", what, r.cfg.Job, r.cfg.Job))
	r.waits(left)
	return r.recordAdoption(ctx, fmt.Sprintf("%s %d %d", adoptWaits, left.Changes, left.Deletes))
}

// recordAdoption records the adoption of the present mapping.
func (r *run) recordAdoption(ctx context.Context, text string) error {
	if text == r.adoption {
		return nil
	}
	err := r.recordText(ctx, AdoptionName(r.basis().mapping), r.adoption, text)
	if err == nil {
		r.adoption = text
	}
	return err
}

func (r *run) waits(w Waits) {
	if r.cfg.Adopt.OnWaits != nil {
		r.cfg.Adopt.OnWaits(w)
	}
}

// Recorder is a Sink that reads records beside the place of a job, without a fence.
type Recorder interface {
	Sink
	Recorded(ctx context.Context, job, name string) (string, error)
}

// ErrUnaccepted says that keys must not be marked, since rows of the table wait to be accepted as the job's.
var ErrUnaccepted = errors.New("rows of the table are not accepted as the job's")

// MayMark fails if keys must not be marked: the next run takes a marked key for one that the application has changed, and
// writes its row at once. deletes says that rows without a record are marked, too.
func (p *Pipeline) MayMark(ctx context.Context, deletes bool) error {
	mode := p.cfg.Adopt.Mode
	records, ok := p.cfg.Sink.(Recorder)
	if p.cfg.Adopt.Differ == nil || !ok || mode == AdoptDelete || mode == AdoptOverwrite && !deletes {
		return nil
	}
	digest, err := p.Digest(ctx)
	if err != nil {
		return err
	}
	text, err := records.Recorded(ctx, p.cfg.Job, AdoptionName(digest))
	switch {
	case err != nil:
		return err
	case mode == AdoptInsertOnly || mode == AdoptOverwrite && text != adoptAdopted:
		return fmt.Errorf("table %q: %w, and `adopt: %s` leaves them as they are: no key was marked",
			p.cfg.Mapping.Table, ErrUnaccepted, mode)
	case text == adoptAdopted:
		return nil
	}
	return fmt.Errorf("table %q: %w, or the first pass of job %q has not ended: no key was marked. `baton job preview %s --all` "+
		"shows the plan of a pass, `baton job accept %s` accepts it", p.cfg.Mapping.Table, ErrUnaccepted, p.cfg.Job, p.cfg.Job, p.cfg.Job)
}

// Digest identifies the mapping of the job as its table resolves it.
func (p *Pipeline) Digest(ctx context.Context) (string, error) {
	table, err := p.cfg.Sink.Table(ctx, p.cfg.Mapping.Table)
	if err != nil {
		return "", fmt.Errorf("read the catalogue of table %q: %w", p.cfg.Mapping.Table, err)
	}
	m, err := mapping.Compile(p.cfg.Mapping, table, p.cfg.Inputs)
	if err != nil {
		return "", err
	}
	return p.digest(m), nil
}
