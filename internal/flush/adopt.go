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
	// Differing says for each row whether the table has a row of its key, and whether that row differs, or is the job's own.
	Differing(ctx context.Context, sink Sink, m *mapping.Mapping, rows []row.Row, own Own) ([]Differs, error)
}

// Differs is the result of comparing a row with that of the table.
type Differs int

// The results.
const (
	RowMissing Differs = iota
	RowEqual
	RowDiffers
	RowOwn // a pass of the job wrote it
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
	own            Own
	touches        bool // rows that are equal are written: that changes their generation and nothing else
}

// guardOf is the guard of a stage that is a pass.
func (r *run) guardOf(ctx context.Context, source Source, stage Stage) (*guard, error) {
	a := r.cfg.Adopt
	passed, ok := passOf(source, stage)
	if !ok || !passed.Everything || a.Differ == nil || len(r.m.Plan().Key) == 0 || r.m.Adds() {
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
	owned := ok && was.owned(r.basis().mapping) || r.adoption == adoptAdopted
	if a.Mode == AdoptDelete || a.Mode == AdoptAsk && owned {
		return nil, nil
	}
	own, err := r.ownOf(ctx, source, stage, owned)
	if err != nil {
		return nil, err
	}
	g := &guard{own: own, touches: own.Column != "" && r.m.Mode() != mapping.ModeReplace}
	switch a.Mode {
	case AdoptInsertOnly:
		return g, nil
	case AdoptOverwrite:
		g.may.Changes = math.MaxInt64
		return g, nil
	}
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
		return r.cfg.Adopt.Differ.Differing(ctx, r.cfg.Sink, r.m, rows, g.own)
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
		case differs[i] == RowMissing && !rows[i].Delete, differs[i] == RowOwn, differs[i] == RowEqual && g.touches:
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
	told := r.cfg.Inputs.Guarantee == row.ByPass && r.toldLeft == left // each run of a scan is a pass
	r.toldLeft = left
	what := fmt.Sprintf("table %q had rows that job %q never wrote. A pass over all keys would change %d and delete %d of them, and "+
		"has left them as they are", r.cfg.Mapping.Table, r.cfg.Job, left.Changes, left.Deletes)
	if a.Mode != AdoptAsk {
		if !told {
			r.note(fmt.Sprintf("%s, as `adopt: %s` says", what, a.Mode))
		}
		r.waits(Waits{})
		return nil
	}
	if !told {
		r.noteLeft(what)
	}
	r.waits(left)
	return r.recordAdoption(ctx, fmt.Sprintf("%s %d %d", adoptWaits, left.Changes, left.Deletes))
}

// noteLeft tells an operator what to do about rows that a pass has left as they are.
func (r *run) noteLeft(what string) {
	flows := "changes by the application are written"
	if r.cfg.Inputs.Guarantee == row.ByPass && r.cfg.Mapping.Generation == "" {
		flows = "rows that are missing are inserted, and no other row is written, since without `generation` a scan does not know its own"
	}
	r.note(fmt.Sprintf("%s; %s. `baton job preview %s --all` shows them, `baton job accept %s` accepts that they are the job's", what,
		flows, r.cfg.Job, r.cfg.Job))
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
